package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/daemon"
)

// A statusLine is a line on a terminal that is written over and over. Elsewhere it writes nothing.
type statusLine struct {
	w     io.Writer
	shown bool
}

// newStatusLine writes to a command's stderr.
func newStatusLine(cmd *cobra.Command) *statusLine {
	w := cmd.ErrOrStderr()
	if f, ok := w.(*os.File); ok && daemon.IsTerminal(f) {
		return &statusLine{w: w}
	}
	return &statusLine{}
}

// live tells whether anybody sees the line.
func (l *statusLine) live() bool { return l.w != nil }

func (l *statusLine) set(format string, args ...any) {
	if l.live() {
		fmt.Fprintf(l.w, "\r\x1b[K"+format, args...)
		l.shown = true
	}
}

// clear takes the line away.
func (l *statusLine) clear() {
	if l.shown {
		fmt.Fprint(l.w, "\r\x1b[K")
		l.shown = false
	}
}

// bar draws how much is done, between 0 and 1.
func bar(share float64) string {
	const width = 30
	n := int(min(max(share, 0), 1) * width)
	return "[" + strings.Repeat("█", n) + strings.Repeat("░", width-n) + "]"
}

// thousands writes a number with commas.
func thousands(n float64) string {
	digits := fmt.Sprintf("%.0f", n)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
