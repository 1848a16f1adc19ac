package metaq.interop;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;

/** Tag expressions, and namespaces, which filter by name. */
final class Filters {
    private Filters() {}

    static void register(Suite suite) {
        suite.add("tags", Filters::tags);
        suite.add("namespace", Filters::namespace);
    }

    private static void tags(Rig rig) throws Exception {
        DefaultMQProducer producer = rig.producer();
        String topic = rig.topic(producer, 4);
        // "Aa" and "BB" have the same hash: the server cannot tell them apart, the client must
        String[] tags = {"A", "B", "C", "Aa", "BB", ""};
        Map<String, Inbox> inboxes = new TreeMap<>();
        Map<String, List<String>> wanted = Map.of("A", List.of("A"), "A || B", List.of("A", "B"),
            " C||Aa|| ", List.of("C", "Aa"), "*", List.of(tags), "nothing", List.of());
        for (String expression : wanted.keySet()) {
            Inbox inbox = inboxes.computeIfAbsent(expression, e -> new Inbox());
            rig.push(rig.unique("cg"), topic, expression, Rig.into(inbox));
        }
        for (int i = 0; i < 60; i++) {
            producer.send(new Message(topic, tags[i % 6], (tags[i % 6] + "/" + i).getBytes()));
        }
        for (String expression : wanted.keySet()) {
            List<String> texts = IntStream.range(0, 60).filter(i -> wanted.get(expression).contains(tags[i % 6]))
                .mapToObj(i -> tags[i % 6] + "/" + i).toList();
            Inbox inbox = inboxes.get(expression);
            inbox.awaitTexts(texts, Rig.SOON);
            Check.that(inbox.staysAt(texts.size(), Duration.ofMillis(300)), "%s: more than was subscribed: %s",
                expression, inbox.texts());
        }
    }

    private static void namespace(Rig rig) throws Exception {
        String instance = "inst" + Version.LABEL;
        String topic = rig.unique("t");
        String group = rig.unique("cg");
        DefaultMQProducer inside = rig.producer(p -> p.setNamespace(instance));
        Sending.sendAll(inside, topic, "inside", 8);
        DefaultMQProducer outside = rig.producer();
        Sending.sendAll(outside, topic, "outside", 8);

        Inbox plain = new Inbox();
        Inbox spaced = new Inbox();
        Inbox wire = new Inbox();
        rig.push(group, topic, "*", Rig.into(plain));
        rig.push(group, topic, "*", Rig.into(spaced), c -> c.setNamespace(instance));
        rig.push(rig.unique("cg"), instance + "%" + topic, "*", Rig.into(wire));
        for (Inbox.Arrival a : spaced.awaitDistinct(8, Rig.SOON)) {
            Check.that(a.text().startsWith("inside"), "%s came to the namespace", a.text());
            Check.equal(topic, a.message().getTopic(), "topic without namespace");
        }
        for (Inbox.Arrival a : plain.awaitDistinct(8, Rig.SOON)) {
            Check.that(a.text().startsWith("outside"), "%s came out of the namespace", a.text());
        }
        for (Inbox.Arrival a : wire.awaitDistinct(8, Rig.SOON)) {
            Check.equal(instance + "%" + topic, a.message().getTopic(), "topic on the wire");
        }
        Check.that(plain.staysAt(8, Duration.ofMillis(300)) && spaced.size() == 8 && wire.size() == 8, "repeats");
    }
}
