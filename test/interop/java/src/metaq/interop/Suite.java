package metaq.interop;

import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Named scenarios and the two phases in which they run: side by side, then one at a time. */
final class Suite {
    static final Duration USUAL = Duration.ofSeconds(60);

    /** What a scenario does; it fails by throwing. */
    interface Body {
        void run(Rig rig) throws Exception;
    }

    /** How a scenario may run: beside others, alone, or alone and with restarts of the server. */
    enum Kind { SHARED, ALONE, RESTARTS }

    private record Scenario(String name, Kind kind, Duration limit, Body body) {}

    private final String name;
    private final PrintStream out = System.out;
    private final List<Scenario> scenarios = new ArrayList<>();
    private int passed;
    private int failed;

    Suite(String name) {
        this.name = name;
    }

    void add(String scenario, Body body) {
        add(scenario, Kind.SHARED, USUAL, body);
    }

    void add(String scenario, Kind kind, Duration limit, Body body) {
        scenarios.add(new Scenario(scenario, kind, limit, body));
    }

    /** Runs the scenarios that are wanted (none named: all) and tells whether all passed. */
    boolean run(Settings settings, Set<String> only) throws InterruptedException {
        for (String wanted : only) {
            Check.that(scenarios.stream().anyMatch(s -> s.name.equals(wanted)), "no scenario is called %s", wanted);
        }
        List<Scenario> chosen = scenarios.stream().filter(s -> only.isEmpty() || only.contains(s.name)).toList();
        warmUp(settings);
        ExecutorService pool = Executors.newFixedThreadPool(settings.parallel());
        for (Scenario s : chosen) {
            if (s.kind == Kind.SHARED) {
                pool.execute(() -> play(s, settings));
            }
        }
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.HOURS); // each scenario has its own limit
        for (Scenario s : chosen) {
            if (s.kind == Kind.RESTARTS && settings.restartCommand().isEmpty()) {
                say("-- %s/%s: left out, RESTART_CMD is not set", name, s.name);
            } else if (s.kind != Kind.SHARED) {
                play(s, settings);
            }
        }
        say("%d passed, %d failed", passed, failed);
        return failed == 0;
    }

    /** Loads the client's classes once, instead of in all scenarios at the same time. */
    private void warmUp(Settings settings) throws InterruptedException {
        Rig rig = new Rig(settings, "warm-up");
        try {
            Sending.sendAll(rig.producer(), rig.topic(rig.producer(), 1), "warm", 1);
        } catch (InterruptedException e) {
            throw e;
        } catch (Exception e) {
            say("# the first send failed: %s", explain(e)); // the scenarios will tell what it means
        } finally {
            rig.close();
        }
    }

    private void play(Scenario s, Settings settings) {
        long begin = System.nanoTime();
        Rig rig = new Rig(settings, s.name);
        FutureTask<Void> task = new FutureTask<>(() -> {
            s.body.run(rig);
            return null;
        });
        Thread thread = new Thread(task, "scenario " + s.name);
        thread.setDaemon(true);
        thread.start();
        String why = null;
        try {
            task.get(s.limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            why = "no end after " + s.limit.toSeconds() + " s; " + whereabouts(thread);
            thread.interrupt();
        } catch (ExecutionException e) {
            why = explain(e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            why = "interrupted";
        }
        rig.close();
        report(s, why, (System.nanoTime() - begin) / 1e9, rig.notes());
    }

    private synchronized void report(Scenario s, String why, double seconds, String notes) {
        if (why == null) {
            passed++;
            say("ok %s/%s (%.1f s)%s", name, s.name, seconds, notes);
        } else {
            failed++;
            say("FAIL %s/%s: %s (%.1f s)%s", name, s.name, why, seconds, notes);
        }
    }

    private void say(String format, Object... args) {
        out.printf(format + "%n", args);
        out.flush();
    }

    private static String whereabouts(Thread thread) {
        for (StackTraceElement frame : thread.getStackTrace()) {
            if (frame.getClassName().startsWith("metaq.interop.") && !frame.getClassName().endsWith("Rig")) {
                return "was at " + frame;
            }
        }
        return "was outside of the scenario";
    }

    private static String explain(Throwable t) {
        if (t instanceof Check.Failed) {
            return Check.brief(t.getMessage());
        }
        StringBuilder text = new StringBuilder(t.toString());
        for (Throwable c = t.getCause(); c != null; c = c.getCause()) {
            text.append("; caused by ").append(c);
        }
        for (StackTraceElement frame : t.getStackTrace()) {
            if (frame.getClassName().startsWith("metaq.interop.")) {
                text.append("; at ").append(frame);
                break;
            }
        }
        return Check.brief(text.toString());
    }
}
