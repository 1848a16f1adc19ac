package metaq.interop;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullCallback;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** The pull consumer, which chooses queues and offsets itself. */
final class Pulling {
    private Pulling() {}

    static void register(Suite suite) {
        suite.add("pull", Pulling::pull);
        suite.add("pull-blocking", Pulling::blocking);
        suite.add("pull-async", Pulling::async);
        suite.add("pull-tags", Pulling::tags);
    }

    /** All messages of a queue from an offset on. */
    static List<MessageExt> read(DefaultMQPullConsumer consumer, MessageQueue queue, long offset) throws Exception {
        List<MessageExt> messages = new ArrayList<>();
        for (long next = offset;;) {
            PullResult result = consumer.pull(queue, "*", next, 32);
            if (result.getPullStatus() == PullStatus.NO_NEW_MSG) {
                return messages;
            }
            Check.equal(PullStatus.FOUND, result.getPullStatus(), "status at " + next);
            Check.equal(next, result.getMsgFoundList().get(0).getQueueOffset(), "offset of the first message");
            messages.addAll(result.getMsgFoundList());
            next = result.getNextBeginOffset();
        }
    }

    private static List<String> fill(DefaultMQProducer producer, MessageQueue queue, int n) throws Exception {
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            texts.add("m" + i);
            producer.send(Sending.text(queue.getTopic(), i % 2 == 0 ? "even" : "odd", "m" + i), queue);
        }
        return texts;
    }

    private static void pull(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 2);
        MessageQueue queue = rig.awaitQueues(producer, topic, 2).get(1);
        List<String> texts = fill(producer, queue, 80);
        DefaultMQPullConsumer consumer = rig.puller(rig.unique("cg"));
        Check.equal(2, consumer.fetchSubscribeMessageQueues(topic).size(), "queues to read");
        List<MessageExt> read = read(consumer, queue, 0);
        Check.equal(texts, read.stream().map(m -> new String(m.getBody())).toList(), "messages in order");

        PullResult part = consumer.pull(queue, "*", 10, 5);
        Check.equal(5, part.getMsgFoundList().size(), "messages of five");
        Check.equal(15L, part.getNextBeginOffset(), "next offset");
        Check.equal(0L, part.getMinOffset(), "min offset");
        Check.equal(80L, part.getMaxOffset(), "max offset");
        PullResult end = consumer.pull(queue, "*", 80, 32);
        Check.equal(PullStatus.NO_NEW_MSG, end.getPullStatus(), "status at the end");
        PullResult beyond = consumer.pull(queue, "*", 1000, 32);
        Check.equal(PullStatus.OFFSET_ILLEGAL, beyond.getPullStatus(), "status beyond the end");
        Check.equal(80L, beyond.getNextBeginOffset(), "corrected offset");
    }

    private static void blocking(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 1);
        MessageQueue queue = rig.awaitQueues(producer, topic, 1).get(0);
        DefaultMQPullConsumer consumer = rig.puller(rig.unique("cg"));
        CompletableFuture<PullResult> waiting = CompletableFuture.supplyAsync(() -> {
            try {
                return consumer.pullBlockIfNotFound(queue, "*", 0, 32);
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        Groups.pause(1000);
        Check.that(!waiting.isDone(), "the pull did not wait: %s", waiting.isDone() ? waiting.get() : "");
        long sent = System.nanoTime();
        fill(producer, queue, 1);
        PullResult result = waiting.get(Rig.SOON.toSeconds(), TimeUnit.SECONDS);
        long millis = (System.nanoTime() - sent) / 1_000_000;
        Check.equal(PullStatus.FOUND, result.getPullStatus(), "status");
        Check.that(millis < 1000, "the waiting pull was answered after %d ms", millis);
    }

    private static void async(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 1);
        MessageQueue queue = rig.awaitQueues(producer, topic, 1).get(0);
        fill(producer, queue, 10);
        CompletableFuture<PullResult> answer = new CompletableFuture<>();
        rig.puller(rig.unique("cg")).pull(queue, "*", 4, 32, new PullCallback() {
            @Override
            public void onSuccess(PullResult result) {
                answer.complete(result);
            }

            @Override
            public void onException(Throwable e) {
                answer.completeExceptionally(e);
            }
        });
        PullResult result = answer.get(Rig.SOON.toSeconds(), TimeUnit.SECONDS);
        Check.equal(PullStatus.FOUND, result.getPullStatus(), "status");
        Check.equal(6, result.getMsgFoundList().size(), "messages");
    }

    private static void tags(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 1);
        MessageQueue queue = rig.awaitQueues(producer, topic, 1).get(0);
        fill(producer, queue, 20);
        DefaultMQPullConsumer consumer = rig.puller(rig.unique("cg"));
        PullResult odd = consumer.pull(queue, "odd || none", 0, 32);
        Check.equal(PullStatus.FOUND, odd.getPullStatus(), "status");
        Check.equal(10, odd.getMsgFoundList().size(), "messages with the tag");
        Check.equal(20L, odd.getNextBeginOffset(), "next offset");
        PullResult none = consumer.pull(queue, "none", 0, 32);
        Check.equal(PullStatus.NO_MATCHED_MSG, none.getPullStatus(), "status without a match");
        Check.equal(20L, none.getNextBeginOffset(), "next offset without a match");
    }
}
