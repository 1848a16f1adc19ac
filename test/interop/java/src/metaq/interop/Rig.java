package metaq.interop;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListener;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageQueue;

/** What one scenario works with: names of its own, clients that are ended with it, and bounded waits. */
final class Rig {
    /** The bound for what a server does at once, on a busy machine and with a heartbeat that was missed. */
    static final Duration SOON = Duration.ofSeconds(40);

    private static final String RUN = Long.toString(System.currentTimeMillis() / 100 * 100_000 + ProcessHandle.current().pid() % 100_000, 36);
    private static final AtomicInteger NUMBER = new AtomicInteger();

    private final Settings settings;
    private final String scenario;
    private final Deque<Runnable> endings = new ArrayDeque<>();
    private final StringBuilder notes = new StringBuilder();

    Rig(Settings settings, String scenario) {
        this.settings = settings;
        this.scenario = scenario;
    }

    /** A name that no other scenario and no other run has. */
    String unique(String role) {
        return role + "-" + scenario + "-" + Version.LABEL + "-" + RUN + "-" + NUMBER.incrementAndGet();
    }

    String nameServer() {
        return settings.nameServer();
    }

    /** Adds a remark to the line that reports this scenario. */
    synchronized void note(String format, Object... args) {
        notes.append(notes.length() == 0 ? ": " : ", ").append(String.format(format, args));
    }

    synchronized String notes() {
        return notes.toString();
    }

    // ---- clients

    /** Address and timers; the short ones bring news within two seconds that else take thirty. */
    void tune(ClientConfig client) {
        client.setNamesrvAddr(settings.nameServer());
        client.setVipChannelEnabled(Boolean.getBoolean("com.rocketmq.sendMessageWithVIPChannel"));
        if (!settings.stock()) {
            client.setPollNameServerInterval(2000);
            client.setHeartbeatBrokerInterval(2000);
            client.setPersistConsumerOffsetInterval(1000);
        }
    }

    DefaultMQProducer producer() throws Exception {
        return producer(p -> {});
    }

    DefaultMQProducer producer(Consumer<DefaultMQProducer> with) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(unique("pg"));
        tune(producer);
        producer.setSendMsgTimeout(10_000);
        with.accept(producer);
        onEnd(producer::shutdown);
        producer.start();
        return producer;
    }

    /** A push consumer that reads the topic from its first message on and keeps all in the inbox. */
    DefaultMQPushConsumer collector(String group, String topic, Inbox inbox) throws Exception {
        return push(group, topic, "*", into(inbox));
    }

    static MessageListenerConcurrently into(Inbox inbox) {
        return (messages, context) -> {
            inbox.addAll(messages);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
    }

    DefaultMQPushConsumer push(String group, String topic, String tags, MessageListener listener) throws Exception {
        return push(group, topic, tags, listener, c -> {});
    }

    DefaultMQPushConsumer push(String group, String topic, String tags, MessageListener listener,
        Consumer<DefaultMQPushConsumer> with) throws Exception {
        return start(group, listener, with, consumer -> consumer.subscribe(topic, tags));
    }

    /** A push consumer that reads from the first message on what a SQL92 condition lets through. */
    DefaultMQPushConsumer pushBySql(String group, String topic, String condition, MessageListener listener) throws Exception {
        return start(group, listener, c -> {}, consumer -> consumer.subscribe(topic, MessageSelector.bySql(condition)));
    }

    private interface Subscription {
        void of(DefaultMQPushConsumer consumer) throws Exception;
    }

    private DefaultMQPushConsumer start(String group, MessageListener listener, Consumer<DefaultMQPushConsumer> with,
        Subscription subscription) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        tune(consumer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(4);
        consumer.setConsumeThreadMax(4);
        with.accept(consumer); // first: a namespace changes the names of topics
        subscription.of(consumer);
        if (listener instanceof MessageListenerOrderly orderly) {
            consumer.registerMessageListener(orderly);
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) listener);
        }
        onEnd(consumer::shutdown);
        consumer.start();
        return consumer;
    }

    DefaultMQPullConsumer puller(String group) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(group);
        tune(consumer);
        onEnd(consumer::shutdown);
        consumer.start();
        return consumer;
    }

    /** A lite pull consumer that is not started yet; it is ended with the scenario. */
    DefaultLitePullConsumer litePuller(String group) {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(group);
        tune(consumer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        onEnd(() -> {
            if (consumer.isRunning()) {
                consumer.shutdown();
            }
        });
        return consumer;
    }

    // ---- topics

    /** Creates a topic and waits until its route is known. */
    String topic(DefaultMQProducer producer, int queues) throws Exception {
        String topic = unique("t");
        // a client that just starts may not manage it within its fixed 5 seconds on a busy machine
        until(SOON, "the topic " + topic, () -> {
            Version.createTopic(producer, topic, queues);
            return true;
        });
        awaitQueues(producer, topic, queues);
        return topic;
    }

    /** The queues of a topic in order, once the route has as many as that. */
    List<MessageQueue> awaitQueues(DefaultMQProducer producer, String topic, int queues) throws Exception {
        until(SOON, "a route with " + queues + " queues of " + topic,
            () -> queues(producer.fetchPublishMessageQueues(topic)).size() == queues);
        return queues(producer.fetchPublishMessageQueues(topic));
    }

    static List<MessageQueue> queues(Collection<MessageQueue> some) {
        return List.copyOf(new TreeSet<>(some));
    }

    /** The address of the broker that has this queue. */
    static String broker(DefaultMQProducer producer, MessageQueue queue) {
        MQClientInstance client = producer.getDefaultMQProducerImpl().getMqClientFactory();
        client.updateTopicRouteInfoFromNameServer(queue.getTopic());
        String address = client.findBrokerAddressInPublish(queue.getBrokerName());
        Check.that(address != null, "no address of broker %s", queue.getBrokerName());
        return address;
    }

    /** The queues of the topic that the consumer holds now. */
    static List<MessageQueue> held(DefaultMQPushConsumer consumer, String topic) {
        return consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet().stream()
            .filter(q -> q.getTopic().equals(topic)).sorted(Comparator.naturalOrder()).toList();
    }

    // ---- waits and ends

    /** Looks again and again until it holds; what throws does not hold. */
    void until(Duration limit, String what, Callable<Boolean> holds) throws InterruptedException {
        long end = System.nanoTime() + limit.toNanos();
        Exception last = null;
        while (System.nanoTime() < end) {
            try {
                if (holds.call()) {
                    return;
                }
                last = null;
            } catch (InterruptedException e) {
                throw e;
            } catch (Exception e) {
                last = e;
            }
            TimeUnit.MILLISECONDS.sleep(50);
        }
        throw new Check.Failed("after " + limit.toSeconds() + " s there is not: " + what + (last == null ? "" : "; " + last));
    }

    /** Restarts the server, "kill" or "term", and waits until it serves. */
    void restart(String how) throws Exception {
        Process process = new ProcessBuilder("/bin/bash", "-c", settings.restartCommand().orElseThrow() + " " + how)
            .redirectErrorStream(true).start();
        process.getOutputStream().close();
        String said = new String(process.getInputStream().readAllBytes());
        Check.equal(0, process.waitFor(), "exit code of the restart, which said: " + Check.brief(said));
    }

    synchronized void onEnd(Runnable ending) {
        endings.push(ending);
    }

    /** Ends all clients, the youngest first; what they say then is no matter of the scenario. */
    void close() {
        Runnable ending;
        while ((ending = next()) != null) {
            try {
                ending.run();
            } catch (RuntimeException e) {
                note("while ending: %s", e);
            }
        }
    }

    private synchronized Runnable next() {
        return endings.poll();
    }
}
