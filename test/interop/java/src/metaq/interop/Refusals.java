package metaq.interop;

import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/** What must be refused, and with which code. */
final class Refusals {
    private static final int MESSAGE_ILLEGAL = 13;
    private static final int NO_PERMISSION = 16;
    private static final int TOPIC_NOT_EXIST = 17;
    private static final int INVALID_PARAMETER = 29;

    private Refusals() {}

    static void register(Suite suite) {
        suite.add("refused-topic", Refusals::topic);
        suite.add("refused-topic-by-server", Refusals::topicByServer);
        suite.add("refused-body", Refusals::body);
        suite.add("refused-properties", Refusals::properties);
        suite.add("refused-queue", Refusals::queue);
        suite.add("unknown-route", Refusals::unknownRoute);
    }

    private static void topic(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        for (String bad : new String[] {"bad topic", "bad.topic!", "x".repeat(128), "SCHEDULE_TOPIC_XXXX"}) {
            Check.fails(MQClientException.class, "topic " + bad, () -> producer.send(new Message(bad, new byte[] {1})));
        }
        // the same producer goes on
        String good = rig.topic(producer, 1);
        Check.equal(SendStatus.SEND_OK, producer.send(new Message(good, new byte[] {1})).getSendStatus(), "status");
    }

    /** The client checks names itself; so these go past the check. */
    private static void topicByServer(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String good = rig.topic(producer, 1);
        MessageQueue queue = producer.fetchPublishMessageQueues(good).get(0);
        String broker = Rig.broker(producer, queue);
        Raw raw = new Raw(rig);
        Check.equal(0, raw.send(broker, good).getCode(), "code of a good name");
        Check.equal(INVALID_PARAMETER, raw.send(broker, "bad topic!").getCode(), "code of a bad name");
        Check.equal(NO_PERMISSION, raw.send(broker, "SCHEDULE_TOPIC_XXXX").getCode(), "code of a system topic");
        RemotingCommand illegal = raw.send(broker, "bad topic!");
        Check.that(illegal.getRemark() != null && !illegal.getRemark().isBlank(), "a refusal without a reason");
    }

    private static void body(Rig rig) throws Exception {
        DefaultMQProducer strict = rig.producer(p -> p.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE));
        String topic = rig.topic(strict, 1);
        Message big = new Message(topic, new byte[(4 << 20) + 1]);
        MQClientException local = Check.fails(MQClientException.class, "body above the client's limit", () -> strict.send(big));
        Check.equal(MESSAGE_ILLEGAL, local.getResponseCode(), "code of the client");
        Check.fails(MQClientException.class, "empty body", () -> strict.send(new Message(topic, new byte[0])));

        DefaultMQProducer loose = rig.producer(p -> {
            p.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
            p.setMaxMessageSize(16 << 20);
        });
        MQBrokerException remote = Check.fails(MQBrokerException.class, "body above the server's limit", () -> loose.send(big));
        Check.equal(MESSAGE_ILLEGAL, remote.getResponseCode(), "code of the server");
        Check.equal(SendStatus.SEND_OK, loose.send(new Message(topic, new byte[] {1})).getSendStatus(), "status afterwards");
    }

    private static void properties(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        Message m = new Message(rig.topic(producer, 1), new byte[] {1});
        m.putUserProperty("long", "v".repeat(33_000));
        MQBrokerException e = Check.fails(MQBrokerException.class, "properties above 32767 bytes", () -> producer.send(m));
        Check.equal(MESSAGE_ILLEGAL, e.getResponseCode(), "code");
    }

    private static void queue(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 2);
        MessageQueue there = producer.fetchPublishMessageQueues(topic).get(0);
        MessageQueue beyond = new MessageQueue(topic, there.getBrokerName(), 99);
        MQBrokerException e = Check.fails(MQBrokerException.class, "queue 99 of 2",
            () -> producer.send(new Message(topic, new byte[] {1}), beyond));
        Check.equal(INVALID_PARAMETER, e.getResponseCode(), "code");
    }

    private static void unknownRoute(Rig rig) throws Exception {
        RemotingCommand answer = new Raw(rig).route(rig.unique("nowhere"));
        Check.equal(TOPIC_NOT_EXIST, answer.getCode(), "code");
    }
}
