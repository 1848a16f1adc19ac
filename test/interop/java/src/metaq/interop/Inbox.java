package metaq.interop;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.apache.rocketmq.common.message.MessageExt;

/** What consumers received, in the order of arrival; bodies of a scenario are texts that differ. */
final class Inbox {
    /** A message, when it came, and its body as text. */
    record Arrival(MessageExt message, String text, long nanos) {}

    private final List<Arrival> arrivals = new ArrayList<>();
    private final Map<String, Integer> counts = new LinkedHashMap<>();

    synchronized void add(MessageExt message) {
        String text = new String(message.getBody(), StandardCharsets.UTF_8);
        arrivals.add(new Arrival(message, text, System.nanoTime()));
        counts.merge(text, 1, Integer::sum);
        notifyAll();
    }

    void addAll(Collection<MessageExt> messages) {
        messages.forEach(this::add);
    }

    synchronized int size() {
        return arrivals.size();
    }

    synchronized int distinct() {
        return counts.size();
    }

    synchronized List<Arrival> all() {
        return List.copyOf(arrivals);
    }

    synchronized List<String> texts() {
        return arrivals.stream().map(Arrival::text).toList();
    }

    /** Waits until n different messages are there. */
    List<Arrival> awaitDistinct(int n, Duration limit) throws InterruptedException {
        boolean there = await(limit, inbox -> inbox.counts.size() >= n);
        Check.that(there, "want %d different messages within %d s, got %d (%d with repeats)", n, limit.toSeconds(),
            distinct(), size());
        return all();
    }

    /** Waits until all of these texts are there. */
    void awaitTexts(Collection<String> wanted, Duration limit) throws InterruptedException {
        boolean there = await(limit, inbox -> inbox.counts.keySet().containsAll(wanted));
        Check.that(there, "of %d messages %d did not come within %d s: %s", wanted.size(), missing(wanted).size(),
            limit.toSeconds(), missing(wanted).stream().limit(5).toList());
    }

    /** Waits until n arrivals are there, repeats included. */
    List<Arrival> awaitCount(int n, Duration limit) throws InterruptedException {
        boolean there = await(limit, inbox -> inbox.arrivals.size() >= n);
        Check.that(there, "want %d deliveries within %d s, got %d", n, limit.toSeconds(), size());
        return all();
    }

    /** Waits the whole time and tells whether nothing came beyond the first n. */
    boolean staysAt(int n, Duration time) throws InterruptedException {
        return !await(time, inbox -> inbox.arrivals.size() > n);
    }

    synchronized Set<String> missing(Collection<String> wanted) {
        Set<String> missing = new TreeSet<>(wanted);
        missing.removeAll(counts.keySet());
        return missing;
    }

    /** How many deliveries were repeats. */
    synchronized int repeats() {
        return arrivals.size() - counts.size();
    }

    private synchronized boolean await(Duration limit, Predicate<Inbox> done) throws InterruptedException {
        long end = System.nanoTime() + limit.toNanos();
        while (!done.test(this)) {
            long left = end - System.nanoTime();
            if (left <= 0) {
                return false;
            }
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
        return true;
    }
}
