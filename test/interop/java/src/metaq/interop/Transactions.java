package metaq.interop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;

/** Transactional messages: committed, rolled back, decided by the answer to a check, across a restart. */
final class Transactions {
    /** The first check comes after six seconds, and with it an answer. */
    private static final Duration LIMIT = Duration.ofSeconds(100);

    private Transactions() {}

    static void register(Suite suite) {
        suite.add("txn", Suite.Kind.SHARED, LIMIT, Transactions::decisions);
        suite.add("txn-first-decision", Suite.Kind.SHARED, LIMIT, Transactions::firstDecision);
        suite.add("txn-restart", Suite.Kind.RESTARTS, LIMIT, Transactions::restart);
    }

    /** What a producer does is in the names of its messages: commit-…, rollback-…, late-commit-…, late-rollback-…. */
    private static class Listener implements TransactionListener {
        final Map<String, Integer> checks = new ConcurrentHashMap<>();
        final Map<String, String> ids = new ConcurrentHashMap<>();

        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object arg) {
            String text = new String(message.getBody());
            ids.put(text, message.getTransactionId());
            return text.startsWith("late-") ? LocalTransactionState.UNKNOW : stateOf(text);
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            String text = new String(message.getBody());
            checks.merge(text, 1, Integer::sum);
            boolean same = message.getTransactionId().equals(ids.get(text)) && ("key-" + text).equals(message.getKeys());
            return same ? stateOf(text) : LocalTransactionState.UNKNOW;
        }

        private static LocalTransactionState stateOf(String text) {
            return text.contains("commit-") ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.ROLLBACK_MESSAGE;
        }
    }

    private static TransactionMQProducer producer(Rig rig, TransactionListener listener) throws Exception {
        TransactionMQProducer producer = new TransactionMQProducer(rig.unique("pg"));
        rig.tune(producer);
        producer.setSendMsgTimeout(10_000);
        producer.setTransactionListener(listener);
        rig.onEnd(producer::shutdown);
        producer.start();
        return producer;
    }

    private static SendResult send(TransactionMQProducer producer, String topic, String text) throws Exception {
        SendResult result = producer.sendMessageInTransaction(Sending.text(topic, "TagA", text), null);
        Check.equal(SendStatus.SEND_OK, result.getSendStatus(), "status of " + text);
        return result;
    }

    /** Waits for exactly these texts, once each. */
    private static void exactly(Inbox inbox, Set<String> wanted) throws Exception {
        inbox.awaitTexts(wanted, Rig.SOON);
        Check.that(inbox.staysAt(wanted.size(), Duration.ofSeconds(3)), "more came than was committed: %s", inbox.texts());
        Check.equal(wanted, new TreeSet<>(inbox.texts()), "messages");
    }

    private static void decisions(Rig rig) throws Exception {
        Listener listener = new Listener();
        TransactionMQProducer producer = producer(rig, listener);
        String topic = rig.topic(producer, 4);
        Inbox inbox = new Inbox();
        rig.push(rig.unique("cg"), topic, "TagA", Rig.into(inbox));
        Set<String> wanted = new TreeSet<>();
        Map<String, String> ids = new ConcurrentHashMap<>();
        for (int i = 0; i < 10; i++) {
            for (String kind : List.of("commit-", "rollback-", "late-commit-", "late-rollback-")) {
                SendResult result = send(producer, topic, kind + i);
                Check.equal(result.getMsgId(), result.getTransactionId(), "transaction id");
                ids.put(kind + i, result.getMsgId());
                if (kind.endsWith("commit-")) {
                    wanted.add(kind + i);
                }
            }
        }
        long begin = System.nanoTime();
        exactly(inbox, wanted);
        rig.note("checked after %.1f s", (inbox.all().stream().mapToLong(Inbox.Arrival::nanos).max().orElseThrow() - begin) / 1e9);
        for (Inbox.Arrival a : inbox.all()) {
            Check.equal(ids.get(a.text()), a.message().getMsgId(), "id of " + a.text());
            Check.equal("key-" + a.text(), a.message().getKeys(), "keys of " + a.text());
            Check.equal("TagA", a.message().getTags(), "tag of " + a.text());
            Check.equal(topic, a.message().getTopic(), "topic of " + a.text());
            Check.that(a.message().getPreparedTransactionOffset() > 0, "%s does not tell its half message", a.text());
        }
        rig.until(Rig.SOON, "twenty checks", () -> listener.checks.size() == 20);
        Check.that(listener.checks.keySet().stream().allMatch(t -> t.startsWith("late-")), "checked: %s", listener.checks);
    }

    /** The first decision counts, whatever is said later. Apache delivers each commit. */
    private static void firstDecision(Rig rig) throws Exception {
        TransactionMQProducer producer = producer(rig, new Listener());
        String topic = rig.topic(producer, 2);
        Inbox inbox = new Inbox();
        rig.collector(rig.unique("cg"), topic, inbox);
        Set<String> wanted = new TreeSet<>();
        for (int i = 0; i < 5; i++) {
            for (String kind : List.of("commit-", "rollback-")) {
                Message message = Sending.text(topic, "TagA", kind + i);
                // as sendMessageInTransaction does, whose result lacks what decides it again
                MessageAccessor.putProperty(message, MessageConst.PROPERTY_TRANSACTION_PREPARED, "true");
                MessageAccessor.putProperty(message, MessageConst.PROPERTY_PRODUCER_GROUP, producer.getProducerGroup());
                SendResult result = producer.send(message);
                Check.equal(SendStatus.SEND_OK, result.getSendStatus(), "status of " + kind + i);
                for (LocalTransactionState state : List.of(Listener.stateOf(kind), LocalTransactionState.ROLLBACK_MESSAGE,
                    LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.COMMIT_MESSAGE)) {
                    producer.getDefaultMQProducerImpl().endTransaction(message, result, state, null);
                }
            }
            wanted.add("commit-" + i);
        }
        exactly(inbox, wanted);
    }

    /** Transactions that are open when the server ends are decided afterwards: by checks, and by a producer that took its time. */
    private static void restart(Rig rig) throws Exception {
        CountDownLatch restarted = new CountDownLatch(1);
        Listener listener = new Listener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object arg) {
                LocalTransactionState state = super.executeLocalTransaction(message, arg);
                if (new String(message.getBody()).equals("commit-slowly")) {
                    try {
                        restarted.await();
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                }
                return state;
            }
        };
        TransactionMQProducer producer = producer(rig, listener);
        rig.onEnd(restarted::countDown);
        String topic = rig.topic(producer, 4);
        Inbox inbox = new Inbox();
        rig.collector(rig.unique("cg"), topic, inbox);
        Set<String> wanted = new TreeSet<>(Set.of("commit-slowly"));
        for (int i = 0; i < 10; i++) {
            for (String kind : List.of("commit-", "rollback-", "late-commit-", "late-rollback-")) {
                send(producer, topic, kind + i);
                if (kind.endsWith("commit-")) {
                    wanted.add(kind + i);
                }
            }
        }
        List<Throwable> problems = new ArrayList<>();
        Thread slow = new Thread(() -> {
            try {
                send(producer, topic, "commit-slowly");
            } catch (Throwable e) {
                problems.add(e);
            }
        });
        slow.setDaemon(true);
        slow.start();
        rig.until(Rig.SOON, "the slow half message", () -> listener.ids.containsKey("commit-slowly"));
        rig.restart("kill");
        restarted.countDown();
        slow.join(Rig.SOON.toMillis());
        Check.equal(List.of(), problems, "problems of the slow producer");
        inbox.awaitTexts(wanted, LIMIT);
        // the consumer may get again what it had not acknowledged; a reader of its own shows what is stored
        Inbox stored = new Inbox();
        rig.collector(rig.unique("cg"), topic, stored);
        exactly(stored, wanted);
        rig.note("%d delivered again after the restart", inbox.repeats());
    }
}
