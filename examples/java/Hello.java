import java.nio.charset.StandardCharsets;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/** Sends one message and receives it, with the official client as it is. The name server's address may be given. */
public class Hello {
    public static void main(String[] args) throws Exception {
        String server = args.length > 0 ? args[0] : "127.0.0.1:9876";
        String text = "hello " + UUID.randomUUID();

        DefaultMQProducer producer = new DefaultMQProducer("hello-producer");
        producer.setNamesrvAddr(server);
        producer.start();
        System.out.println("sent:     " + producer.send(new Message("Greetings", text.getBytes(StandardCharsets.UTF_8))));

        CountDownLatch received = new CountDownLatch(1);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("hello-consumer");
        consumer.setNamesrvAddr(server);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("Greetings", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(m -> {
                String body = new String(m.getBody(), StandardCharsets.UTF_8);
                System.out.println("received: " + body);
                if (body.equals(text)) {
                    received.countDown();
                }
            });
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();

        boolean ok = received.await(60, TimeUnit.SECONDS);
        consumer.shutdown();
        producer.shutdown();
        System.exit(ok ? 0 : 1);
    }
}
