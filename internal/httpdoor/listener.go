package httpdoor

import (
	"net"
	"sync"
)

// connListener is a net.Listener of connections that somebody else has accepted.
type connListener struct {
	addr  connAddr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// connAddr is where the listener is said to be.
type connAddr string

// Network implements net.Addr.
func (connAddr) Network() string { return "tcp" }

// String implements net.Addr.
func (a connAddr) String() string { return string(a) }

func newConnListener(addr string) *connListener {
	return &connListener{addr: connAddr(addr), conns: make(chan net.Conn), done: make(chan struct{})}
}

// put waits until the connection is taken; it closes it when the listener is closed.
func (l *connListener) put(c net.Conn) {
	select {
	case l.conns <- c:
	case <-l.done:
		c.Close()
	}
}

// Accept implements net.Listener.
func (l *connListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *connListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *connListener) Addr() net.Addr { return l.addr }
