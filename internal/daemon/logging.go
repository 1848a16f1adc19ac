package daemon

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"
)

// IsTerminal reports whether f is a terminal, which is where colours and progress belong.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// NewLogger makes the process's logger: text on a terminal, one JSON object a line elsewhere. Setting level changes it while it runs.
func NewLogger(w io.Writer, level *slog.LevelVar) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if f, ok := w.(*os.File); ok && IsTerminal(f) {
		opts.ReplaceAttr = shortTime
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}

// shortTime leaves the date away: whoever reads a terminal knows it.
func shortTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		a.Value = slog.StringValue(a.Value.Time().Format("15:04:05.000"))
	}
	return a
}
