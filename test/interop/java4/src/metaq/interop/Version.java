package metaq.interop;

import java.util.HashSet;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.protocol.body.LockBatchRequestBody;
import org.apache.rocketmq.common.protocol.body.UnlockBatchRequestBody;
import org.apache.rocketmq.common.protocol.heartbeat.MessageModel;

/** What differs between the client versions: here 4.9. */
final class Version {
    static final String LABEL = "java4";

    /** The bit for "compressed": this client knows one compression and keeps the bit. */
    static final int ZLIB = 1;

    private Version() {}

    static void register(Suite suite) {}

    static void createTopic(DefaultMQProducer producer, String topic, int queues) throws Exception {
        producer.createTopic("TBW102", topic, queues);
    }

    static void broadcasting(DefaultMQPushConsumer consumer) {
        consumer.setMessageModel(MessageModel.BROADCASTING);
    }

    /** Locks a queue for a client id and gives what that client has locked of it. */
    static Set<MessageQueue> lock(DefaultMQProducer producer, String broker, String group, String client, MessageQueue queue)
        throws Exception {
        LockBatchRequestBody body = new LockBatchRequestBody();
        body.setConsumerGroup(group);
        body.setClientId(client);
        body.setMqSet(new HashSet<>(Set.of(queue)));
        return producer.getDefaultMQProducerImpl().getMqClientFactory().getMQClientAPIImpl().lockBatchMQ(broker, body, 10_000);
    }

    static void unlock(DefaultMQProducer producer, String broker, String group, String client, MessageQueue queue) throws Exception {
        UnlockBatchRequestBody body = new UnlockBatchRequestBody();
        body.setConsumerGroup(group);
        body.setClientId(client);
        body.setMqSet(new HashSet<>(Set.of(queue)));
        producer.getDefaultMQProducerImpl().getMqClientFactory().getMQClientAPIImpl().unlockBatchMQ(broker, body, 10_000, false);
    }
}
