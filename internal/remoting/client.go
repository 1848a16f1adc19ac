package remoting

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
)

// ErrTooManyCalls says that a client has more than a million calls under way.
var ErrTooManyCalls = errors.New("too many calls under way")

// ClientOptions are the settings of a Client. Zero values take the defaults that are named here.
type ClientOptions struct {
	// Timeout bounds dialling, calls whose context has no deadline, calls of Go, and each write: default 3 s, as classic
	// clients have it. Calls of Go end up to a quarter later. A write that takes longer ends the connection.
	Timeout time.Duration
	// TLS, when set, encrypts the connection.
	TLS *tls.Config
	// MaxFrame is the longest frame that is accepted, as in Options.
	MaxFrame int
	// MaxPending is how many bytes may wait to be written before Go and Oneway wait as well: default 1 MiB. Callbacks
	// and OnRequest do not wait.
	MaxPending int
	// OnRequest gets the requests of the server, on the reading goroutine: it must not wait for anything that is to be
	// read. cmd is valid until it returns. What it returns is sent as the answer, unless it is nil or cmd is one-way.
	OnRequest func(c *Client, cmd *protocol.Command) *protocol.Command
	// Dial makes the connection: default a net.Dialer's.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Client is one connection to a server. All methods may be called by any goroutine, except that nothing that waits may
// be called in a callback. Frames of calls that are made together leave together. It does not reconnect.
type Client struct {
	conn net.Conn
	o    ClientOptions
	done chan struct{}

	mu      sync.Mutex
	drained sync.Cond // out became shorter, or the client closed
	calls   clientCalls
	out     []byte // to be written
	spare   []byte
	writing bool // somebody writes, and will take what is added to out
	corked  bool // the reading goroutine is in callbacks, and has out written afterwards
	err     error
	opaque  int32 // of one-way requests
	ticking bool  // a timer for the calls of Go runs
}

// Dial connects to addr (host:port).
func Dial(ctx context.Context, addr string, o ClientOptions) (*Client, error) {
	setDefault(&o.Timeout, 3*time.Second)
	setDefault(&o.MaxFrame, 16<<20+4)
	setDefault(&o.MaxPending, 1<<20)
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	conn, err := o.Dial(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	if o.TLS != nil {
		secure := tls.Client(conn, o.TLS)
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, fmt.Errorf("encrypt connection to %s: %w", addr, err)
		}
		conn = secure
	}
	c := &Client{conn: conn, o: o, done: make(chan struct{})}
	c.drained.L = &c.mu
	go c.read()
	return c, nil
}

// Remote is the server's address.
func (c *Client) Remote() netip.AddrPort { return addrPort(c.conn.RemoteAddr()) }

// Local is our address.
func (c *Client) Local() netip.AddrPort { return addrPort(c.conn.LocalAddr()) }

// Done is closed when the connection is over and every callback has returned.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err is nil as long as the connection lives, then why it does not.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close closes the connection. All calls under way end with ErrClosed.
func (c *Client) Close() error {
	c.fail(ErrClosed)
	return nil
}

// fail ends the connection for the given reason. The reading goroutine does the rest.
func (c *Client) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.drained.Broadcast()
	c.mu.Unlock()
	c.conn.Close()
}

// Call sends a request and waits for its answer, which the caller owns. The opaque of cmd is replaced in the frame that
// is sent. Errors: the context's (context.DeadlineExceeded when the time is over), or ErrClosed.
func (c *Client) Call(ctx context.Context, cmd *protocol.Command) (*protocol.Command, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.o.Timeout)
		defer cancel()
	}
	ch := make(chan callResult, 1)
	c.mu.Lock()
	opaque, err := c.begin(pendingCall{ch: ch})
	if err != nil {
		c.mu.Unlock()
		return nil, err
	}
	c.add(cmd, opaque, 0)
	c.flush()
	select {
	case r := <-ch:
		return r.cmd, r.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	_, ours := c.calls.take(opaque)
	c.mu.Unlock()
	if !ours {
		<-ch // it has come just now, too late
	}
	return nil, fmt.Errorf("call %s: %w", c.conn.RemoteAddr(), ctx.Err())
}

// Oneway sends a request that is not answered. It returns before it is written, unless too much waits for that.
func (c *Client) Oneway(cmd *protocol.Command) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.admit(); err != nil {
		return err
	}
	c.opaque++
	c.add(cmd, c.opaque, protocol.FlagOneway)
	c.flushSoon()
	return nil
}

// Go sends a request and has fn called with its answer, on the goroutine that reads the connection; fn must be quick,
// and the answer is valid until it returns. fn is called exactly once: here and now if the connection is over. The
// opaque of cmd is replaced in the frame that is sent.
func (c *Client) Go(cmd *protocol.Command, fn func(*protocol.Command, error)) {
	c.mu.Lock()
	err := c.admit()
	var opaque int32
	if err == nil {
		opaque, err = c.begin(pendingCall{fn: fn})
	}
	if err != nil {
		c.mu.Unlock()
		fn(nil, err)
		return
	}
	c.add(cmd, opaque, 0)
	c.tick()
	c.flushSoon()
	c.mu.Unlock()
}

// admit waits until not too much waits to be written.
func (c *Client) admit() error {
	for c.err == nil && len(c.out) > c.o.MaxPending && !c.corked {
		c.drained.Wait()
	}
	return c.closedErr()
}

func (c *Client) closedErr() error {
	switch {
	case c.err == nil:
		return nil
	case errors.Is(c.err, ErrClosed):
		return c.err
	}
	return fmt.Errorf("%w: %w", ErrClosed, c.err)
}

// begin remembers a call and gives it its number.
func (c *Client) begin(p pendingCall) (int32, error) {
	if err := c.closedErr(); err != nil {
		return 0, err
	}
	return c.calls.add(p)
}

// add appends the frame of cmd to out.
func (c *Client) add(cmd *protocol.Command, opaque, flag int32) {
	out := *cmd
	out.Opaque = opaque
	out.Flag = out.Flag&^(protocol.FlagResponse|protocol.FlagOneway) | flag
	c.out = out.Append(c.out)
}

// flush writes out, if nobody else does. It is called with mu held and returns without.
func (c *Client) flush() {
	if c.writing || c.corked {
		c.mu.Unlock()
		return
	}
	c.writing = true
	c.writeOnce()
	c.writing = false
	c.flushSoon() // others go on to add, and this goroutine has something else to do
	c.mu.Unlock()
}

// flushSoon has out written by a goroutine of its own, unless somebody does already. What is added until that runs
// leaves in the same write.
func (c *Client) flushSoon() {
	if c.writing || c.corked || len(c.out) == 0 || c.err != nil {
		return
	}
	c.writing = true
	go func() {
		runtime.Gosched() // whoever can run and add something does so first
		c.mu.Lock()
		c.write()
	}()
}

// write writes until out is empty. It is called with mu held, by whoever has set writing, and returns without.
func (c *Client) write() {
	for len(c.out) > 0 && c.err == nil {
		c.writeOnce()
	}
	c.writing = false
	c.mu.Unlock()
}

// writeOnce writes out. It is called with mu held, and lets go of it meanwhile.
func (c *Client) writeOnce() {
	b := c.out
	c.out, c.spare = c.spare[:0], nil
	c.mu.Unlock()
	c.conn.SetWriteDeadline(time.Now().Add(c.o.Timeout))
	_, err := c.conn.Write(b)
	if err != nil {
		c.fail(fmt.Errorf("write: %w", err))
	}
	c.mu.Lock()
	if cap(b) <= c.o.MaxPending {
		c.spare = b
	}
	c.drained.Broadcast()
}
