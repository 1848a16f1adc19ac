package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// maxThrottled bounds the messages that a Throttle remembers; messages are constants, so there are few.
const maxThrottled = 1024

// Throttle returns a logger for warnings that hot paths may give at any rate: of the same level and message, one line passes in each
// interval, and carries the number of those that were held back since the line before. Loggers derived from it share the count.
func Throttle(log *slog.Logger, interval time.Duration) *slog.Logger {
	return slog.New(&throttle{next: log.Handler(), state: &throttleState{interval: interval, seen: map[throttleKey]*throttled{}}})
}

type throttle struct {
	next  slog.Handler
	state *throttleState
}

type throttleKey struct {
	level   slog.Level
	message string
}

type throttled struct {
	until time.Time // lines before this time are held back
	held  int
}

type throttleState struct {
	interval time.Duration

	mu   sync.Mutex // guards the following
	seen map[throttleKey]*throttled
}

// Enabled implements slog.Handler.
func (t *throttle) Enabled(ctx context.Context, level slog.Level) bool {
	return t.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (t *throttle) Handle(ctx context.Context, r slog.Record) error {
	held, pass := t.state.admit(throttleKey{r.Level, r.Message}, r.Time)
	if !pass {
		return nil
	}
	if held > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("suppressed", held))
	}
	return t.next.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (t *throttle) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &throttle{next: t.next.WithAttrs(attrs), state: t.state}
}

// WithGroup implements slog.Handler.
func (t *throttle) WithGroup(name string) slog.Handler {
	return &throttle{next: t.next.WithGroup(name), state: t.state}
}

// admit decides on one line and returns how many were held back before it.
func (s *throttleState) admit(key throttleKey, now time.Time) (held int, pass bool) {
	if now.IsZero() {
		now = time.Now()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, known := s.seen[key]
	switch {
	case !known && len(s.seen) >= maxThrottled:
		clear(s.seen) // rather a line too many than memory without a bound
		fallthrough
	case !known:
		s.seen[key] = &throttled{until: now.Add(s.interval)}
		return 0, true
	case now.Before(e.until):
		e.held++
		return 0, false
	}
	held = e.held
	e.held, e.until = 0, now.Add(s.interval)
	return held, true
}
