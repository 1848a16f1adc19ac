package metaq.interop;

import java.text.SimpleDateFormat;
import java.util.Date;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Where consumers begin, what they commit, and what can be asked about positions and messages. */
final class Positions {
    private Positions() {}

    static void register(Suite suite) {
        suite.add("start-first", Positions::first);
        suite.add("start-last", Positions::last);
        suite.add("start-timestamp", Positions::timestamp);
        suite.add("commit", Positions::commit);
        suite.add("offset-queries", Positions::queries);
        suite.add("message-queries", Positions::messages);
    }

    private static void first(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        List<String> texts = Sending.sendAll(producer, topic, "old", 40);
        Inbox inbox = new Inbox();
        rig.collector(rig.unique("cg"), topic, inbox);
        inbox.awaitTexts(texts, Rig.SOON);
        Check.equal(40, inbox.size(), "deliveries");
    }

    /**
     * What was sent after the start must come. What was sent before comes from a young topic, whose first message is
     * still in memory, when the server keeps the classic rule; then it must be all of it.
     */
    private static void last(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        List<String> old = Sending.sendAll(producer, topic, "old", 40);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = rig.push(rig.unique("cg"), topic, "*", Rig.into(inbox),
            c -> c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET));
        rig.until(Rig.SOON, "four queues", () -> Rig.held(consumer, topic).size() == 4);
        List<String> fresh = Sending.sendAll(producer, topic, "new", 40);
        inbox.awaitTexts(fresh, Rig.SOON);
        allOrNone(rig, inbox, old);
    }

    private static void timestamp(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        List<String> old = Sending.sendAll(producer, topic, "old", 40);
        // the timestamp of a consumer has whole seconds
        Groups.pause(1100 + 1000 - System.currentTimeMillis() % 1000);
        long from = System.currentTimeMillis() / 1000 * 1000;
        List<String> fresh = Sending.sendAll(producer, topic, "new", 40);
        Inbox inbox = new Inbox();
        rig.push(rig.unique("cg"), topic, "*", Rig.into(inbox), c -> {
            c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_TIMESTAMP);
            c.setConsumeTimestamp(new SimpleDateFormat("yyyyMMddHHmmss").format(new Date(from)));
        });
        inbox.awaitTexts(fresh, Rig.SOON);
        allOrNone(rig, inbox, old);
    }

    private static void allOrNone(Rig rig, Inbox inbox, List<String> old) throws Exception {
        Groups.pause(500);
        int came = old.size() - inbox.missing(old).size();
        rig.note("%d of %d old ones", came, old.size());
        Check.that(came == 0 || came == old.size(), "%d of %d older messages came: all or none must", came, old.size());
        Check.equal(0, inbox.repeats(), "repeats");
    }

    private static void commit(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        String group = rig.unique("cg");
        Sending.sendAll(producer, topic, "m", 40);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = rig.collector(group, topic, inbox);
        inbox.awaitDistinct(40, Rig.SOON);
        Raw raw = new Raw(rig);
        for (MessageQueue queue : rig.awaitQueues(producer, topic, 4)) {
            rig.until(Rig.SOON, "offset 10 of " + queue, () -> raw.committed(producer, group, queue) == 10);
        }
        consumer.shutdown();
        Inbox again = new Inbox();
        rig.collector(group, topic, again);
        List<String> more = Sending.sendAll(producer, topic, "more", 8);
        again.awaitTexts(more, Rig.SOON);
        Check.equal(8, again.size(), "deliveries after the commit");
    }

    private static void queries(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 2);
        List<MessageQueue> queues = rig.awaitQueues(producer, topic, 2);
        MessageQueue queue = queues.get(0);
        long before = System.currentTimeMillis();
        for (int i = 0; i < 10; i++) {
            producer.send(Sending.text(topic, "TagA", "old" + i), queue);
        }
        Groups.pause(20);
        long between = System.currentTimeMillis();
        Groups.pause(20);
        for (int i = 0; i < 5; i++) {
            producer.send(Sending.text(topic, "TagA", "new" + i), queue);
        }
        DefaultMQPullConsumer asks = rig.puller(rig.unique("cg"));
        Check.equal(0L, asks.minOffset(queue), "min offset");
        Check.equal(15L, asks.maxOffset(queue), "max offset");
        Check.equal(0L, asks.maxOffset(queues.get(1)), "max offset of an empty queue");
        Check.equal(10L, asks.searchOffset(queue, between), "offset of a time between");
        Check.equal(0L, asks.searchOffset(queue, before - 60_000), "offset of a time before");
        Check.equal(15L, asks.searchOffset(queue, System.currentTimeMillis() + 60_000), "offset of a time to come");
        long earliest = asks.earliestMsgStoreTime(queue);
        Check.that(earliest >= before - 1000 && earliest <= between, "earliest store time %d, sent at %d", earliest, before);

        commit(rig, asks, queue, 7);
        commit(rig, asks, queue, 3); // offsets may be set back
        long unknown = rig.puller(rig.unique("cg")).fetchConsumeOffset(queue, true);
        Check.that(unknown == 0 || unknown == -1, "offset of a group that never committed: %d", unknown);
    }

    /** Commits until the server has it: commits are one-way, and void before a heartbeat made the group known. */
    static void commit(Rig rig, DefaultMQPullConsumer consumer, MessageQueue queue, long offset) throws Exception {
        rig.until(Rig.SOON, "offset " + offset + " of " + queue + " on the server", () -> {
            consumer.updateConsumeOffset(queue, offset);
            consumer.getOffsetStore().persistAll(new HashSet<>(Set.of(queue)));
            return consumer.fetchConsumeOffset(queue, true) == offset;
        });
    }

    private static void messages(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        SendResult sent = producer.send(Sending.text(topic, "TagA", "wanted"));
        Sending.sendAll(producer, topic, "other", 10);
        MessageExt byOffset = producer.viewMessage(topic, sent.getOffsetMsgId());
        Check.equal("wanted", new String(byOffset.getBody()), "message by its offset id");
        rig.until(Rig.SOON, "the message by its unique id",
            () -> new String(producer.viewMessage(topic, sent.getMsgId()).getBody()).equals("wanted"));
        Set<String> found = new TreeSet<>();
        rig.until(Rig.SOON, "the message by its key", () -> {
            QueryResult result = producer.queryMessage(topic, "key-wanted", 32, 0, System.currentTimeMillis() + 60_000);
            result.getMessageList().forEach(m -> found.add(new String(m.getBody())));
            return found.contains("wanted");
        });
        Check.equal(Set.of("wanted"), found, "messages with the key");
    }
}
