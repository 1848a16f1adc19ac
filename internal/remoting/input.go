package remoting

import (
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
)

// ownRead is how much of an unfinished frame is copied to the front of the shared buffer before each read. A longer
// beginning stays where it is, and the rest is read behind it: a frame that comes byte by byte would else be copied
// as often as it has bytes.
const ownRead = 8 << 10

// room returns where the next read of s may put its bytes: b[kept:]. It is in the driver's buffer, or behind a long
// unfinished frame, whose buffer grows as its bytes arrive and never because of the length that it claims.
func (c *core) room(s *Session) (b []byte, kept int) {
	kept = len(s.in)
	if kept < min(ownRead, len(c.buf)/2) {
		return c.buf, copy(c.buf, s.in)
	}
	whole := int(binary.BigEndian.Uint32(s.in)) + 4
	if kept == cap(s.in) {
		c.grow(s, min(whole, 2*kept))
	}
	// Never beyond the frame: what follows is then in front of the shared buffer again.
	return s.in[:min(cap(s.in), whole)], kept
}

// grow gives s.in room for at least n bytes.
func (c *core) grow(s *Session, n int) {
	old := s.in
	s.in = append(c.bufs.get(n), old...)
	c.partial(cap(s.in) - cap(old))
	c.bufs.put(old)
}

// partial counts bytes of buffers of unfinished frames.
func (c *core) partial(delta int) {
	c.srv.partial.Add(int64(delta))
}

// feed serves the frames at the front of b, which begins with s.in, and keeps the rest.
func (c *core) feed(s *Session, b []byte) {
	if !s.known && !c.recognise(s, b) {
		return
	}
	n := 0
	if !s.held && !s.eof && !c.stop {
		n = c.consume(s, b)
	}
	if s.ended || s.closing.Load() {
		c.release(s)
		return
	}
	c.keep(s, b[n:], n > 0)
}

// keep stores what is left of the bytes read. moved says that it is not the unfinished frame that was there before.
func (c *core) keep(s *Session, rest []byte, moved bool) {
	if len(rest) == 0 {
		c.release(s)
		return
	}
	if moved || s.in == nil {
		s.mark, s.markAt = 0, c.now
	}
	switch {
	case s.in != nil && &rest[0] == &s.in[:1][0]:
		s.in = rest // read into place
	case cap(s.in) < len(rest):
		old := s.in
		s.in = append(c.bufs.get(len(rest)), rest...) // rest may be in old
		c.partial(cap(s.in) - cap(old))
		c.bufs.put(old)
	default:
		s.in = s.in[:copy(s.in[:cap(s.in)], rest)]
	}
	if len(rest) > ownRead && c.srv.partial.Load() > c.opts.MaxPartial {
		c.warn(&c.srv.throttles.buffered, "closing connection: too many bytes of unfinished frames", s, ErrTooBuffered)
		c.end(s, ErrTooBuffered, false)
		c.release(s)
	}
}

// release gives the buffer of s back when there is nothing in it.
func (c *core) release(s *Session) {
	if s.in == nil {
		return
	}
	c.partial(-cap(s.in))
	c.bufs.put(s.in)
	s.in = nil
}

// consume serves the whole frames at the front of b and returns their length. It stops early when the session ends or
// too much output is pending, which sets held.
func (c *core) consume(s *Session, b []byte) (n int) {
	mark := 0
	defer func() {
		if r := recover(); r != nil {
			s.Out = s.Out[:min(mark, len(s.Out))] // no half answer
			c.panicked(s, r)
		}
	}()
	s.Touched()
	limit := c.outLimit()
	for {
		size, err := protocol.FrameSize(b[n:], c.opts.MaxFrame)
		if err != nil {
			c.malformed(s, err)
			return n
		}
		if size == 0 || size > len(b)-n || s.ended || s.closing.Load() {
			return n
		}
		frame := b[n : n+size : n+size]
		cmd, err := c.dec.Decode(frame)
		if err != nil {
			c.malformed(s, err)
			return n
		}
		n += size
		c.pass.framesIn++
		if cmd.IsResponse() {
			s.answered(frame, cmd)
			continue
		}
		mark = len(s.Out)
		s.seen = true
		if !cmd.IsOneway() {
			s.waiting++
		}
		c.worker.Serve(s, cmd)
		if s.Pending() > limit {
			s.held = true
			s.sentAt = c.now
			return n
		}
	}
}

// resume serves what was left when s was held. It reports whether s may be read again.
func (c *core) resume(s *Session) bool {
	s.held = false
	if s.ended || s.in == nil {
		return true
	}
	s.mark, s.markAt = int32(len(s.in)), c.now // while it was held, nothing could arrive
	c.feed(s, s.in)
	return !s.held
}

// panicked ends s after a panic in the worker.
func (c *core) panicked(s *Session, r any) {
	c.opts.Log.Error("closing connection: serving it panicked", "listener", s.listener.name, "remote", s.remote,
		"panic", r, "stack", string(debug.Stack()))
	c.end(s, fmt.Errorf("%w: %v", ErrPanic, r), false)
}

// malformed ends s after a frame that is none.
func (c *core) malformed(s *Session, err error) {
	err = fmt.Errorf("%w: %w", ErrMalformed, err)
	c.warn(&c.srv.throttles.malformed, "closing connection: malformed frame", s, err)
	c.end(s, err, false)
}

// stalled reports whether the unfinished frame of s has grown too slowly since it was last looked at, and looks at it
// anew when that time is over.
func (c *core) stalled(s *Session) bool {
	if s.in == nil || s.held || c.now-s.markAt < int64(c.opts.PartialTime) {
		return false
	}
	least := int64(c.opts.MinRate) * int64(c.opts.PartialTime/time.Millisecond) / 1000
	if int64(len(s.in))-int64(s.mark) < max(least, 1) {
		return true
	}
	s.mark, s.markAt = int32(len(s.in)), c.now
	return false
}
