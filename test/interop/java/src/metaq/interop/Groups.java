package metaq.interop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageQueue;

/** Several consumers of one group, and what happens when they come and go. */
final class Groups {
    private Groups() {}

    static void register(Suite suite) {
        suite.add("push", Groups::push);
        suite.add("balance", Suite.Kind.SHARED, Duration.ofSeconds(120), Groups::balance);
        suite.add("broadcast", Groups::broadcast);
        suite.add("two-groups", Groups::twoGroups);
        suite.add("consumer-restart", Groups::consumerRestart);
        suite.add("long-poll", Groups::longPoll);
    }

    /** A consumer that starts first, and messages that come after it. */
    private static void push(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        Inbox inbox = new Inbox();
        rig.collector(rig.unique("cg"), topic, inbox);
        List<String> texts = Sending.sendAll(producer, topic, "m", 100);
        inbox.awaitTexts(texts, Rig.SOON);
        Check.equal(100, inbox.size(), "deliveries");
    }

    private static void balance(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 6);
        String group = rig.unique("cg");
        List<Inbox> inboxes = new ArrayList<>();
        List<DefaultMQPushConsumer> members = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            inboxes.add(new Inbox());
            members.add(rig.push(group, topic, "*", Rig.into(inboxes.get(i))));
        }
        // without notices a client would look again after 20 seconds only
        long begin = System.nanoTime();
        awaitShares(rig, members, topic, 2);
        rig.note("three share after %.1f s", (System.nanoTime() - begin) / 1e9);
        List<String> texts = new ArrayList<>(Sending.sendAll(producer, topic, "three", 300));
        awaitTogether(rig, inboxes, texts);
        for (Inbox inbox : inboxes) {
            Check.equal(100, inbox.size(), "share of a member");
        }

        // members change queues without waiting for each other: what is not committed then comes twice
        Raw raw = new Raw(rig);
        for (MessageQueue queue : rig.awaitQueues(producer, topic, 6)) {
            rig.until(Rig.SOON, "committed offset 50 of " + queue, () -> raw.committed(producer, group, queue) == 50);
        }
        begin = System.nanoTime();
        members.remove(0).shutdown();
        awaitShares(rig, members, topic, 3);
        rig.note("two after %.1f s", (System.nanoTime() - begin) / 1e9);
        texts.addAll(Sending.sendAll(producer, topic, "two", 300));
        awaitTogether(rig, inboxes, texts);
        Check.equal(100, inboxes.get(0).size(), "messages of the member that left");
        Check.equal(600, inboxes.stream().mapToInt(Inbox::size).sum(), "deliveries in all");
    }

    /** Waits until each member holds so many queues and no queue is held twice. */
    static void awaitShares(Rig rig, List<DefaultMQPushConsumer> members, String topic, int each) throws Exception {
        rig.until(Duration.ofSeconds(60), each + " queues for each of " + members.size() + " members", () -> {
            Set<MessageQueue> all = new HashSet<>();
            for (DefaultMQPushConsumer member : members) {
                List<MessageQueue> held = Rig.held(member, topic);
                if (held.size() != each) {
                    return false;
                }
                all.addAll(held);
            }
            return all.size() == each * members.size();
        });
    }

    private static void awaitTogether(Rig rig, List<Inbox> inboxes, List<String> texts) throws Exception {
        rig.until(Rig.SOON, texts.size() + " messages at all members together", () -> {
            Set<String> all = new HashSet<>();
            inboxes.forEach(inbox -> all.addAll(inbox.texts()));
            return all.containsAll(texts);
        });
    }

    private static void broadcast(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        String group = rig.unique("cg");
        Map<String, Inbox> inboxes = new HashMap<>();
        Map<String, DefaultMQPushConsumer> members = new HashMap<>();
        for (String name : List.of(rig.unique("one"), rig.unique("other"))) {
            inboxes.put(name, new Inbox());
            members.put(name, broadcaster(rig, group, topic, name, inboxes.get(name)));
        }
        List<String> texts = Sending.sendAll(producer, topic, "first", 40);
        for (Inbox inbox : inboxes.values()) {
            inbox.awaitTexts(texts, Rig.SOON);
            Check.equal(40, inbox.size(), "deliveries to each");
        }
        // a member that comes back goes on where its own file of offsets says
        String name = members.keySet().iterator().next();
        members.get(name).shutdown();
        List<String> more = Sending.sendAll(producer, topic, "second", 20);
        Inbox again = new Inbox();
        broadcaster(rig, group, topic, name, again);
        again.awaitTexts(more, Rig.SOON);
        Check.equal(20, again.size(), "deliveries to the member that came back");
    }

    private static DefaultMQPushConsumer broadcaster(Rig rig, String group, String topic, String name, Inbox inbox) throws Exception {
        return rig.push(group, topic, "*", Rig.into(inbox), c -> {
            Version.broadcasting(c);
            c.setInstanceName(name);
        });
    }

    private static void twoGroups(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        Inbox one = new Inbox();
        Inbox other = new Inbox();
        rig.collector(rig.unique("cg"), topic, one);
        rig.collector(rig.unique("cg"), topic, other);
        List<String> texts = Sending.sendAll(producer, topic, "m", 40);
        one.awaitTexts(texts, Rig.SOON);
        other.awaitTexts(texts, Rig.SOON);
        Check.equal(80, one.size() + other.size(), "deliveries");
    }

    private static void consumerRestart(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        String group = rig.unique("cg");
        List<String> texts = Sending.sendAll(producer, topic, "m", 1000);
        Inbox inbox = new Inbox();
        MessageListenerConcurrently slow = (messages, context) -> {
            pause(3);
            inbox.addAll(messages);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
        DefaultMQPushConsumer first = rig.push(group, topic, "*", slow, c -> {
            c.setPullBatchSize(16);
            c.setPullThresholdForQueue(32);
        });
        inbox.awaitDistinct(200, Rig.SOON);
        first.shutdown();
        int before = inbox.size();
        Check.that(before < 1000, "the first consumer took all before it was stopped");
        rig.push(group, topic, "*", slow);
        inbox.awaitTexts(texts, Rig.SOON);
        rig.note("%d before, %d twice", before, inbox.repeats());
        // what was taken but not yet handled when it stopped: at most four queues with 48 messages each
        Check.that(inbox.repeats() <= 192, "%d of 1000 came twice", inbox.repeats());
    }

    private static void longPoll(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 1);
        Inbox inbox = new Inbox();
        rig.collector(rig.unique("cg"), topic, inbox);
        Sending.sendAll(producer, topic, "warm", 1);
        inbox.awaitDistinct(1, Rig.SOON);
        List<Long> millis = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            // long enough for the consumer to be waiting again
            pause(i == 4 ? 6000 : 300);
            long sent = System.nanoTime();
            Sending.sendAll(producer, topic, "m" + i, 1);
            Inbox.Arrival last = inbox.awaitDistinct(i + 2, Rig.SOON).get(i + 1);
            millis.add((last.nanos() - sent) / 1_000_000);
        }
        rig.note("%s ms", millis);
        Check.that(millis.stream().allMatch(ms -> ms < 1000), "slower than a second: %s ms", millis);
    }

    static void pause(long millis) {
        try {
            TimeUnit.MILLISECONDS.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
