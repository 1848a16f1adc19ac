package metaq.interop;

import java.util.Arrays;
import java.util.Set;
import java.util.stream.Collectors;

/** Runs the scenarios of one client version: {@code Main SUITE [--only a,b,…]}. */
public final class Main {
    private Main() {}

    public static void main(String[] args) throws Exception {
        Suite suite = new Suite(args.length == 0 ? Version.LABEL : args[0]);
        Sending.register(suite);
        Bodies.register(suite);
        Refusals.register(suite);
        Filters.register(suite);
        Conditions.register(suite);
        Groups.register(suite);
        Positions.register(suite);
        Pulling.register(suite);
        LitePulling.register(suite);
        Ordering.register(suite);
        Retrying.register(suite);
        Requests.register(suite);
        Transactions.register(suite);
        Version.register(suite);
        Restarts.register(suite);
        boolean good = suite.run(Settings.fromEnvironment(), only(args));
        // clients leave threads behind; the process ends here whatever they do
        Runtime.getRuntime().halt(good ? 0 : 1);
    }

    private static Set<String> only(String[] args) {
        if (args.length == 3 && args[1].equals("--only")) {
            return Arrays.stream(args[2].split(",")).collect(Collectors.toSet());
        }
        Check.that(args.length < 2, "usage: Main SUITE [--only a,b,…]");
        return Set.of();
    }
}
