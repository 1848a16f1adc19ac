package metaq.interop;

import java.util.List;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** The lite pull consumer: subscribed, or with queues of its own choice. */
final class LitePulling {
    private LitePulling() {}

    static void register(Suite suite) {
        suite.add("lite-subscribe", LitePulling::subscribe);
        suite.add("lite-assign-seek", LitePulling::assign);
        suite.add("lite-commit", LitePulling::commit);
    }

    /** Polls until n different messages are in the inbox. */
    static void poll(Rig rig, DefaultLitePullConsumer consumer, Inbox inbox, int n) throws Exception {
        rig.until(Rig.SOON, n + " messages by poll", () -> {
            inbox.addAll(consumer.poll(200));
            return inbox.distinct() >= n;
        });
    }

    private static void subscribe(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        Sending.sendAll(producer, topic, "old", 40);
        DefaultLitePullConsumer consumer = rig.litePuller(rig.unique("cg"));
        consumer.subscribe(topic, "TagA || TagB");
        consumer.start();
        Inbox inbox = new Inbox();
        poll(rig, consumer, inbox, 40);
        Sending.sendAll(producer, topic, "new", 20);
        poll(rig, consumer, inbox, 60);
        Check.equal(60, inbox.size(), "deliveries");
        Check.equal(4, consumer.assignment().size(), "queues assigned");
    }

    private static void assign(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 2);
        MessageQueue queue = rig.awaitQueues(producer, topic, 2).get(0);
        for (int i = 0; i < 30; i++) {
            producer.send(Sending.text(topic, "TagA", "m" + i), queue);
        }
        DefaultLitePullConsumer consumer = rig.litePuller(rig.unique("cg"));
        consumer.setAutoCommit(false);
        consumer.start();
        Check.equal(2, consumer.fetchMessageQueues(topic).size(), "queues of the topic");
        consumer.assign(List.of(queue));
        // a seek while the first pulls are on their way is a race inside of the client, so these come first
        expectFrom(rig, consumer, 0, 30);
        consumer.seekToBegin(queue);
        expectFrom(rig, consumer, 0, 30);
        consumer.seek(queue, 20);
        expectFrom(rig, consumer, 20, 10);
        consumer.seekToEnd(queue);
        Check.that(consumer.poll(500).isEmpty(), "messages after the end");
        producer.send(Sending.text(topic, "TagA", "m30"), queue);
        expectFrom(rig, consumer, 30, 1);
        Check.equal(0L, consumer.offsetForTimestamp(queue, 1000L), "offset of a time long ago");

        // the pull that waits when the queue is paused may still bring a message, once
        consumer.pause(List.of(queue));
        producer.send(Sending.text(topic, "TagA", "m31"), queue);
        Inbox inbox = new Inbox();
        inbox.addAll(consumer.poll(300));
        consumer.resume(List.of(queue));
        poll(rig, consumer, inbox, 1);
        Check.equal(List.of("m31"), inbox.texts(), "messages around a pause");
    }

    private static void expectFrom(Rig rig, DefaultLitePullConsumer consumer, long offset, int n) throws Exception {
        Inbox inbox = new Inbox();
        poll(rig, consumer, inbox, n);
        for (int i = 0; i < n; i++) {
            Check.equal(offset + i, inbox.all().get(i).message().getQueueOffset(), "offset of message " + i);
        }
        Check.equal(n, inbox.size(), "messages from offset " + offset);
    }

    private static void commit(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 1);
        String group = rig.unique("cg");
        MessageQueue queue = rig.awaitQueues(producer, topic, 1).get(0);
        Sending.sendAll(producer, topic, "m", 30);
        DefaultLitePullConsumer consumer = rig.litePuller(group);
        consumer.setAutoCommit(false);
        consumer.setPullBatchSize(10);
        consumer.subscribe(topic, "*");
        consumer.start();
        Inbox inbox = new Inbox();
        poll(rig, consumer, inbox, 10);
        int taken = inbox.size();
        consumer.commitSync();
        rig.until(Rig.SOON, "the committed offset " + taken, () -> {
            consumer.commit(Set.of(queue), true);
            return consumer.committed(queue) == taken;
        });
        consumer.shutdown();
        Raw raw = new Raw(rig);
        rig.until(Rig.SOON, "offset " + taken + " on the server", () -> raw.committed(producer, group, queue) == taken);

        DefaultLitePullConsumer next = rig.litePuller(group);
        next.subscribe(topic, "*");
        next.start();
        Inbox rest = new Inbox();
        poll(rig, next, rest, 30 - taken);
        MessageExt first = rest.all().get(0).message();
        Check.equal((long) taken, first.getQueueOffset(), "first offset of the next consumer");
    }
}
