package remoting

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/metaqio/metaq/internal/protocol"
)

// Session is one classic connection, of which a driver makes commands and into which it writes answers. Out and
// Attachment belong to the driver's worker, as do the methods that say so; the others are for any goroutine.
type Session struct {
	// Out is what waits to be written: whole frames, appended by the session's worker and by nobody else. After a pass
	// it may still begin with bytes that the peer has not taken.
	Out []byte
	// Attachment is whatever the worker wants to keep with the connection.
	Attachment any

	core     *core
	listener *listener
	remote   netip.AddrPort
	local    netip.AddrPort

	in     []byte // the beginning of an unfinished frame; while held, frames that are not served yet
	outAt  int    // what of Out is already written
	walked int    // what of Out is already counted as answers
	queued int    // bytes of answers that a writing goroutine has (routine)

	counted int // what of the pending bytes the server's total contains

	waiting int32 // requests served that want an answer and have none yet
	mark    int32 // bytes of the unfinished frame at markAt

	activeAt int64 // when something was last read or written; nanoseconds of the driver's clock, as all of these
	markAt   int64 // when the speed of the unfinished frame was last looked at
	sentAt   int64 // when pending output last moved
	endAt    int64 // when the session is over for good: half closed, or lingering

	known   bool // the first bytes are those of the classic protocol
	seen    bool // the worker has seen a request
	held    bool // too much output is pending: nothing is read or served
	eof     bool // the peer has closed its side
	over    bool // the worker has been told that the session is closed
	linger  bool // everything is written and our side is closed
	hard    bool // what is pending cannot be written
	gone    bool // the connection is closed
	touched bool // in the driver's list of sessions to write
	ended   bool // reason is set

	reason  error       // why the session ends; set by the driver
	closing atomic.Bool // Close was called

	callsMu sync.Mutex
	calls   *callTable // made by the first Request

	sock sessionSocket // what an event loop keeps with it
}

// Remote is the peer's address. An IPv4 address is never given in its IPv6 form.
func (s *Session) Remote() netip.AddrPort { return s.remote }

// Local is the address by which the peer reached us, with the same care for IPv4.
func (s *Session) Local() netip.AddrPort { return s.local }

// Listener is the name that was given to Server.Listen.
func (s *Session) Listener() string { return s.listener.name }

// CloseReason tells why the session ended, nil as long as it has not. Only for the worker.
func (s *Session) CloseReason() error { return s.reason }

// HalfClosed says that the peer has closed its side of the connection: answers may reach it for a moment more, or it may
// be gone. Nothing new should be begun for it. Only for the worker.
func (s *Session) HalfClosed() bool { return s.eof || s.ended }

// Pending is the number of bytes that the peer has not taken yet. Only for the worker.
func (s *Session) Pending() int { return len(s.Out) - s.outAt + s.queued }

// Touched says that Out of a session is going to be appended to that was not served in this pass. It costs next to
// nothing when repeated. Only for the worker, and only from Begin to Flush or in Closed.
func (s *Session) Touched() {
	if s.touched || s.gone {
		return
	}
	s.touched = true
	c := s.core
	if s.Out == nil {
		s.Out = c.bufs.getOut()
	}
	c.dirty = append(c.dirty, s)
}

// Post sends answers: whole frames, which are copied. The driver is woken once for all that is posted until it looks.
// What is posted to a session that is over is dropped.
func (s *Session) Post(frame []byte) { s.core.box.put(mail{kind: mailAnswer, s: s}, frame) }

// Run calls f on the driver before its next Flush, when s counts as touched. It reports false when the driver has ended
// and f is not going to be called; else f is called once, even if the session is over by then. A panic in f closes s.
func (s *Session) Run(f func()) bool { return s.core.box.put(mail{kind: mailRun, s: s, fn: f}, nil) }

// Close ends the session, with the reason that CloseReason then gives. What is in Out is still sent, for MaxOutTime at
// most; no further request is served.
func (s *Session) Close(reason error) {
	if reason == nil {
		reason = ErrClosed
	}
	if s.closing.CompareAndSwap(false, true) {
		s.core.box.put(mail{kind: mailClose, s: s, err: reason}, nil)
	}
}

// Request sends a request of ours to the peer and waits for its answer, which the caller owns. The opaque of cmd is
// replaced in the frame that is sent. It must not be called on the session's driver, which has to read the answer.
// Errors: the context's, or ErrClosed.
func (s *Session) Request(ctx context.Context, cmd *protocol.Command) (*protocol.Command, error) {
	opaque, ch, err := s.table().add()
	if err != nil {
		return nil, err
	}
	out := *cmd
	out.Opaque = opaque
	out.Flag &^= protocol.FlagResponse | protocol.FlagOneway
	if !s.core.box.put(mail{kind: mailNotice, s: s}, out.Append(nil)) {
		s.table().fail(ErrClosed)
	}
	select {
	case r := <-ch:
		return r.cmd, r.err
	case <-ctx.Done():
		s.table().drop(opaque)
		return nil, ctx.Err()
	}
}

// Notify sends a one-way request of ours to the peer; the opaque of cmd is replaced in the frame that is sent.
func (s *Session) Notify(cmd *protocol.Command) {
	out := *cmd
	out.Opaque = s.table().number()
	out.Flag = out.Flag&^protocol.FlagResponse | protocol.FlagOneway
	s.core.box.put(mail{kind: mailNotice, s: s}, out.Append(nil))
}

func (s *Session) table() *callTable {
	s.callsMu.Lock()
	defer s.callsMu.Unlock()
	if s.calls == nil {
		s.calls = &callTable{}
	}
	return s.calls
}
