package metaq.interop;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.exception.RequestTimeoutException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Requests whose sender waits for the answer of a consumer. */
final class Requests {
    private static final int SYSTEM_ERROR = 1;
    private static final long PATIENCE = 30_000;

    private Requests() {}

    static void register(Suite suite) {
        suite.add("request-sync", Requests::sync);
        suite.add("request-async", Requests::async);
        suite.add("request-large", Requests::large);
        suite.add("request-timeout", Requests::timeout);
        suite.add("request-gone", Requests::gone);
    }

    /** A consumer that keeps the requests, and a producer for the replies: a replier that is told when to reply. */
    private static final class Replier {
        final BlockingQueue<MessageExt> requests = new LinkedBlockingQueue<>();
        final DefaultMQProducer producer;

        Replier(Rig rig, String topic) throws Exception {
            producer = rig.producer(p -> p.setRetryTimesWhenSendFailed(0));
            rig.push(rig.unique("cg"), topic, "*", (MessageListenerConcurrently) (messages, context) -> {
                requests.addAll(messages);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }

        MessageExt next() throws InterruptedException {
            MessageExt request = requests.poll(PATIENCE, TimeUnit.MILLISECONDS);
            Check.that(request != null, "no request came");
            return request;
        }

        SendResult reply(MessageExt request, byte[] body) throws Exception {
            return producer.send(MessageUtil.createReplyMessage(request, body));
        }

        /** Replies with "re: " and the request's text to n requests, on a thread. */
        void serve(Rig rig, int n, Set<String> stored) {
            Thread thread = new Thread(() -> {
                try {
                    for (int i = 0; i < n; i++) {
                        MessageExt request = next();
                        SendResult result = reply(request, ("re: " + text(request)).getBytes(StandardCharsets.UTF_8));
                        if (result.getSendStatus() == SendStatus.SEND_OK) {
                            stored.add(result.getOffsetMsgId());
                        }
                    }
                } catch (InterruptedException e) {
                    // the scenario has what it wanted
                } catch (Exception e) {
                    rig.note("the replier failed: %s", e);
                }
            }, "replier");
            thread.setDaemon(true);
            thread.start();
            rig.onEnd(thread::interrupt);
        }
    }

    private static String text(Message m) {
        return new String(m.getBody(), StandardCharsets.UTF_8);
    }

    private static void sync(Rig rig) throws Exception {
        DefaultMQProducer asks = rig.producer();
        String topic = rig.topic(asks, 2);
        Replier replier = new Replier(rig, topic);
        Set<String> ids = ConcurrentHashMap.newKeySet();
        replier.serve(rig, 10, ids);
        List<String> correlations = new ArrayList<>();
        String replyTopic = null;
        for (int i = 0; i < 10; i++) {
            Message request = Sending.text(topic, "TagA", "question-" + i);
            Message reply = asks.request(request, PATIENCE);
            Check.equal("re: question-" + i, text(reply), "reply");
            Check.equal(request.getProperty("CORRELATION_ID"), reply.getProperty("CORRELATION_ID"), "correlation id");
            Check.equal("reply", reply.getProperty("MSG_TYPE"), "type");
            Check.that(reply.getProperty("PUSH_REPLY_TIME") != null && reply.getProperty("ARRIVE_TIME") != null, "times are missing");
            correlations.add(reply.getProperty("CORRELATION_ID"));
            replyTopic = reply.getTopic();
        }
        Check.that(replyTopic.endsWith("_REPLY_TOPIC"), "reply topic %s", replyTopic);
        stored(rig, replyTopic, correlations, ids);
    }

    /** Replies are messages of their topic too, at the place that the replier was told. */
    private static void stored(Rig rig, String replyTopic, List<String> correlations, Set<String> ids) throws Exception {
        DefaultMQPullConsumer reader = rig.puller(rig.unique("reader"));
        rig.until(Rig.SOON, "all replies stored", () -> {
            Map<String, String> found = new HashMap<>();
            for (MessageQueue queue : reader.fetchSubscribeMessageQueues(replyTopic)) {
                for (MessageExt m : Pulling.read(reader, queue, Math.max(reader.minOffset(queue), reader.maxOffset(queue) - 2000))) {
                    found.put(m.getProperty("CORRELATION_ID"),
                        ((MessageClientExt) m).getOffsetMsgId());
                }
            }
            return found.keySet().containsAll(correlations) && ids.size() == correlations.size()
                && correlations.stream().allMatch(c -> ids.contains(found.get(c)));
        });
    }

    /**
     * The client calls back with null when the request is sent, and again with the reply; so what counts are calls with
     * something in them.
     */
    private static void async(Rig rig) throws Exception {
        int n = 50;
        DefaultMQProducer asks = rig.producer();
        String topic = rig.topic(asks, 4);
        new Replier(rig, topic).serve(rig, n, ConcurrentHashMap.newKeySet());
        BlockingQueue<Object> answers = new LinkedBlockingQueue<>();
        for (int i = 0; i < n; i++) {
            asks.request(Sending.text(topic, "TagA", "question-" + i), new RequestCallback() {
                @Override
                public void onSuccess(Message reply) {
                    if (reply != null) {
                        answers.add(text(reply));
                    }
                }

                @Override
                public void onException(Throwable e) {
                    answers.add(e);
                }
            }, PATIENCE);
        }
        Set<Object> got = new HashSet<>();
        for (int i = 0; i < n; i++) {
            Object answer = answers.poll(PATIENCE + 5000, TimeUnit.MILLISECONDS);
            Check.that(answer instanceof String, "after %d replies: %s", i, answer);
            got.add(answer);
        }
        Check.equal(n, got.size(), "different replies");
        Check.that(got.contains("re: question-0") && got.contains("re: question-" + (n - 1)), "replies %s", got);
    }

    /** Both ways above the size from which clients compress. */
    private static void large(Rig rig) throws Exception {
        DefaultMQProducer asks = rig.producer();
        String topic = rig.topic(asks, 1);
        Replier replier = new Replier(rig, topic);
        byte[] body = "0123456789 ".repeat(50_000).getBytes(StandardCharsets.UTF_8);
        BlockingQueue<Object> answers = new LinkedBlockingQueue<>();
        Thread asking = new Thread(() -> {
            try {
                answers.add(asks.request(new Message(topic, body), PATIENCE));
            } catch (Exception e) {
                answers.add(e);
            }
        }, "asking");
        asking.setDaemon(true);
        asking.start();
        MessageExt request = replier.next();
        Check.bytes(body, request.getBody(), "request");
        Check.equal(SendStatus.SEND_OK, replier.reply(request, request.getBody()).getSendStatus(), "status of the reply");
        Object answer = answers.poll(PATIENCE, TimeUnit.MILLISECONDS);
        Check.that(answer instanceof Message, "answer: %s", answer);
        Check.bytes(body, ((Message) answer).getBody(), "reply");
    }

    /** Nobody replies in time; the reply that comes too late harms neither side. */
    private static void timeout(Rig rig) throws Exception {
        DefaultMQProducer asks = rig.producer();
        String topic = rig.topic(asks, 1);
        Replier replier = new Replier(rig, topic);
        long begin = System.nanoTime();
        Check.fails(RequestTimeoutException.class, "request without a reply", () -> asks.request(Sending.text(topic, "TagA", "first"), 2000));
        long millis = Duration.ofNanos(System.nanoTime() - begin).toMillis();
        Check.that(millis >= 1900 && millis < 15_000, "gave up after %d ms", millis);
        Check.equal(SendStatus.SEND_OK, replier.reply(replier.next(), new byte[] {1}).getSendStatus(), "status of the late reply");
        replier.serve(rig, 1, new HashSet<>());
        Check.equal("re: second", text(asks.request(Sending.text(topic, "TagA", "second"), PATIENCE)), "the next reply");
    }

    /** Who asked has left: the replier is told, and why. */
    private static void gone(Rig rig) throws Exception {
        DefaultMQProducer asks = rig.producer();
        String topic = rig.topic(asks, 1);
        Replier replier = new Replier(rig, topic);
        asks.request(Sending.text(topic, "TagA", "question"), new RequestCallback() {
            @Override
            public void onSuccess(Message reply) {}

            @Override
            public void onException(Throwable e) {}
        }, PATIENCE);
        MessageExt request = replier.next();
        asks.shutdown();
        MQClientException e = Check.fails(MQClientException.class, "reply to who has left", () -> {
            for (int i = 0; i < 50; i++) { // that it has left may take a moment to be known
                replier.reply(request, new byte[] {1});
                TimeUnit.MILLISECONDS.sleep(100);
            }
        });
        Check.equal(SYSTEM_ERROR, e.getResponseCode(), "code");
        Check.contains(String.valueOf(e.getCause()), "push reply message fail, channel of <" + request.getProperty("REPLY_TO_CLIENT") + "> not found");
    }
}
