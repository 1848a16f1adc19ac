package metaq.interop;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** All ways to send, and what the answer says. */
final class Sending {
    private Sending() {}

    static void register(Suite suite) {
        suite.add("send-sync", Sending::sync);
        suite.add("send-async", Sending::async);
        suite.add("send-oneway", Sending::oneway);
        suite.add("send-batch", Sending::batch);
        suite.add("send-queue", Sending::explicitQueue);
        suite.add("send-hash-selector", Sending::hashSelector);
        suite.add("key-order", Sending::keyOrder);
        suite.add("auto-create-topic", Sending::autoCreate);
    }

    static Message text(String topic, String tags, String text) {
        return new Message(topic, tags, "key-" + text, text.getBytes(StandardCharsets.UTF_8));
    }

    /** Sends texts named prefix-0 … and gives the texts. */
    static List<String> sendAll(DefaultMQProducer producer, String topic, String prefix, int n) throws Exception {
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            String text = prefix + "-" + i;
            SendResult result = producer.send(text(topic, "TagA", text));
            Check.equal(SendStatus.SEND_OK, result.getSendStatus(), "status of " + text);
            texts.add(text);
        }
        return texts;
    }

    private static void sync(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        long begin = System.currentTimeMillis();
        Map<String, SendResult> results = new LinkedHashMap<>();
        Map<MessageQueue, Long> next = new HashMap<>();
        for (int i = 0; i < 20; i++) {
            SendResult result = producer.send(text(topic, "TagA", "m" + i));
            Check.equal(SendStatus.SEND_OK, result.getSendStatus(), "status");
            Check.equal(topic, result.getMessageQueue().getTopic(), "topic of the result");
            Check.equal(next.getOrDefault(result.getMessageQueue(), 0L), result.getQueueOffset(), "queue offset");
            // 32 digits with an IPv4 address inside, 56 with an IPv6 address
            Check.that(result.getMsgId().matches("[0-9A-F]{32}([0-9A-F]{24})?"), "message id %s", result.getMsgId());
            Check.that(result.getOffsetMsgId().matches("[0-9A-F]{32}([0-9A-F]{24})?"), "offset id %s", result.getOffsetMsgId());
            next.put(result.getMessageQueue(), result.getQueueOffset() + 1);
            results.put("m" + i, result);
        }
        Check.equal(4, next.size(), "queues that got messages");

        Inbox inbox = new Inbox();
        rig.collector(rig.unique("cg"), topic, inbox);
        for (Inbox.Arrival a : inbox.awaitDistinct(20, Rig.SOON)) {
            compare(results.get(a.text()), a, begin);
        }
        Check.equal(0, inbox.repeats(), "repeats");
    }

    private static void compare(SendResult sent, Inbox.Arrival a, long begin) {
        MessageExt got = a.message();
        Check.equal(sent.getMsgId(), got.getMsgId(), "message id");
        Check.equal(sent.getOffsetMsgId(), ((MessageClientExt) got).getOffsetMsgId(), "offset id");
        Check.equal(sent.getQueueOffset(), got.getQueueOffset(), "queue offset");
        Check.equal(sent.getMessageQueue().getQueueId(), got.getQueueId(), "queue id");
        Check.equal(sent.getMessageQueue().getTopic(), got.getTopic(), "topic");
        Check.equal("TagA", got.getTags(), "tags");
        Check.equal("key-" + a.text(), got.getKeys(), "keys");
        Check.equal(0, got.getReconsumeTimes(), "reconsume times");
        Check.that(got.getBornTimestamp() >= begin && got.getBornTimestamp() <= System.currentTimeMillis(), "born time");
        Check.that(Math.abs(got.getStoreTimestamp() - begin) < 60_000, "store time %d", got.getStoreTimestamp());
        Check.that(got.getBornHostString() != null && got.getStoreHost() != null, "hosts are missing");
        Check.that(got.getStoreSize() > got.getBody().length, "store size %d", got.getStoreSize());
    }

    private static void async(Rig rig) throws Exception {
        int n = 200;
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        CountDownLatch answers = new CountDownLatch(n);
        Set<String> acknowledged = new HashSet<>();
        ConcurrentLinkedQueue<Throwable> errors = new ConcurrentLinkedQueue<>();
        Semaphore onTheWay = new Semaphore(32); // a server may refuse what it cannot take at once
        for (int i = 0; i < n; i++) {
            String text = "m" + i;
            Check.that(onTheWay.tryAcquire(Rig.SOON.toSeconds(), TimeUnit.SECONDS), "no answer to any of 32 sends");
            producer.send(text(topic, "TagA", text), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    synchronized (acknowledged) {
                        acknowledged.add(text);
                    }
                    onTheWay.release();
                    answers.countDown();
                }

                @Override
                public void onException(Throwable e) {
                    errors.add(e);
                    onTheWay.release();
                    answers.countDown();
                }
            });
        }
        Check.that(answers.await(Rig.SOON.toSeconds(), TimeUnit.SECONDS), "%d answers did not come", answers.getCount());
        Check.that(errors.isEmpty(), "%d errors, the first: %s", errors.size(), errors.peek());
        Inbox inbox = new Inbox();
        rig.collector(rig.unique("cg"), topic, inbox);
        inbox.awaitTexts(acknowledged, Rig.SOON);
        Check.equal(n, inbox.distinct(), "messages");
    }

    private static void oneway(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            texts.add("m" + i);
            producer.sendOneway(text(topic, "TagA", "m" + i));
        }
        Inbox inbox = new Inbox();
        rig.collector(rig.unique("cg"), topic, inbox);
        inbox.awaitTexts(texts, Rig.SOON);
        Check.equal(50, inbox.size(), "deliveries");
    }

    private static void batch(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        List<Message> messages = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            Message m = text(topic, "Tag" + i % 3, "m" + i);
            m.putUserProperty("number", "n" + i);
            messages.add(m);
        }
        SendResult result = producer.send(messages);
        Check.equal(SendStatus.SEND_OK, result.getSendStatus(), "status");
        Check.equal(30, result.getMsgId().split(",").length, "message ids in the result");
        Check.equal(30, result.getOffsetMsgId().split(",").length, "offset ids in the result");
        Check.equal(0L, result.getQueueOffset(), "queue offset of the first");

        Inbox inbox = new Inbox();
        rig.collector(rig.unique("cg"), topic, inbox);
        List<String> ids = List.of(result.getMsgId().split(","));
        for (Inbox.Arrival a : inbox.awaitDistinct(30, Rig.SOON)) {
            int i = Integer.parseInt(a.text().substring(1));
            Check.equal(ids.get(i), a.message().getMsgId(), "id of " + a.text());
            Check.equal((long) i, a.message().getQueueOffset(), "offset of " + a.text());
            Check.equal(result.getMessageQueue().getQueueId(), a.message().getQueueId(), "queue of " + a.text());
            Check.equal("Tag" + i % 3, a.message().getTags(), "tags of " + a.text());
            Check.equal("n" + i, a.message().getUserProperty("number"), "property of " + a.text());
        }
        Check.equal(0, inbox.repeats(), "repeats");
    }

    private static void explicitQueue(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        List<MessageQueue> queues = rig.awaitQueues(producer, topic, 4);
        for (int i = 0; i < 20; i++) {
            SendResult result = producer.send(text(topic, "TagA", i + ""), queues.get(i % 2 + 1));
            Check.equal(queues.get(i % 2 + 1), result.getMessageQueue(), "queue");
            Check.equal((long) i / 2, result.getQueueOffset(), "offset");
        }
        Inbox inbox = new Inbox();
        rig.collector(rig.unique("cg"), topic, inbox);
        for (Inbox.Arrival a : inbox.awaitDistinct(20, Rig.SOON)) {
            Check.equal(Integer.parseInt(a.text()) % 2 + 1, a.message().getQueueId(), "queue of " + a.text());
        }
    }

    private static void hashSelector(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        Map<String, Integer> queueOf = new HashMap<>();
        for (int i = 0; i < 64; i++) {
            String key = "order-" + i % 16;
            SendResult result = producer.send(text(topic, "TagA", key + "/" + i), new SelectMessageQueueByHash(), key);
            int queue = Math.abs(key.hashCode()) % 4;
            Check.equal(queue, result.getMessageQueue().getQueueId(), "queue of " + key);
            queueOf.put(key, queue);
        }
        Inbox inbox = new Inbox();
        rig.collector(rig.unique("cg"), topic, inbox);
        for (Inbox.Arrival a : inbox.awaitDistinct(64, Rig.SOON)) {
            Check.equal(queueOf.get(a.text().split("/")[0]), a.message().getQueueId(), "queue of " + a.text());
        }
    }

    private static void keyOrder(Rig rig) throws Exception {
        int threads = 4;
        int keys = 4;
        int each = 40;
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        Inbox inbox = new Inbox();
        rig.push(rig.unique("cg"), topic, "*", (MessageListenerOrderly) (messages, context) -> {
            inbox.addAll(messages);
            return ConsumeOrderlyStatus.SUCCESS;
        });
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        rig.onEnd(pool::shutdownNow);
        List<Future<?>> work = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            int thread = t;
            work.add(pool.submit(() -> {
                for (int i = 0; i < each * keys; i++) {
                    String key = thread + "." + i % keys;
                    producer.send(text(topic, "TagA", key + "/" + i / keys), new SelectMessageQueueByHash(), key);
                }
                return null;
            }));
        }
        for (Future<?> w : work) {
            w.get(Rig.SOON.toSeconds(), TimeUnit.SECONDS);
        }
        inbox.awaitDistinct(threads * keys * each, Rig.SOON);
        Map<String, Integer> next = new HashMap<>();
        for (String text : inbox.texts()) {
            String[] parts = text.split("/");
            Check.equal(next.getOrDefault(parts[0], 0), Integer.parseInt(parts[1]), "next of key " + parts[0]);
            next.merge(parts[0], 1, Integer::sum);
        }
    }

    private static void autoCreate(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.unique("auto");
        List<String> texts = sendAll(producer, topic, "m", 8);
        Check.equal(4, rig.awaitQueues(producer, topic, 4).size(), "queues by default");
        Inbox inbox = new Inbox();
        rig.collector(rig.unique("cg"), topic, inbox);
        inbox.awaitTexts(texts, Rig.SOON);

        DefaultMQProducer wide = rig.producer(p -> p.setDefaultTopicQueueNums(6));
        String second = rig.unique("auto");
        sendAll(wide, second, "m", 1);
        Check.equal(6, rig.awaitQueues(wide, second, 6).size(), "queues asked for");
    }
}
