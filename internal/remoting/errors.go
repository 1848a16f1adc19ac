package remoting

import "errors"

// ErrClosed says that the session, client or server is closed. What a Client returns wraps the reason as well.
var ErrClosed = errors.New("connection is closed")

// Why a session ended (Session.CloseReason). A reason may wrap more detail.
var (
	ErrPeerClosed  = errors.New("the peer closed the connection")
	ErrBroken      = errors.New("the connection broke")
	ErrIdle        = errors.New("nothing was read or written for the idle time")
	ErrStalled     = errors.New("the peer stopped in the middle of a frame")
	ErrSlowReader  = errors.New("the peer does not take its answers")
	ErrMalformed   = errors.New("malformed frame")
	ErrPanic       = errors.New("serving a request panicked")
	ErrShutdown    = errors.New("the server shuts down")
	ErrTooMany     = errors.New("too many connections")
	ErrTooBuffered = errors.New("too many bytes of unfinished frames are buffered")
	ErrNotServed   = errors.New("the peer speaks a protocol that is not served here")
)

// reasons are the sentinels by which closed sessions are counted, with their labels.
var reasons = [...]struct {
	err   error
	label string
}{
	{ErrPeerClosed, "peer-closed"},
	{ErrBroken, "broken"},
	{ErrIdle, "idle"},
	{ErrStalled, "stalled"},
	{ErrSlowReader, "slow-reader"},
	{ErrMalformed, "malformed"},
	{ErrPanic, "panic"},
	{ErrShutdown, "shutdown"},
	{ErrTooMany, "too-many-connections"},
	{ErrTooBuffered, "too-much-buffered"},
	{ErrNotServed, "not-served"},
}

// otherReason is the label of sessions that the worker closed for a reason of its own.
const otherReason = "closed-here"

// reasonIndex is the place of err's sentinel in reasons, or len(reasons).
func reasonIndex(err error) int {
	for i := range reasons {
		if errors.Is(err, reasons[i].err) {
			return i
		}
	}
	return len(reasons)
}
