package metaq.interop;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Bodies and properties of all sizes and scripts, compressed or not. */
final class Bodies {
    private static final int LIMIT = 4 << 20;
    private static final String SCRIPTS = "žluťoučký kůň · 消息队列 · رسالة · 🚀𝕏 · \\ \" ' { } : , \t \n \u007f \u00a0";

    private Bodies() {}

    static void register(Suite suite) {
        suite.add("body-big", Bodies::big);
        suite.add("body-small", Bodies::small);
        suite.add("unicode", Bodies::unicode);
        suite.add("properties", Bodies::properties);
        suite.add("compression-zlib", Bodies::zlib);
    }

    private static void big(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer(p -> {
            p.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
            p.setSendMsgTimeout(30_000);
        });
        String topic = rig.topic(producer, 2);
        Random random = new Random(7);
        List<byte[]> bodies = new ArrayList<>();
        for (int size : new int[] {LIMIT - 1, LIMIT, LIMIT - 4096, 1 << 20}) {
            byte[] body = new byte[size];
            random.nextBytes(body);
            bodies.add(body);
            producer.send(new Message(topic, "TagA", "n" + (bodies.size() - 1), body));
        }
        Inbox inbox = new Inbox();
        rig.collector(rig.unique("cg"), topic, inbox);
        for (Inbox.Arrival a : inbox.awaitDistinct(bodies.size(), Rig.SOON)) {
            byte[] want = bodies.get(Integer.parseInt(a.message().getKeys().substring(1)));
            Check.bytes(want, a.message().getBody(), "body of " + a.message().getKeys());
        }
    }

    private static void small(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 1);
        byte[][] bodies = {{0}, {32}, {-1}, {0, 0}, {10}, {123}};
        for (byte[] body : bodies) {
            producer.send(new Message(topic, body));
        }
        Inbox inbox = new Inbox();
        rig.collector(rig.unique("cg"), topic, inbox);
        for (Inbox.Arrival a : inbox.awaitCount(bodies.length, Rig.SOON)) {
            MessageExt got = a.message();
            Check.bytes(bodies[(int) got.getQueueOffset()], got.getBody(), "body at " + got.getQueueOffset());
            Check.equal(null, got.getTags(), "tags");
            Check.equal(null, got.getKeys(), "keys");
        }
    }

    private static void unicode(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 1);
        Message m = new Message(topic, "метка-消息", "ключ🚀", SCRIPTS.getBytes(StandardCharsets.UTF_8));
        m.putUserProperty("имя", SCRIPTS);
        m.putUserProperty("plain", "quote\" back\\slash / tab\t newline\n end");
        producer.send(m);
        Inbox inbox = new Inbox();
        rig.push(rig.unique("cg"), topic, "метка-消息 || other", Rig.into(inbox));
        MessageExt got = inbox.awaitDistinct(1, Rig.SOON).get(0).message();
        Check.bytes(m.getBody(), got.getBody(), "body");
        Check.equal("метка-消息", got.getTags(), "tags");
        Check.equal("ключ🚀", got.getKeys(), "keys");
        Check.equal(SCRIPTS, got.getUserProperty("имя"), "property");
        Check.equal(m.getUserProperty("plain"), got.getUserProperty("plain"), "property with escapes");
    }

    private static void properties(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 1);
        Message m = new Message(topic, "TagA", "a b c", 0x7f00ff01, "x".getBytes(StandardCharsets.UTF_8), false);
        for (int i = 0; i < 100; i++) {
            m.putUserProperty("p" + i, "value " + i);
        }
        m.putUserProperty("long", "v".repeat(20_000));
        Map<String, String> sent = Map.copyOf(m.getProperties());
        producer.send(m);
        Inbox inbox = new Inbox();
        rig.collector(rig.unique("cg"), topic, inbox);
        MessageExt got = inbox.awaitDistinct(1, Rig.SOON).get(0).message();
        sent.forEach((k, v) -> Check.equal(v, got.getProperty(k), "property " + k));
        Check.equal("a b c", got.getKeys(), "keys");
        Check.equal(0x7f00ff01, got.getFlag(), "flag");
        Check.equal(false, got.isWaitStoreMsgOK(), "wait for store");
    }

    private static void zlib(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        roundTrip(rig, producer, Version.ZLIB);
    }

    /**
     * Bodies just at the limit of compression and far above it arrive unpacked and were stored packed.
     *
     * @param type the bits of the system flag that tell the compression, in what the client hands out
     */
    static void roundTrip(Rig rig, DefaultMQProducer producer, int type) throws Exception {
        String topic = rig.topic(producer, 1);
        List<String> texts = List.of("short", "ab".repeat(2048), "compress me, 压缩 ".repeat(20_000));
        for (String text : texts) {
            producer.send(new Message(topic, "TagA", text.getBytes(StandardCharsets.UTF_8)));
        }
        Inbox inbox = new Inbox();
        rig.collector(rig.unique("cg"), topic, inbox);
        inbox.awaitTexts(texts, Rig.SOON);
        for (Inbox.Arrival a : inbox.all()) {
            boolean packed = a.message().getBody().length >= 4096;
            Check.that(a.message().getStoreSize() < 4096, "%d bytes stored of %d", a.message().getStoreSize(), a.message().getBody().length);
            Check.equal(packed, (a.message().getSysFlag() & type) != 0, "flag of compression, " + a.message().getSysFlag());
        }
    }
}
