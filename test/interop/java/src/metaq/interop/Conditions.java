package metaq.interop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/** Filters by SQL92 conditions over properties. */
final class Conditions {
    private static final int SUBSCRIPTION_PARSE_FAILED = 23;

    private Conditions() {}

    static void register(Suite suite) {
        suite.add("sql", Conditions::push);
        suite.add("sql-types", Conditions::types);
        suite.add("sql-refused", Conditions::refused);
        suite.add("sql-pull", Conditions::pull);
        suite.add("sql-lite", Conditions::lite);
        suite.add("sql-rare", Conditions::rare);
        suite.add("sql-change", Conditions::change);
    }

    /** A message whose body is its name; properties are name, value, name, value … */
    private static Message message(String topic, String name, String... properties) {
        Message m = Sending.text(topic, "Tag" + name.charAt(0), name);
        for (int i = 0; i < properties.length; i += 2) {
            m.putUserProperty(properties[i], properties[i + 1]);
        }
        return m;
    }

    /** Half of the messages are there when the consumers come, the others find them waiting. */
    private static void push(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        send(producer, topic, 0, 20);
        Map<String, List<String>> wanted = new LinkedHashMap<>();
        wanted.put("n >= 10 AND n < 30 AND color = 'red'", names(10, 30, 3, 0));
        wanted.put("color IN ('green', 'blue') AND NOT (n BETWEEN 5 AND 35)", plus(names(0, 5, 3, 1), names(0, 5, 3, 2),
            names(36, 40, 3, 1), names(36, 40, 3, 2)));
        wanted.put("TAGS = 'Tagm' AND color IS NOT NULL AND nothing IS NULL", names(0, 40, 1, 0));
        wanted.put("nothing > 3", List.of());
        Map<String, Inbox> inboxes = new LinkedHashMap<>();
        for (String condition : wanted.keySet()) {
            inboxes.put(condition, new Inbox());
            rig.pushBySql(rig.unique("cg"), topic, condition, Rig.into(inboxes.get(condition)));
        }
        inboxes.get("TAGS = 'Tagm' AND color IS NOT NULL AND nothing IS NULL").awaitDistinct(20, Rig.SOON);
        send(producer, topic, 20, 40);
        for (String condition : wanted.keySet()) {
            expect(condition, inboxes.get(condition), wanted.get(condition));
        }
    }

    private static void send(DefaultMQProducer producer, String topic, int from, int to) throws Exception {
        String[] colors = {"red", "green", "blue"};
        for (int i = from; i < to; i++) {
            producer.send(message(topic, "m" + i, "n", String.valueOf(i), "color", colors[i % 3]));
        }
    }

    /** The names of messages from..to whose number leaves a rest when divided. */
    private static List<String> names(int from, int to, int divisor, int rest) {
        List<String> names = new ArrayList<>();
        for (int i = from; i < to; i++) {
            if (i % divisor == rest) {
                names.add("m" + i);
            }
        }
        return names;
    }

    @SafeVarargs
    private static List<String> plus(List<String>... lists) {
        List<String> all = new ArrayList<>();
        for (List<String> list : lists) {
            all.addAll(list);
        }
        return all;
    }

    private static void expect(String condition, Inbox inbox, List<String> wanted) throws InterruptedException {
        inbox.awaitTexts(wanted, Rig.SOON);
        Check.that(inbox.staysAt(wanted.size(), Duration.ofMillis(300)), "%s: more than was wanted, or twice: %s", condition,
            inbox.texts());
    }

    /** What a property is compared with says what is made of its text. */
    private static void types(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 1);
        MessageQueue queue = rig.awaitQueues(producer, topic, 1).get(0);
        String[][] messages = {
            {"whole", "v", "10"}, {"fraction", "v", "2.5"}, {"negative", "v", "-3"}, {"text", "v", "abc"}, {"yes", "v", "true"},
            {"shouted", "v", "TRUE"}, {"no", "v", "false"}, {"quote", "v", "it's"}, {"other", "v", "标签"}, {"none"},
        };
        for (String[] m : messages) {
            producer.send(message(topic, m[0], m.length == 1 ? new String[0] : new String[] {m[1], m[2]}), queue);
        }
        Map<String, List<String>> wanted = new LinkedHashMap<>();
        wanted.put("v > 5", List.of("whole"));
        wanted.put("v > -5", List.of("whole", "negative"));
        wanted.put("v > 2.0", List.of("whole", "fraction"));
        wanted.put("v = 10.0", List.of("whole"));
        wanted.put("v = '10'", List.of("whole"));
        wanted.put("v = TRUE", List.of("yes", "shouted"));
        wanted.put("v = 'true'", List.of("yes"));
        wanted.put("v = 'it''s'", List.of("quote"));
        wanted.put("v CONTAINS '签'", List.of("other"));
        wanted.put("v IS NULL", List.of("none"));
        wanted.put("v <> 'abc' AND v NOT IN ('true', 'TRUE', 'false')", List.of("whole", "fraction", "negative", "quote", "other"));
        wanted.put("v = 'abc' OR v = 10", List.of("whole", "text"));
        wanted.put("NOT (v < 100)", List.of());
        DefaultMQPullConsumer consumer = rig.puller(rig.unique("cg"));
        awaitSql(rig, consumer, queue);
        for (String condition : wanted.keySet()) {
            List<String> got = new ArrayList<>();
            for (long next = 0; next < messages.length;) {
                PullResult result = consumer.pull(queue, MessageSelector.bySql(condition), next, 32);
                if (result.getPullStatus() == PullStatus.FOUND) {
                    result.getMsgFoundList().forEach(m -> got.add(new String(m.getBody())));
                }
                Check.that(result.getNextBeginOffset() > next, "%s: no progress at %d", condition, next);
                next = result.getNextBeginOffset();
            }
            Check.equal(wanted.get(condition), got, condition);
        }
    }

    /** A 4.9 client refuses conditions of pull consumers until a heartbeat has told it what the server is. */
    private static void awaitSql(Rig rig, DefaultMQPullConsumer consumer, MessageQueue queue) throws InterruptedException {
        rig.until(Rig.SOON, "a pull by SQL92", () -> consumer.pull(queue, MessageSelector.bySql("TRUE"), 0, 1) != null);
    }

    /** A bad condition is told at once, and disturbs nobody else. */
    private static void refused(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 1);
        MessageQueue queue = rig.awaitQueues(producer, topic, 1).get(0);
        for (String bad : new String[] {"n BETWEEN AND", "n >", "n > 'x'", "n IN (1)", "n != 1", "color = 'red", "n = NULL", "n BETWEEN 10 AND 1"}) {
            MQClientException e = Check.fails(MQClientException.class, bad,
                () -> rig.pushBySql(rig.unique("cg"), topic, bad, Rig.into(new Inbox())));
            Check.equal(SUBSCRIPTION_PARSE_FAILED, e.getResponseCode(), "code for " + bad);
            Check.that(e.getErrorMessage() != null && !e.getErrorMessage().isBlank(), "%s: no reason", bad);
        }
        DefaultMQPullConsumer puller = rig.puller(rig.unique("cg"));
        awaitSql(rig, puller, queue);
        Inbox inbox = new Inbox();
        rig.pushBySql(rig.unique("cg"), topic, "n > 0", Rig.into(inbox));
        producer.send(message(topic, "m1", "n", "1"));
        expect("n > 0", inbox, List.of("m1"));
    }

    private static void pull(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 1);
        MessageQueue queue = rig.awaitQueues(producer, topic, 1).get(0);
        for (int i = 0; i < 20; i++) {
            producer.send(message(topic, "m" + i, "n", String.valueOf(i)), queue);
        }
        DefaultMQPullConsumer consumer = rig.puller(rig.unique("cg"));
        awaitSql(rig, consumer, queue);
        PullResult some = consumer.pull(queue, MessageSelector.bySql("n >= 15 OR n < 2"), 0, 32);
        Check.equal(PullStatus.FOUND, some.getPullStatus(), "status");
        Check.equal(plus(names(0, 2, 1, 0), names(15, 20, 1, 0)),
            some.getMsgFoundList().stream().map(m -> new String(m.getBody())).toList(), "messages");
        Check.equal(20L, some.getNextBeginOffset(), "next offset");
        PullResult none = consumer.pull(queue, MessageSelector.bySql("n > 100"), 0, 32);
        Check.equal(PullStatus.NO_MATCHED_MSG, none.getPullStatus(), "status without a match");
        Check.equal(20L, none.getNextBeginOffset(), "next offset without a match");
        PullResult end = consumer.pull(queue, MessageSelector.bySql("n > 100"), 20, 32);
        Check.equal(PullStatus.NO_NEW_MSG, end.getPullStatus(), "status at the end");
    }

    private static void lite(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 2);
        send(producer, topic, 0, 20);
        DefaultLitePullConsumer consumer = rig.litePuller(rig.unique("cg"));
        consumer.subscribe(topic, MessageSelector.bySql("color = 'blue' AND n > 3"));
        consumer.start();
        Inbox inbox = new Inbox();
        List<String> wanted = names(4, 40, 3, 2);
        LitePulling.poll(rig, consumer, inbox, names(4, 20, 3, 2).size());
        send(producer, topic, 20, 40);
        LitePulling.poll(rig, consumer, inbox, wanted.size());
        expect("color = 'blue' AND n > 3", inbox, wanted);
    }

    /** More is filtered away than one pull looks at. */
    private static void rare(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 1);
        MessageQueue queue = rig.awaitQueues(producer, topic, 1).get(0);
        for (int i = 0; i < 3000; i += 300) {
            List<Message> batch = new ArrayList<>();
            for (int k = i; k < i + 300; k++) {
                batch.add(message(topic, "m" + k, "n", String.valueOf(k)));
            }
            producer.send(batch, queue);
        }
        Inbox inbox = new Inbox();
        rig.pushBySql(rig.unique("cg"), topic, "n = 2998", Rig.into(inbox));
        expect("n = 2998", inbox, List.of("m2998"));
    }

    /** A condition that is changed holds for all that is sent from then on. */
    private static void change(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 2);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = rig.pushBySql(rig.unique("cg"), topic, "n < 10", Rig.into(inbox));
        send(producer, topic, 0, 20);
        inbox.awaitTexts(names(0, 10, 1, 0), Rig.SOON);
        consumer.subscribe(topic, MessageSelector.bySql("n >= 30"));
        send(producer, topic, 20, 40);
        expect("n < 10, then n >= 30", inbox, plus(names(0, 10, 1, 0), names(30, 40, 1, 0)));
    }
}
