package metaq.interop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Messages that the consumer refuses: again after a while, in the end a dead letter. */
final class Retrying {
    /** A client learns of a new retry topic with its next routes (30 s) and takes it up in the next round (20 s). */
    private static final Duration LIMIT = Duration.ofSeconds(90);

    private Retrying() {}

    static void register(Suite suite) {
        suite.add("retry", Suite.Kind.SHARED, LIMIT, Retrying::retry);
        suite.add("retry-some-of-a-batch", Suite.Kind.SHARED, LIMIT, Retrying::someOfBatch);
        suite.add("dead-letter", Suite.Kind.SHARED, LIMIT, Retrying::deadLetter);
        suite.add("dead-letter-orderly", Suite.Kind.SHARED, LIMIT, Retrying::deadLetterOrderly);
    }

    private static void retry(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        Inbox inbox = new Inbox();
        Inbox others = new Inbox();
        rig.push(rig.unique("cg"), topic, "TagA", (MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                if (!new String(m.getBody()).equals("bad")) {
                    others.add(m);
                    continue;
                }
                inbox.add(m);
                context.setDelayLevelWhenNextConsume(1);
                return m.getReconsumeTimes() < 2 ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        SendResult sent = producer.send(Sending.text(topic, "TagA", "bad"));
        Sending.sendAll(producer, topic, "good", 20);
        List<Inbox.Arrival> tries = inbox.awaitCount(3, LIMIT);
        for (int i = 0; i < 3; i++) {
            MessageExt m = tries.get(i).message();
            Check.equal(i, m.getReconsumeTimes(), "reconsume times of try " + i);
            Check.equal(topic, m.getTopic(), "topic of try " + i);
            Check.equal("TagA", m.getTags(), "tags of try " + i);
            Check.equal("key-bad", m.getKeys(), "keys of try " + i);
            Check.equal(sent.getMsgId(), m.getMsgId(), "id of try " + i);
            if (i > 0) {
                Check.equal(sent.getOffsetMsgId(), m.getProperty("ORIGIN_MESSAGE_ID"), "origin of try " + i);
                long millis = (tries.get(i).nanos() - tries.get(i - 1).nanos()) / 1_000_000;
                rig.note("try %d after %d ms", i, millis);
                Check.that(millis >= 800, "try %d came after %d ms, level 1 is a second", i, millis);
            }
        }
        others.awaitDistinct(20, Rig.SOON);
        Check.equal(20, others.size(), "deliveries of the good ones");
        Check.that(inbox.staysAt(3, Duration.ofSeconds(2)), "a message that was taken came again");
    }

    /** With batches the listener tells up to where it succeeded; only the rest comes again. */
    private static void someOfBatch(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 1);
        Sending.sendAll(producer, topic, "m", 8);
        Inbox good = new Inbox();
        Inbox again = new Inbox();
        rig.push(rig.unique("cg"), topic, "*", (MessageListenerConcurrently) (messages, context) -> {
            context.setDelayLevelWhenNextConsume(1);
            if (messages.get(0).getReconsumeTimes() > 0) {
                again.addAll(messages);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            }
            good.add(messages.get(0));
            context.setAckIndex(0);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        }, c -> c.setConsumeMessageBatchMaxSize(4));
        rig.until(LIMIT, "eight messages, by the first or the second try", () -> good.size() + again.distinct() == 8);
        Check.that(again.size() > 0, "no batch had more than one message");
        Check.equal(0, again.repeats(), "repeats");
    }

    private static void deadLetter(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        String group = rig.unique("cg");
        Inbox inbox = new Inbox();
        rig.push(group, topic, "*", (MessageListenerConcurrently) (messages, context) -> {
            inbox.addAll(messages);
            context.setDelayLevelWhenNextConsume(1);
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        }, c -> c.setMaxReconsumeTimes(2));
        SendResult sent = producer.send(Sending.text(topic, "TagA", "hopeless"));
        List<Inbox.Arrival> tries = inbox.awaitCount(3, LIMIT);
        Check.equal(List.of(0, 1, 2), tries.stream().map(a -> a.message().getReconsumeTimes()).toList(), "reconsume times");
        MessageExt dead = deadLetterOf(rig, group);
        Check.equal("hopeless", new String(dead.getBody()), "body of the dead letter");
        Check.equal(topic, dead.getProperty("RETRY_TOPIC"), "its source");
        Check.equal(sent.getOffsetMsgId(), dead.getProperty("ORIGIN_MESSAGE_ID"), "its origin");
        Check.equal(sent.getMsgId(), dead.getMsgId(), "its id");
        Check.equal("key-hopeless", dead.getKeys(), "its keys");
        Check.equal(3, dead.getReconsumeTimes(), "its reconsume times");
        Check.that(inbox.staysAt(3, Duration.ofSeconds(2)), "a dead letter was delivered");
    }

    private static MessageExt deadLetterOf(Rig rig, String group) throws Exception {
        DefaultMQPullConsumer reader = rig.puller(rig.unique("reader"));
        List<MessageExt> letters = new ArrayList<>();
        rig.until(LIMIT, "a dead letter of " + group, () -> {
            letters.clear();
            Set<MessageQueue> queues = reader.fetchSubscribeMessageQueues("%DLQ%" + group);
            for (MessageQueue queue : queues) {
                letters.addAll(Pulling.read(reader, queue, 0));
            }
            return !letters.isEmpty();
        });
        Check.equal(1, letters.size(), "dead letters");
        return letters.get(0);
    }

    private static void deadLetterOrderly(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 1);
        String group = rig.unique("cg");
        Sending.sendAll(producer, topic, "m", 3);
        List<String> seen = new ArrayList<>();
        Inbox done = new Inbox();
        rig.push(group, topic, "*", (MessageListenerOrderly) (messages, context) -> {
            for (MessageExt m : messages) {
                String text = new String(m.getBody());
                seen.add(text + " " + m.getReconsumeTimes());
                if (text.equals("m-1")) {
                    context.setSuspendCurrentQueueTimeMillis(100);
                    return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                }
                done.add(m);
            }
            return ConsumeOrderlyStatus.SUCCESS;
        }, c -> c.setMaxReconsumeTimes(2));
        done.awaitDistinct(2, LIMIT);
        Check.equal(List.of("m-0 0", "m-1 0", "m-1 1", "m-1 2", "m-2 0"), seen, "deliveries");
        MessageExt dead = deadLetterOf(rig, group);
        Check.equal("m-1", new String(dead.getBody()), "body of the dead letter");
        Check.equal(topic, dead.getProperty("RETRY_TOPIC"), "its source");
    }
}
