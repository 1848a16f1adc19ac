package metaq.interop;

import java.util.Optional;

/**
 * What the environment says about the server under test.
 *
 * @param nameServer     host:port, from METAQ_NS
 * @param restartCommand shell command that restarts the server; gets "kill" (kill -9) or "term" (in order) as last
 *                       word and returns when the server serves again; from RESTART_CMD
 * @param parallel       scenarios that run side by side, from INTEROP_PARALLEL
 * @param stock          clients keep their own timers (heartbeat and routes every 30 s); from -Dinterop.stock=true
 */
record Settings(String nameServer, Optional<String> restartCommand, int parallel, boolean stock) {

    static Settings fromEnvironment() {
        String ns = System.getenv("METAQ_NS");
        if (ns == null || ns.isBlank()) {
            throw new IllegalStateException("METAQ_NS (host:port of the name server) is not set");
        }
        String parallel = System.getenv("INTEROP_PARALLEL");
        return new Settings(ns.trim(),
            Optional.ofNullable(System.getenv("RESTART_CMD")).filter(c -> !c.isBlank()),
            parallel == null || parallel.isBlank() ? 8 : Integer.parseInt(parallel.trim()),
            Boolean.getBoolean("interop.stock"));
    }
}
