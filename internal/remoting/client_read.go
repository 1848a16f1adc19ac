package remoting

import (
	"context"
	"fmt"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
)

// Sizes of a client's read buffer. It grows while reads fill it, and as far as a frame needs, as its bytes come.
const (
	clientRead    = 8 << 10
	clientReadMax = 256 << 10
)

// read reads until the connection is over, calls everybody who waits for an answer, and ends the calls that are left.
func (c *Client) read() {
	defer close(c.done)
	buf := make([]byte, clientRead)
	kept := 0
	var cmd protocol.Command
	for {
		n, err := c.conn.Read(buf[kept:])
		kept += n
		used, bad := c.dispatch(buf[:kept], &cmd)
		if err != nil && isTimeout(err) && c.Err() == nil {
			err = nil
			c.conn.SetReadDeadline(time.Time{})
			c.timeOut()
		}
		if err == nil {
			err = bad
		}
		if err != nil {
			c.fail(fmt.Errorf("read: %w", err))
			break
		}
		buf, kept = c.compact(buf, used, kept, n)
	}
	c.mu.Lock()
	calls := c.calls.takeIf(func(*pendingCall) bool { return true })
	err := c.closedErr()
	c.mu.Unlock()
	for i := range calls {
		calls[i].finish(nil, err)
	}
}

// compact moves what is left to the front, and gives the buffer the size that is needed.
func (c *Client) compact(buf []byte, used, kept, n int) ([]byte, int) {
	rest := buf[used:kept]
	full := kept == len(buf)
	switch {
	case len(rest) == len(buf), full && n > 0 && len(buf) < clientReadMax:
		buf = make([]byte, 2*len(buf))
	case len(buf) > clientReadMax && used > 0 && len(rest) <= clientReadMax/2:
		buf = make([]byte, clientReadMax) // the long frame is through
	case used == 0:
		return buf, kept // a long frame is not moved each time that some of it comes
	}
	return buf, copy(buf, rest)
}

// dispatch takes the whole frames at the front of b and returns their length.
func (c *Client) dispatch(b []byte, cmd *protocol.Command) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	c.cork()
	defer c.uncork()
	for {
		size, err := protocol.FrameSize(b[n:], c.o.MaxFrame)
		if err != nil || size == 0 || size > len(b)-n {
			return n, err
		}
		frame := b[n : n+size : n+size]
		if err := cmd.Decode(frame); err != nil {
			return n, err
		}
		n += size
		if cmd.IsResponse() {
			c.answer(frame, cmd)
		} else if c.o.OnRequest != nil {
			c.request(cmd)
		}
	}
}

// cork leaves out unwritten while callbacks run, so that what they add leaves in one write.
func (c *Client) cork() {
	c.mu.Lock()
	c.corked = true
	c.mu.Unlock()
}

// uncork has out written by another goroutine: if this one waited for the server to read, which perhaps waits for us to
// read, nobody would move again.
func (c *Client) uncork() {
	c.mu.Lock()
	c.corked = false
	c.flushSoon()
	c.drained.Broadcast()
	c.mu.Unlock()
}

// answer gives an answer to whoever waits for it.
func (c *Client) answer(frame []byte, cmd *protocol.Command) {
	c.mu.Lock()
	p, ok := c.calls.take(cmd.Opaque)
	c.mu.Unlock()
	switch {
	case !ok:
	case p.fn != nil:
		p.fn(cmd, nil)
	default:
		p.finish(copyCommand(frame))
	}
}

// request gives a request of the server to OnRequest.
func (c *Client) request(cmd *protocol.Command) {
	reply := c.o.OnRequest(c, cmd)
	if reply == nil || cmd.IsOneway() {
		return
	}
	out := *reply
	out.Opaque = cmd.Opaque
	out.Flag = out.Flag&^protocol.FlagOneway | protocol.FlagResponse
	c.mu.Lock()
	c.out = out.Append(c.out)
	c.mu.Unlock()
}

// finish ends a call.
func (p *pendingCall) finish(cmd *protocol.Command, err error) {
	if p.fn != nil {
		p.fn(cmd, err)
		return
	}
	p.ch <- callResult{cmd, err}
}

// tick starts the timer of the calls of Go, if it does not run. mu is held.
func (c *Client) tick() {
	if c.ticking {
		return
	}
	c.ticking = true
	// The reading goroutine calls back, so the timer only ends its read.
	time.AfterFunc(c.o.Timeout/callTicks, func() { c.conn.SetReadDeadline(time.Unix(1, 0)) })
}

// timeOut ends the calls of Go whose time is over.
func (c *Client) timeOut() {
	c.mu.Lock()
	c.ticking = false
	c.calls.ticks++
	now := c.calls.ticks
	old := c.calls.takeIf(func(p *pendingCall) bool { return p.fn != nil && now-p.tick > callTicks })
	if c.calls.async > 0 {
		c.tick()
	}
	c.corked = true
	c.mu.Unlock()
	defer c.uncork()
	for i := range old {
		old[i].finish(nil, fmt.Errorf("call %s: %w", c.conn.RemoteAddr(), context.DeadlineExceeded))
	}
}
