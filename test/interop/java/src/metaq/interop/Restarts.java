package metaq.interop;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/** The server ends and comes back while clients work: nothing that was acknowledged may be lost. */
final class Restarts {
    private static final Duration LIMIT = Duration.ofSeconds(150);

    private Restarts() {}

    static void register(Suite suite) {
        suite.add("restart-kill", Suite.Kind.RESTARTS, LIMIT, rig -> restart(rig, "kill"));
        suite.add("restart-term", Suite.Kind.RESTARTS, LIMIT, rig -> restart(rig, "term"));
        suite.add("restart-orderly", Suite.Kind.RESTARTS, LIMIT, Restarts::orderly);
        suite.add("restart-offsets", Suite.Kind.RESTARTS, LIMIT, Restarts::offsets);
    }

    /** Producers that go on whatever happens, and what the server acknowledged to them. */
    private static final class Traffic {
        private final DefaultMQProducer producer;
        private final String topic;
        private final List<Thread> threads = new ArrayList<>();
        private final Set<String> acknowledged = new TreeSet<>();
        private final AtomicInteger refused = new AtomicInteger();
        private final CountDownLatch stop = new CountDownLatch(1);

        Traffic(Rig rig, DefaultMQProducer producer, String topic, int producers) {
            this.producer = producer;
            this.topic = topic;
            for (int i = 0; i < producers; i++) {
                String name = "p" + i;
                Thread thread = new Thread(() -> send(name), name);
                thread.setDaemon(true);
                threads.add(thread);
                thread.start();
            }
            rig.onEnd(stop::countDown);
        }

        /** Sends name/0, name/1 … each until it is acknowledged; so the first copies are stored in order. */
        private void send(String name) {
            int number = 0;
            try {
                while (!stop.await(2, TimeUnit.MILLISECONDS)) {
                    String text = name + "/" + number;
                    Message m = new Message(topic, "TagA", text.getBytes(StandardCharsets.UTF_8));
                    try {
                        if (producer.send(m, new SelectMessageQueueByHash(), name).getSendStatus() == SendStatus.SEND_OK) {
                            synchronized (this) {
                                acknowledged.add(text);
                            }
                            number++;
                        }
                    } catch (InterruptedException e) {
                        return;
                    } catch (Exception e) {
                        refused.incrementAndGet();
                        stop.await(50, TimeUnit.MILLISECONDS); // a server that is away refuses at once
                    }
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }

        synchronized int count() {
            return acknowledged.size();
        }

        Set<String> end() throws InterruptedException {
            stop.countDown();
            for (Thread t : threads) {
                t.join(15_000);
                Check.that(!t.isAlive(), "a send does not end");
            }
            synchronized (this) {
                return Set.copyOf(acknowledged);
            }
        }
    }

    /** Restarts with traffic before, while and after, and gives what was acknowledged. */
    private static Set<String> restartUnder(Rig rig, Traffic traffic, String how) throws Exception {
        rig.until(Rig.SOON, "300 acknowledged messages before the restart", () -> traffic.count() >= 300);
        long begin = System.nanoTime();
        rig.restart(how);
        int before = traffic.count();
        rig.until(Duration.ofSeconds(60), "300 acknowledged messages after the restart", () -> traffic.count() >= before + 300);
        rig.note("serves clients again after %.1f s", (System.nanoTime() - begin) / 1e9);
        Set<String> acknowledged = traffic.end();
        rig.note("%d acknowledged, %d refused", acknowledged.size(), traffic.refused.get());
        return acknowledged;
    }

    private static void awaitAll(Rig rig, Inbox inbox, Set<String> acknowledged) throws Exception {
        long begin = System.nanoTime();
        inbox.awaitTexts(acknowledged, Rig.SOON);
        rig.note("delivered after %.1f s, %d twice", (System.nanoTime() - begin) / 1e9, inbox.repeats());
    }

    private static DefaultMQProducer impatient(Rig rig) throws Exception {
        return rig.producer(p -> p.setSendMsgTimeout(3000));
    }

    private static void restart(Rig rig, String how) throws Exception {
        DefaultMQProducer producer = impatient(rig);
        String topic = rig.topic(producer, 4);
        String group = rig.unique("cg");
        Inbox inbox = new Inbox();
        rig.collector(group, topic, inbox);
        Set<String> acknowledged = restartUnder(rig, new Traffic(rig, producer, topic, 3), how);
        awaitAll(rig, inbox, acknowledged);
        // a reader of its own sees them too, from the first one on
        Inbox again = new Inbox();
        rig.collector(rig.unique("cg"), topic, again);
        awaitAll(rig, again, acknowledged);
    }

    private static void orderly(Rig rig) throws Exception {
        DefaultMQProducer producer = impatient(rig);
        String topic = rig.topic(producer, 4);
        Inbox inbox = new Inbox();
        rig.push(rig.unique("cg"), topic, "*", (MessageListenerOrderly) (messages, context) -> {
            inbox.addAll(messages);
            return ConsumeOrderlyStatus.SUCCESS;
        });
        Set<String> acknowledged = restartUnder(rig, new Traffic(rig, producer, topic, 3), "kill");
        awaitAll(rig, inbox, acknowledged);
        Map<String, Integer> last = new HashMap<>();
        for (String text : inbox.texts()) {
            String[] parts = text.split("/");
            int number = Integer.parseInt(parts[1]);
            int before = last.getOrDefault(parts[0], -1);
            Check.that(number <= before + 1, "%s: %d came after %d", parts[0], number, before);
            last.merge(parts[0], number, Math::max);
        }
    }

    /** Topics, routes, offsets and messages are what they were, after an orderly and after a hard end. */
    private static void offsets(Rig rig) throws Exception {
        DefaultMQProducer producer = impatient(rig);
        String topic = rig.topic(producer, 3);
        String group = rig.unique("cg");
        List<MessageQueue> queues = rig.awaitQueues(producer, topic, 3);
        DefaultMQPullConsumer asks = rig.puller(group);
        for (MessageQueue queue : queues) {
            for (int i = 0; i < 10; i++) {
                producer.send(Sending.text(topic, "TagA", queue.getQueueId() + "/" + i), queue);
            }
            Positions.commit(rig, asks, queue, 4 + queue.getQueueId());
        }
        for (String how : new String[] {"term", "kill"}) {
            rig.restart(how);
            DefaultMQProducer fresh = rig.producer();
            Check.equal(queues, rig.awaitQueues(fresh, topic, 3), "queues after " + how);
            DefaultMQPullConsumer later = rig.puller(group);
            for (MessageQueue queue : queues) {
                rig.until(Rig.SOON, "ten messages after " + how, () -> later.maxOffset(queue) == 10);
                Check.equal(4L + queue.getQueueId(), later.fetchConsumeOffset(queue, true), "committed offset after " + how);
                Check.equal(10, Pulling.read(later, queue, 0).size(), "messages after " + how);
            }
        }
    }
}
