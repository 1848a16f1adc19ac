package metaq.interop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Ordered consumption: one message of a queue at a time, under a lock of the server. */
final class Ordering {
    private Ordering() {}

    static void register(Suite suite) {
        suite.add("orderly", Ordering::orderly);
        suite.add("orderly-suspend", Ordering::suspend);
        suite.add("orderly-hand-over", Suite.Kind.SHARED, Duration.ofSeconds(120), Ordering::handOver);
        suite.add("queue-locks", Ordering::locks);
    }

    /** Sends n messages to each queue, named by queue and number. */
    private static void fill(DefaultMQProducer producer, List<MessageQueue> queues, int from, int n) throws Exception {
        for (int i = from; i < from + n; i++) {
            for (MessageQueue queue : queues) {
                producer.send(Sending.text(queue.getTopic(), "TagA", queue.getQueueId() + "/" + i), queue);
            }
        }
    }

    private static void orderly(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        List<MessageQueue> queues = rig.awaitQueues(producer, topic, 4);
        Inbox inbox = new Inbox();
        Set<Integer> busy = ConcurrentHashMap.newKeySet();
        AtomicInteger overlaps = new AtomicInteger();
        rig.push(rig.unique("cg"), topic, "*", (MessageListenerOrderly) (messages, context) -> {
            int queue = context.getMessageQueue().getQueueId();
            if (!busy.add(queue)) {
                overlaps.incrementAndGet();
            }
            inbox.addAll(messages);
            busy.remove(queue);
            return ConsumeOrderlyStatus.SUCCESS;
        });
        fill(producer, queues, 0, 50);
        inbox.awaitDistinct(200, Rig.SOON);
        Check.equal(0, overlaps.get(), "queues with two messages at a time");
        inOrder(inbox, false);
    }

    /** The messages of each queue came by number; repeats only right after the first time, if they may be. */
    private static void inOrder(Inbox inbox, boolean repeats) {
        Map<String, Integer> last = new HashMap<>();
        for (String text : inbox.texts()) {
            String[] parts = text.split("/");
            int number = Integer.parseInt(parts[1]);
            int before = last.getOrDefault(parts[0], -1);
            Check.that(number == before + 1 || repeats && number <= before, "queue %s: %d came after %d", parts[0], number, before);
            last.merge(parts[0], number, Math::max);
        }
    }

    private static void suspend(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 1);
        List<MessageQueue> queues = rig.awaitQueues(producer, topic, 1);
        fill(producer, queues, 0, 10);
        List<String> seen = new ArrayList<>();
        List<Long> times = new ArrayList<>();
        Inbox done = new Inbox();
        rig.push(rig.unique("cg"), topic, "*", (MessageListenerOrderly) (messages, context) -> {
            for (MessageExt m : messages) {
                String text = new String(m.getBody());
                seen.add(text + " " + m.getReconsumeTimes());
                times.add(System.nanoTime());
                if (text.equals("0/4") && m.getReconsumeTimes() < 2) {
                    context.setSuspendCurrentQueueTimeMillis(300);
                    return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                }
                done.add(m);
            }
            return ConsumeOrderlyStatus.SUCCESS;
        });
        done.awaitDistinct(10, Rig.SOON);
        Check.equal(List.of("0/0 0", "0/1 0", "0/2 0", "0/3 0", "0/4 0", "0/4 1", "0/4 2", "0/5 0", "0/6 0", "0/7 0", "0/8 0", "0/9 0"),
            seen, "order with two suspensions");
        Check.that(times.get(5) - times.get(4) >= 250_000_000L, "the queue was not suspended for 300 ms");
    }

    /** A second member takes over queues, then all of them: never two at one queue, never out of order. */
    private static void handOver(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        List<MessageQueue> queues = rig.awaitQueues(producer, topic, 4);
        String group = rig.unique("cg");
        Inbox inbox = new Inbox();
        Set<Integer> busy = ConcurrentHashMap.newKeySet();
        AtomicInteger overlaps = new AtomicInteger();
        MessageListenerOrderly listener = (messages, context) -> {
            int queue = context.getMessageQueue().getQueueId();
            if (!busy.add(queue)) {
                overlaps.incrementAndGet();
            }
            Groups.pause(2);
            inbox.addAll(messages);
            busy.remove(queue);
            return ConsumeOrderlyStatus.SUCCESS;
        };
        DefaultMQPushConsumer first = rig.push(group, topic, "*", listener);
        fill(producer, queues, 0, 50);
        inbox.awaitDistinct(100, Rig.SOON);
        DefaultMQPushConsumer second = rig.push(group, topic, "*", listener);
        Groups.awaitShares(rig, List.of(first, second), topic, 2);
        fill(producer, queues, 50, 50);
        inbox.awaitDistinct(300, Rig.SOON);
        first.shutdown();
        Groups.awaitShares(rig, List.of(second), topic, 4);
        fill(producer, queues, 100, 25);
        inbox.awaitDistinct(500, Rig.SOON);
        rig.note("%d twice", inbox.repeats());
        Check.equal(0, overlaps.get(), "queues with two messages at a time");
        inOrder(inbox, true);
        Check.that(inbox.repeats() <= 50, "%d of 500 came twice", inbox.repeats());
    }

    /** What one member locks, another cannot lock until it is let go. */
    private static void locks(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 2);
        String group = rig.unique("cg");
        MessageQueue queue = rig.awaitQueues(producer, topic, 2).get(0);
        Locks first = new Locks(producer, group, "first@1");
        Locks second = new Locks(producer, group, "second@2");
        Check.equal(Set.of(queue), first.lock(queue), "locked by the first");
        Check.equal(Set.of(queue), first.lock(queue), "locked again by the first");
        Check.equal(Set.of(), second.lock(queue), "locked by the second meanwhile");
        second.unlock(queue);
        Check.equal(Set.of(), second.lock(queue), "locked by the second after it let go what it did not have");
        first.unlock(queue);
        Check.equal(Set.of(queue), second.lock(queue), "locked by the second afterwards");
    }

    /** Lock requests of one client id, by the official API. */
    private record Locks(DefaultMQProducer producer, String group, String client) {
        Set<MessageQueue> lock(MessageQueue queue) throws Exception {
            return Version.lock(producer, address(queue), group, client, queue);
        }

        void unlock(MessageQueue queue) throws Exception {
            Version.unlock(producer, address(queue), group, client, queue);
        }

        private String address(MessageQueue queue) {
            return Rig.broker(producer, queue);
        }
    }
}
