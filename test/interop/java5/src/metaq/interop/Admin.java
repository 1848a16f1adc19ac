package metaq.interop;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** The commands of mqadmin, run in this process, and what they print. */
final class Admin {
    private Admin() {}

    static void register(Suite suite) {
        suite.add("mqadmin-clusterList", Admin::clusterList);
        suite.add("mqadmin-topicList", Admin::topicList);
        suite.add("mqadmin-topicRoute", Admin::topicRoute);
        suite.add("mqadmin-topicStatus", Admin::topicStatus);
        suite.add("mqadmin-updateTopic", Admin::updateTopic);
        suite.add("mqadmin-deleteTopic", Admin::deleteTopic);
        suite.add("mqadmin-updateSubGroup", Admin::updateSubGroup);
        suite.add("mqadmin-consumerProgress", Admin::consumerProgress);
        suite.add("mqadmin-brokerStatus", Admin::brokerStatus);
    }

    /** Runs one command as "mqadmin ARGS -n NAMESERVER" and gives what it printed. */
    private static String run(Rig rig, String... args) {
        List<String> all = new ArrayList<>(List.of(args));
        all.add("-n");
        all.add(rig.nameServer());
        String printed;
        synchronized (Admin.class) { // there is one System.out
            PrintStream out = System.out;
            PrintStream err = System.err;
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            PrintStream capture = new PrintStream(bytes, true, StandardCharsets.UTF_8);
            System.setOut(capture);
            System.setErr(capture);
            try {
                MQAdminStartup.main0(all.toArray(String[]::new), null);
            } finally {
                System.setOut(out);
                System.setErr(err);
            }
            printed = bytes.toString(StandardCharsets.UTF_8);
        }
        Check.that(!printed.contains("Exception"), "mqadmin %s: %s", String.join(" ", args), printed);
        return printed;
    }

    /** The line that begins with these words, as columns. */
    private static String[] row(String printed, String... begin) {
        for (String line : printed.split("\n")) {
            String[] columns = line.trim().split("\\s+");
            if (columns.length >= begin.length && List.of(begin).equals(List.of(columns).subList(0, begin.length))) {
                return columns;
            }
        }
        throw new Check.Failed("no line begins with " + String.join(" ", begin) + " in: " + Check.brief(printed));
    }

    /** A topic, and the cluster, name and address of the broker that has it. */
    private record Place(DefaultMQProducer producer, String topic, String cluster, String broker, String address) {
        static Place of(Rig rig, int queues) throws Exception {
            DefaultMQProducer producer = rig.producer();
            String topic = rig.topic(producer, queues);
            MessageQueue queue = producer.fetchPublishMessageQueues(topic).get(0);
            String broker = queue.getBrokerName();
            String address = Rig.broker(producer, queue);
            // by the route, as only some commands should depend on the numbers that clusterList asks for
            String cluster = producer.getDefaultMQProducerImpl().getMqClientFactory().getMQClientAPIImpl()
                .getTopicRouteInfoFromNameServer(topic, 10_000).getBrokerDatas().get(0).getCluster();
            return new Place(producer, topic, cluster, broker, address);
        }
    }

    private static void clusterList(Rig rig) throws Exception {
        Place place = Place.of(rig, 1);
        String printed = run(rig, "clusterList");
        Check.contains(printed, "#Cluster Name", "#Broker Name", "#BID", "#Addr", "#Version", "#InTPS", "#OutTPS");
        String[] row = row(printed, place.cluster, place.broker, "0", place.address);
        Check.that(row[4].startsWith("V5_") || row[4].startsWith("V4_"), "version %s", row[4]);
    }

    private static void topicList(Rig rig) throws Exception {
        Place place = Place.of(rig, 1);
        row(run(rig, "topicList"), place.topic);
        String printed = run(rig, "topicList", "-c");
        row(printed, place.cluster, place.topic);
    }

    private static void topicRoute(Rig rig) throws Exception {
        Place place = Place.of(rig, 3);
        String printed = run(rig, "topicRoute", "-t", place.topic);
        Check.contains(printed.replaceAll("\\s+", ""), "\"brokerName\":\"" + place.broker + "\"",
            "\"cluster\":\"" + place.cluster + "\"", "0:\"" + place.address + "\"", "\"perm\":6",
            "\"readQueueNums\":3", "\"writeQueueNums\":3", "\"topicSysFlag\":0");
        String table = run(rig, "topicRoute", "-t", place.topic, "-l");
        row(table, place.cluster, place.broker, "{0=" + place.address + "}", "3", "3", "6");
    }

    private static void topicStatus(Rig rig) throws Exception {
        Place place = Place.of(rig, 2);
        MessageQueue queue = rig.awaitQueues(place.producer, place.topic, 2).get(1);
        for (int i = 0; i < 5; i++) {
            place.producer.send(Sending.text(place.topic, "TagA", "m" + i), queue);
        }
        String printed = run(rig, "topicStatus", "-t", place.topic);
        Check.contains(printed, "#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated");
        row(printed, place.broker, "0", "0", "0");
        String[] row = row(printed, place.broker, "1", "0", "5");
        Check.that(row.length >= 6, "no time of the last update: %s", printed);
    }

    private static void updateTopic(Rig rig) throws Exception {
        Place place = Place.of(rig, 1);
        String topic = rig.unique("t");
        String made = run(rig, "updateTopic", "-c", place.cluster, "-t", topic, "-r", "5", "-w", "5");
        Check.contains(made, "create topic to " + place.address + " success.", "topicName=" + topic, "readQueueNums=5");
        Check.equal(5, rig.awaitQueues(place.producer, topic, 5).size(), "queues");
        Sending.sendAll(place.producer, topic, "m", 5);
        String changed = run(rig, "updateTopic", "-b", place.address, "-t", topic, "-r", "7", "-w", "6", "-p", "6");
        Check.contains(changed, "create topic to " + place.address + " success.", "readQueueNums=7", "writeQueueNums=6");
        rig.awaitQueues(place.producer, topic, 6);
        rig.until(Rig.SOON, "the changed numbers in the route", () -> {
            String route = run(rig, "topicRoute", "-t", topic).replaceAll("\\s+", "");
            return route.contains("\"readQueueNums\":7") && route.contains("\"writeQueueNums\":6");
        });
    }

    private static void deleteTopic(Rig rig) throws Exception {
        Place place = Place.of(rig, 2);
        Sending.sendAll(place.producer, place.topic, "m", 4);
        String printed = run(rig, "deleteTopic", "-c", place.cluster, "-t", place.topic);
        Check.contains(printed, "delete topic [" + place.topic + "] from cluster [" + place.cluster + "] success.",
            "delete topic [" + place.topic + "] from NameServer success.");
        rig.until(Rig.SOON, "the topic out of the list", () -> !run(rig, "topicList").contains(place.topic));
        // made anew it is empty
        Version.createTopic(place.producer, place.topic, 2);
        for (MessageQueue queue : rig.awaitQueues(place.producer, place.topic, 2)) {
            Check.equal(0L, place.producer.maxOffset(queue), "max offset of the new topic");
        }
    }

    private static void updateSubGroup(Rig rig) throws Exception {
        Place place = Place.of(rig, 1);
        String group = rig.unique("cg");
        String printed = run(rig, "updateSubGroup", "-c", place.cluster, "-g", group, "-s", "true", "-d", "false", "-r", "3", "-q", "2");
        Check.contains(printed, "create subscription group to " + place.address + " success.", "groupName=" + group,
            "retryMaxTimes=3", "retryQueueNums=2", "consumeBroadcastEnable=false");
        // the group is known and may consume
        Inbox inbox = new Inbox();
        rig.collector(group, place.topic, inbox);
        Sending.sendAll(place.producer, place.topic, "m", 1);
        inbox.awaitDistinct(1, Rig.SOON);
        // and no longer when it is switched off
        Check.contains(run(rig, "updateSubGroup", "-b", place.address, "-g", group, "-s", "false"), "consumeEnable=false");
        Check.contains(run(rig, "getConsumerConfig", "-g", group), "consumeEnable");
    }

    private static void consumerProgress(Rig rig) throws Exception {
        Place place = Place.of(rig, 2);
        String group = rig.unique("cg");
        Inbox inbox = new Inbox();
        Sending.sendAll(place.producer, place.topic, "m", 10);
        var consumer = rig.collector(group, place.topic, inbox);
        inbox.awaitDistinct(10, Rig.SOON);
        rig.until(Rig.SOON, "no lag in consumerProgress", () -> {
            String printed = run(rig, "consumerProgress", "-g", group);
            String[] first = row(printed, place.topic, place.broker, "0");
            String[] second = row(printed, place.topic, place.broker, "1");
            return first[3].equals("5") && first[4].equals("5") && second[3].equals("5") && second[4].equals("5");
        });
        String printed = run(rig, "consumerProgress", "-g", group);
        Check.contains(printed, "#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Diff", "#Inflight", "Consume TPS:", "Consume Diff Total: 0");
        consumer.shutdown();
        Sending.sendAll(place.producer, place.topic, "later", 4);
        Check.contains(run(rig, "consumerProgress", "-g", group), "Consume Diff Total: 4");
    }

    private static void brokerStatus(Rig rig) throws Exception {
        Place place = Place.of(rig, 1);
        Sending.sendAll(place.producer, place.topic, "m", 1);
        String printed = run(rig, "brokerStatus", "-b", place.address);
        for (String key : List.of("bootTimestamp", "brokerVersionDesc", "putMessageTimesTotal", "putTps", "getTotalTps",
            "commitLogMaxOffset", "commitLogMinOffset", "msgPutTotalTodayNow", "msgGetTotalTodayNow", "runtime",
            "consumeQueueDiskRatio", "commitLogDiskRatio", "putMessageAverageSize", "sendThreadPoolQueueSize")) {
            row(printed, key);
        }
        String[] boot = row(printed, "bootTimestamp");
        long at = Long.parseLong(boot[boot.length - 1]);
        Check.that(at > 1_500_000_000_000L && at <= System.currentTimeMillis(), "boot timestamp %d", at);
    }
}
