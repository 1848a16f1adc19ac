package metaq.interop;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyRemotingClient;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/** Requests by the transport of the official client, past what its producers and consumers check or change. */
final class Raw {
    private static final int SEND_MESSAGE = 10;
    private static final int QUERY_CONSUMER_OFFSET = 14;
    private static final int GET_ROUTE = 105;
    private static final int QUERY_NOT_FOUND = 22;

    private final String nameServer;
    private final NettyRemotingClient transport = new NettyRemotingClient(new NettyClientConfig());

    Raw(Rig rig) {
        nameServer = rig.nameServer();
        rig.onEnd(transport::shutdown);
        transport.start();
    }

    private RemotingCommand ask(String address, int code, Map<String, String> fields, byte[] body) throws Exception {
        RemotingCommand request = RemotingCommand.createRequestCommand(code, null);
        request.setExtFields(new HashMap<>(fields));
        request.setBody(body);
        return transport.invokeSync(address, request, 10_000);
    }

    RemotingCommand route(String topic) throws Exception {
        return ask(nameServer, GET_ROUTE, Map.of("topic", topic), null);
    }

    RemotingCommand send(String broker, String topic) throws Exception {
        return ask(broker, SEND_MESSAGE, Map.of(
            "producerGroup", "pg", "topic", topic, "defaultTopic", "TBW102", "defaultTopicQueueNums", "4",
            "queueId", "0", "sysFlag", "0", "bornTimestamp", "" + System.currentTimeMillis(), "flag", "0",
            "properties", "", "reconsumeTimes", "0"), "x".getBytes(StandardCharsets.UTF_8));
    }

    /**
     * The offset that a group committed, -1 if it is not known. A consumer that reads it puts it in the place of what it
     * noted itself, and a member more in the group takes queues: so neither of them is asked.
     */
    long committed(DefaultMQProducer producer, String group, MessageQueue queue) throws Exception {
        RemotingCommand answer = ask(Rig.broker(producer, queue), QUERY_CONSUMER_OFFSET, Map.of(
            "consumerGroup", group, "topic", queue.getTopic(), "queueId", "" + queue.getQueueId()), null);
        if (answer.getCode() == QUERY_NOT_FOUND) {
            return -1;
        }
        Check.equal(0, answer.getCode(), "code of the committed offset, " + answer.getRemark());
        return Long.parseLong(answer.getExtFields().get("offset"));
    }
}
