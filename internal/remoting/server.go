package remoting

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

var (
	errNoLoop   = errors.New("this system has no event loop")
	errNoWorker = errors.New("no worker is set")
)

// Server accepts connections of any number of listeners, tells their protocols apart, and has those of the classic
// protocol driven.
type Server struct {
	opts      Options
	loops     []*loop
	counters  *counters
	throttles throttles
	partial   atomic.Int64 // bytes of buffers of unfinished frames
	out       atomic.Int64 // bytes of answers that peers have not taken
	open      atomic.Int64 // connections
	next      atomic.Uint32

	mu        sync.Mutex
	listeners []*listener
	routines  map[*routine]struct{}
	serving   bool
	stopping  bool
	wg        sync.WaitGroup

	running context.Context // until stopping begins
	quit    context.CancelFunc
}

// listener is a net.Listener with its name and counts.
type listener struct {
	name                    string
	ln                      net.Listener
	open, accepted, refused atomic.Int64
}

// left is called once for every accepted connection that is closed.
func (l *listener) left(srv *Server) {
	l.open.Add(-1)
	srv.open.Add(-1)
}

// New makes a server and the workers of its event loops. The error is that NewWorker is not set, or that the system
// gives no descriptors.
func New(o Options) (*Server, error) {
	if o.NewWorker == nil {
		return nil, fmt.Errorf("make server: %w", errNoWorker)
	}
	srv := &Server{
		opts: o.withDefaults(), counters: new(counters),
		routines: make(map[*routine]struct{}),
	}
	srv.running, srv.quit = context.WithCancel(context.Background())
	if o.NoLoop {
		return srv, nil
	}
	for range srv.opts.Loops {
		l, err := newLoop(srv)
		if errors.Is(err, errNoLoop) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("make event loop: %w", err)
		}
		srv.loops = append(srv.loops, l)
	}
	return srv, nil
}

// Listen adds a listener, which the server closes in the end. Its name is what Session.Listener and the counts say. It
// may be called before Serve or while it runs; after Shutdown ln is closed.
func (srv *Server) Listen(name string, ln net.Listener) {
	l := &listener{name: name, ln: ln}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.stopping {
		ln.Close()
		return
	}
	srv.listeners = append(srv.listeners, l)
	if srv.serving {
		srv.wg.Go(func() { srv.accept(l) })
	}
}

// Serve serves until Shutdown is done, and then returns nil, or until ctx ends: then everything is closed at once, and
// the error is that of ctx. It is called once.
func (srv *Server) Serve(ctx context.Context) error {
	srv.mu.Lock()
	srv.serving = true
	if !srv.stopping {
		for _, l := range srv.listeners {
			srv.wg.Go(func() { srv.accept(l) })
		}
		for _, l := range srv.loops {
			srv.wg.Go(l.run)
		}
	}
	srv.mu.Unlock()
	done := make(chan struct{})
	go func() {
		<-srv.running.Done()
		srv.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		srv.halt(mailKill)
		<-done
		return ctx.Err()
	}
}

// Shutdown stops accepting and reading, and closes every connection as soon as all requests that it has sent are
// answered and the answers are written. When ctx ends first, it closes what is left and returns the error of ctx.
func (srv *Server) Shutdown(ctx context.Context) error {
	srv.halt(mailStop)
	done := make(chan struct{})
	go func() {
		srv.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		srv.halt(mailKill)
		<-done
		return ctx.Err()
	}
}

// halt closes the listeners and tells all drivers to stop, in order or at once.
func (srv *Server) halt(how mailKind) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if !srv.stopping {
		srv.stopping = true
		srv.quit()
		for _, l := range srv.listeners {
			l.ln.Close()
		}
		if !srv.serving {
			for _, l := range srv.loops {
				srv.wg.Go(l.run) // it ends at once and gives its descriptors back
			}
			srv.serving = true
		}
	}
	for _, l := range srv.loops {
		l.box.put(mail{kind: how}, nil)
	}
	for r := range srv.routines {
		r.box.put(mail{kind: how}, nil)
	}
}

// addRoutine remembers r. It reports false when the server stops, and then r must not run.
func (srv *Server) addRoutine(r *routine) bool {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.stopping {
		return false
	}
	srv.routines[r] = struct{}{}
	return true
}

func (srv *Server) removeRoutine(r *routine) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	delete(srv.routines, r)
}

// accept takes connections until the listener is closed.
func (srv *Server) accept(l *listener) {
	wait := time.Duration(0)
	for {
		conn, err := l.ln.Accept()
		if err == nil {
			wait = 0
			srv.take(conn, l)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		srv.warn(&srv.throttles.accept, "cannot accept connections", "listener", l.name, "error", err)
		wait = min(max(2*wait, 5*time.Millisecond), time.Second)
		select {
		case <-time.After(wait):
		case <-srv.running.Done():
			return
		}
	}
}

// take gives an accepted connection to a driver.
func (srv *Server) take(conn net.Conn, l *listener) {
	if srv.open.Add(1) > int64(srv.opts.MaxConns) {
		srv.open.Add(-1)
		l.refused.Add(1)
		srv.counters.closed[reasonIndex(ErrTooMany)].Add(1)
		srv.warn(&srv.throttles.tooMany, "closing connection: too many", "listener", l.name,
			"remote", conn.RemoteAddr(), "max", srv.opts.MaxConns)
		conn.Close()
		return
	}
	l.open.Add(1)
	l.accepted.Add(1)
	if len(srv.loops) > 0 {
		s, err := srv.detach(conn, l)
		if err == nil {
			srv.give(s)
			return
		}
	}
	srv.wg.Go(func() { srv.serveRoutine(conn, nil, l, false) })
}

// give gives s to the next loop.
func (srv *Server) give(s *Session) {
	to := srv.loops[int(srv.next.Add(1))%len(srv.loops)]
	s.core = &to.core
	if !to.box.put(mail{kind: mailAdopt, s: s}, nil) {
		s.abandon()
		s.listener.left(srv)
	}
}

// serves reports whether connections of that protocol are wanted.
func (srv *Server) serves(kind protocolKind, secure bool) bool {
	switch kind {
	case kindTLS:
		return srv.opts.TLS != nil && !secure
	case kindHTTP:
		return srv.opts.HTTP != nil
	case kindHTTP2:
		return srv.opts.HTTP2 != nil
	}
	return false
}

// serveOther gives conn, of which prefix was read, to whom it concerns.
func (srv *Server) serveOther(kind protocolKind, conn net.Conn, prefix []byte, l *listener, secure bool) {
	c := &replayConn{Conn: conn, prefix: prefix, closed: func() { l.left(srv) }}
	other := net.Conn(c)
	if inner, ok := conn.(*tls.Conn); ok {
		other = secureConn{c, inner}
	}
	switch kind {
	case kindTLS:
		c.closed = func() {} // the session inside counts
		srv.wg.Go(func() { srv.handshake(c, l) })
	case kindHTTP:
		go srv.opts.HTTP(other)
	case kindHTTP2:
		go srv.opts.HTTP2(other)
	}
}

// newSession makes the session of conn.
func newSession(conn net.Conn, l *listener) *Session {
	return &Session{listener: l, remote: addrPort(conn.RemoteAddr()), local: addrPort(conn.LocalAddr())}
}

// addrPort is a without the IPv6 form of IPv4; not valid when a is no TCP address.
func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
