package remoting

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
)

// noTime is a time that never comes.
const noTime = math.MaxInt64

// started is the zero of the drivers' clocks, which are monotonic and read once a pass.
var started = time.Now()

func clock() int64 { return int64(time.Since(started)) }

// core is what all drivers have in common: sessions, their worker, and the order of things in a pass. It does no I/O.
type core struct {
	srv    *Server
	opts   *Options
	worker Worker
	io     endpoint
	box    mailbox
	bufs   buffers
	buf    []byte           // where is read to
	dec    protocol.Decoder // of what is read
	now    int64
	stop   bool // sessions end when nothing is waited for
	secure bool // the connections are encrypted

	dirty  []*Session // to be written
	spare  []*Session // the other one of two slices
	ending []*Session // ended in this pass
	late   []*Session // with an end in sight: half closed, lingering, or over with output pending

	mailItems []mail
	mailBytes []byte
	pass      passCount
}

// endpoint is the I/O of a driver.
type endpoint interface {
	// send writes what is pending and what has become of s: half closed, closed, to be read or not.
	send(s *Session)
	// adopt begins to drive s.
	adopt(s *Session)
	// handOver gives the connection of s, of which prefix was read, to somebody else. s is gone then.
	handOver(s *Session, to protocolKind, prefix []byte)
	// sessions calls f for every session.
	sessions(f func(s *Session))
}

func (c *core) init(srv *Server, io endpoint) {
	c.srv, c.opts, c.io = srv, &srv.opts, io
	c.now = clock()
}

// Wake makes a pass soon.
func (c *core) Wake() { c.box.put(mail{kind: mailWake}, nil) }

// begin begins a pass: the clock, the worker, the mail.
func (c *core) begin() {
	c.now = clock()
	c.worker.Begin()
	items, bytes := c.box.take(c.mailItems, c.mailBytes)
	at := 0
	for i := range items {
		m := &items[i]
		c.open(m, bytes[at:m.end])
		at = m.end
	}
	c.mailItems, c.mailBytes = items, bytes
}

// open does what one piece of mail asks for.
func (c *core) open(m *mail, frame []byte) {
	switch m.kind {
	case mailAnswer, mailNotice:
		if m.s.over {
			return
		}
		m.s.Touched()
		m.s.Out = append(m.s.Out, frame...)
		if m.kind == mailNotice {
			m.s.waiting++ // to be taken off again when it is counted as an answer
		}
	case mailRun:
		c.run(m.s, m.fn)
	case mailClose:
		c.end(m.s, m.err, false)
	case mailAdopt:
		c.io.adopt(m.s)
	case mailStop:
		c.stop = true
		c.io.sessions(func(s *Session) { s.Touched() })
	case mailKill:
		c.stop = true
		c.io.sessions(func(s *Session) { c.end(s, ErrShutdown, true) })
	}
}

func (c *core) run(s *Session, f func()) {
	defer func() {
		if r := recover(); r != nil {
			c.panicked(s, r)
		}
	}()
	s.Touched()
	f()
}

// finish ends a pass: the worker's batch, the answers, the ends of sessions.
func (c *core) finish() {
	c.worker.Flush()
	for len(c.ending)+len(c.dirty) > 0 {
		for i := 0; i < len(c.ending); i++ { // closing one session may end others
			c.retire(c.ending[i])
		}
		clear(c.ending)
		c.ending = c.ending[:0]
		dirty := c.dirty
		c.dirty, c.spare = c.spare[:0], nil
		for _, s := range dirty {
			s.touched = false
			if !s.gone {
				c.io.send(s)
			}
		}
		clear(dirty)
		c.spare = dirty
	}
	c.pass.flush(c.srv.counters)
}

// end begins the end of s: at once when what is pending cannot be written any more (hard), else when it is written.
func (c *core) end(s *Session, reason error, hard bool) {
	if s.gone {
		return
	}
	if hard && !s.hard {
		s.hard = true
		s.Touched()
	}
	if s.ended {
		return
	}
	s.ended, s.reason = true, reason
	c.ending = append(c.ending, s)
}

// retire tells everybody that s is over, and has it sent what is still pending.
func (c *core) retire(s *Session) {
	c.closed(s)
	s.over = true
	s.callsMu.Lock()
	t := s.calls
	if t == nil { // so that a Request that comes too late fails
		t = &callTable{}
		s.calls = t
	}
	s.callsMu.Unlock()
	t.fail(fmt.Errorf("%w: %w", ErrClosed, s.reason))
	c.release(s)
	c.srv.counters.closed[reasonIndex(s.reason)].Add(1)
	s.sentAt = c.now
	c.watch(s, lingerTime)
	s.Touched()
}

// closed calls the worker's Closed. A panic there ends nobody else.
func (c *core) closed(s *Session) {
	if !s.seen {
		return
	}
	mark := len(s.Out)
	defer func() {
		if r := recover(); r != nil {
			s.Out = s.Out[:min(mark, len(s.Out))]
			s.hard = true
			c.panicked(s, r)
		}
	}()
	s.Touched()
	c.worker.Closed(s)
}

// watch has s looked at often, because it ends within the given time.
func (c *core) watch(s *Session, limit time.Duration) {
	if s.endAt == 0 {
		c.late = append(c.late, s)
	}
	s.endAt = c.now + int64(limit)
}

// halfClosed is called when the peer has closed its side.
func (c *core) halfClosed(s *Session) {
	s.eof = true
	c.release(s)
	c.watch(s, c.opts.HalfCloseTime)
	s.Touched()
}

// wrote takes n bytes of Out off, which were written or given to a writer.
func (s *Session) wrote(c *core, n int) {
	s.outAt += n
	switch {
	case s.outAt == len(s.Out):
		c.bufs.putOut(s.Out)
		s.Out, s.outAt, s.walked = nil, 0, 0
	case s.outAt >= 64<<10 && s.outAt >= len(s.Out)/2:
		s.Out = s.Out[:copy(s.Out, s.Out[s.outAt:])]
		s.walked -= s.outAt
		s.outAt = 0
	}
}

// countAnswers counts the frames that were appended to Out since it was last called.
func (c *core) countAnswers(s *Session) {
	for s.walked < len(s.Out) {
		rest := s.Out[s.walked:]
		size := len(rest)
		if size >= 4 {
			size = min(size, max(int(int32(binary.BigEndian.Uint32(rest))), 0)+4)
		}
		s.walked += size
		s.waiting--
		c.pass.framesOut++
	}
	s.waiting = max(s.waiting, 0)
}

// account keeps the server's total of pending bytes.
func (c *core) account(s *Session) {
	if pending := s.Pending(); pending != s.counted {
		c.srv.out.Add(int64(pending - s.counted))
		s.counted = pending
	}
}

// outLimit is how many bytes may be pending before a session is held.
func (c *core) outLimit() int {
	if c.srv.out.Load() > c.opts.MaxTotalOut {
		return min(smallOut, c.opts.MaxOut)
	}
	return c.opts.MaxOut
}

// drained reports whether s is held and the peer has taken enough.
func (c *core) drained(s *Session) bool {
	return s.held && !s.over && s.Pending() <= c.outLimit()/2
}

// settled decides what is next for s after an attempt to write: whether it ends, and whether it is held.
func (c *core) settled(s *Session) {
	c.account(s)
	pending := s.Pending()
	idle := s.waiting == 0 && pending == 0
	switch {
	case s.over:
	case s.eof && idle:
		c.end(s, ErrPeerClosed, false)
	case c.stop && (idle || !s.seen):
		c.end(s, ErrShutdown, false)
	case pending > hardOutFactor*c.opts.MaxOut:
		c.warn(&c.srv.throttles.slow, "closing connection: too many bytes of answers wait for it", s, ErrSlowReader)
		c.end(s, ErrSlowReader, true)
	case pending > c.outLimit():
		s.held = true
	}
}

// reading reports whether s wants to be read.
func (c *core) reading(s *Session) bool {
	if s.over {
		return s.linger
	}
	return !s.held && !s.eof && !s.ended && !c.stop
}

// due is when s has to be looked at again, and why it ends then if nothing has happened.
func (c *core) due(s *Session) (at int64, reason error) {
	switch {
	case s.linger:
		return s.endAt, nil
	case s.over:
		return s.sentAt + int64(c.opts.MaxOutTime), nil
	case s.eof:
		return s.endAt, ErrPeerClosed
	case s.held:
		return s.sentAt + int64(c.opts.MaxOutTime), ErrSlowReader
	}
	at, reason = s.activeAt+int64(c.opts.IdleTimeout), ErrIdle
	if s.in != nil {
		if stall := s.markAt + int64(c.opts.PartialTime); stall < at {
			at, reason = stall, ErrStalled
		}
	}
	return at, reason
}

// check ends s when its time is over.
func (c *core) check(s *Session) {
	at, reason := c.due(s)
	switch {
	case c.now < at:
	case s.over:
		s.hard = true
		s.Touched()
	case errors.Is(reason, ErrStalled):
		if c.stalled(s) {
			c.warn(&c.srv.throttles.stalled, "closing connection: unfinished frame", s, ErrStalled)
			c.end(s, ErrStalled, false)
		}
	case errors.Is(reason, ErrSlowReader):
		c.warn(&c.srv.throttles.slow, "closing connection: it does not take its answers", s, ErrSlowReader)
		c.end(s, ErrSlowReader, true)
	default:
		c.end(s, reason, false)
	}
}

// checkLate looks at the sessions that end soon, and returns when that is to be done again.
func (c *core) checkLate() int64 {
	next := int64(noTime)
	kept := c.late[:0]
	for _, s := range c.late {
		if s.gone {
			continue
		}
		c.check(s)
		kept = append(kept, s)
		at, _ := c.due(s)
		next = min(next, at)
	}
	clear(c.late[len(kept):])
	c.late = kept
	return next
}

// leave is called when the connection of s is closed.
func (c *core) leave(s *Session) {
	s.gone = true
	c.bufs.putOut(s.Out)
	s.Out, s.outAt, s.walked = nil, 0, 0
	c.srv.out.Add(-int64(s.counted))
	s.counted = 0
	c.release(s)
	s.listener.left(c.srv)
}
