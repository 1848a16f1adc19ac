package metaq.interop;

import java.util.Objects;

/** Assertions whose message names what was wanted and what was there. */
final class Check {
    private Check() {}

    /** An expectation that was not met: the text is printed as the reason of the failure. */
    static final class Failed extends RuntimeException {
        Failed(String why) {
            super(why);
        }
    }

    static void that(boolean holds, String why, Object... args) {
        if (!holds) {
            throw new Failed(args.length == 0 ? why : String.format(why, args));
        }
    }

    static void equal(Object want, Object got, String what) {
        that(Objects.equals(want, got), "%s: want %s, got %s", what, want, got);
    }

    static void bytes(byte[] want, byte[] got, String what) {
        that(got != null, "%s: no bytes", what);
        int at = java.util.Arrays.mismatch(want, got);
        that(at < 0, "%s: want %d bytes, got %d, first difference at %d", what, want.length, got.length, at);
    }

    static void contains(String text, String... parts) {
        for (String part : parts) {
            that(text.contains(part), "\"%s\" is missing in: %s", part, brief(text));
        }
    }

    /** Runs what must fail and gives the failure. */
    static <X extends Throwable> X fails(Class<X> kind, String what, Action action) {
        try {
            action.run();
        } catch (Throwable t) {
            that(kind.isInstance(t), "%s: want %s, got %s", what, kind.getSimpleName(), t);
            return kind.cast(t);
        }
        throw new Failed(what + ": went through, want " + kind.getSimpleName());
    }

    /** Something that may throw anything. */
    interface Action {
        void run() throws Exception;
    }

    /** A text on one line, of a length that can be printed. */
    static String brief(String text) {
        String line = text.replaceAll("\\s+", " ").trim();
        return line.length() <= 600 ? line : line.substring(0, 600) + "…";
    }
}
