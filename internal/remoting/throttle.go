package remoting

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// throttleTime is how often a kind of log line is written at most.
const throttleTime = 10 * time.Second

// throttle lets one line through in throttleTime and counts the others. It is for any goroutine.
type throttle struct {
	next    atomic.Int64
	dropped atomic.Int64
}

// pass reports whether a line may be written now, and how many were dropped before it.
func (t *throttle) pass(now int64) (dropped int64, ok bool) {
	next := t.next.Load()
	if next > now || !t.next.CompareAndSwap(next, now+int64(throttleTime)) {
		t.dropped.Add(1)
		return 0, false
	}
	return t.dropped.Swap(0), true
}

// throttles are the kinds of lines that a client can cause.
type throttles struct {
	malformed, stalled, slow, buffered, tooMany, accept, notServed, adopt, handshake throttle
}

// warn logs something about s, throttled.
func (c *core) warn(t *throttle, msg string, s *Session, err error) {
	c.srv.warn(t, msg, "listener", s.listener.name, "remote", s.remote, "error", err)
}

func (srv *Server) warn(t *throttle, msg string, args ...any) {
	if dropped, ok := t.pass(clock()); ok {
		if dropped > 0 {
			args = append(args, "similar", dropped)
		}
		srv.opts.Log.Log(context.Background(), slog.LevelWarn, msg, args...) //nolint:sloglint // the callers' messages are constant
	}
}
