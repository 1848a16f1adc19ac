package remoting

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

// closedBy reads what is left of conn and says when the server has closed it.
func closedBy(t *testing.T, conn net.Conn) {
	t.Helper()
	r := frameReader{conn: conn}
	for {
		if _, err := r.next(); err != nil {
			var ne net.Error
			require.False(t, errors.As(err, &ne) && ne.Timeout(), "the connection stays open")
			return
		}
	}
}

// lines is a log for tests.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func TestHalfClosedGetsItsAnswers(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{MaxOut: 64 << 20, HalfCloseTime: patience})
		conn := ts.dial()
		// More than the socket takes at once, an answer of Flush, and one that comes from another goroutine afterwards.
		c := protocol.Command{Code: codeBig, Opaque: 0, Remark: strings.Repeat("x", 8<<10)}
		all := c.Append(nil)
		all = append(all, request(codeFlush, 1, []byte("flush"))...)
		all = append(all, request(codeLater, 2, []byte("later"))...)
		_, err := conn.Write(all)
		require.NoError(t, err)
		require.NoError(t, conn.(interface{ CloseWrite() error }).CloseWrite())
		wait(t, ts.later)()
		r := frameReader{conn: conn}
		for i := range 3 {
			c, err := r.next()
			require.NoError(t, err)
			require.EqualValues(t, i, c.Opaque)
		}
		_, err = r.next()
		require.Error(t, err)
		require.ErrorIs(t, wait(t, ts.closed).CloseReason(), ErrPeerClosed)
	})
}

func TestHalfClosedEndsWithoutAnswer(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{HalfCloseTime: 50 * time.Millisecond})
		conn := ts.dial()
		_, err := conn.Write(append(request(codeNever, 0, nil), request(codeEcho, 1, nil)...))
		require.NoError(t, err)
		r := frameReader{conn: conn}
		_, err = r.next()
		require.NoError(t, err)
		conn.Close()
		require.ErrorIs(t, wait(t, ts.closed).CloseReason(), ErrPeerClosed)
		eventually(t, func() bool { return ts.srv.Stats().Listeners[0].Open == 0 }, "closed")
	})
}

func TestResetCloses(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		good := ts.client()
		for range 20 {
			raw, err := net.Dial("tcp", ts.addr)
			require.NoError(t, err)
			if d.tls {
				raw.Write([]byte{tlsHandshake, 3, 1})
			} else {
				raw.Write(append(request(codeNever, 0, nil), 0, 0))
				eventually(t, func() bool { return ts.srv.Stats().FramesIn > 0 }, "request")
			}
			require.NoError(t, raw.(*net.TCPConn).SetLinger(0))
			raw.Close()
		}
		if !d.tls {
			for range 20 {
				wait(t, ts.closed)
			}
		}
		eventually(t, func() bool { return ts.srv.Stats().Listeners[0].Open == 1 }, "reset connections are closed")
		_, err := good.Call(context.Background(), &protocol.Command{Code: codeEcho})
		require.NoError(t, err)
	})
}

func TestSlowReaderIsNotReadUntilItReads(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{MaxOut: 100 << 10, ReadPerPass: 16 << 10})
		conn := ts.dial()
		const n = 3000
		big := protocol.Command{Code: codeBig, Remark: strings.Repeat("x", 16)}
		sent := make(chan error, 1)
		go func() {
			for i := range n {
				big.Opaque = int32(i)
				if _, err := conn.Write(big.Append(nil)); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		// All that fits is served: it stops when the socket buffers are full and MaxOut is reached.
		last, same := int64(-1), 0
		eventually(t, func() bool {
			now := ts.srv.Stats().FramesIn
			if now == last {
				same++
			} else {
				last, same = now, 0
			}
			return same > 50
		}, "reading stops")
		require.Less(t, last, int64(n))
		r := frameReader{conn: conn}
		for i := range n {
			c, err := r.next()
			require.NoError(t, err)
			require.EqualValues(t, i, c.Opaque, "answers in order")
			require.Len(t, c.Body, 16<<10)
		}
		require.NoError(t, <-sent)
	})
}

func TestSlowReaderIsClosed(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		log := &lines{}
		ts := start(t, d, Options{MaxOut: 100 << 10, MaxOutTime: 50 * time.Millisecond, Log: log.logger()})
		good := ts.client()
		conn := ts.dial()
		big := protocol.Command{Code: codeBig, Remark: strings.Repeat("x", 16)}
		go func() {
			for {
				if _, err := conn.Write(big.Append(nil)); err != nil {
					return
				}
			}
		}()
		require.ErrorIs(t, wait(t, ts.closed).CloseReason(), ErrSlowReader)
		require.Equal(t, 1, log.count("closing connection: it does not"))
		_, err := good.Call(context.Background(), &protocol.Command{Code: codeEcho})
		require.NoError(t, err)
	})
}

func TestFarTooMuchOutputCloses(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{MaxOut: 64 << 10})
		conn := ts.dial()
		_, err := conn.Write(request(codeLater, 1, make([]byte, 1<<20)))
		require.NoError(t, err)
		post := wait(t, ts.later)
		for range 100 {
			post()
		}
		require.ErrorIs(t, wait(t, ts.closed).CloseReason(), ErrSlowReader)
	})
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{IdleTimeout: time.Second})
		silent := ts.dial()
		once := ts.dial()
		_, err := once.Write(request(codeEcho, 0, nil))
		require.NoError(t, err)
		busy := ts.client()
		stop, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ticker := time.NewTicker(20 * time.Millisecond)
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
				case <-stop:
					ended <- nil
					return
				}
				if _, err := busy.Call(context.Background(), &protocol.Command{Code: codeEcho}); err != nil {
					ended <- err
					return
				}
			}
		}()
		closedBy(t, once)
		require.ErrorIs(t, wait(t, ts.closed).CloseReason(), ErrIdle)
		if !d.tls { // a silent connection is in the handshake there
			closedBy(t, silent)
			require.EqualValues(t, 2, ts.srv.Stats().Closed["idle"])
		}
		close(stop)
		require.NoError(t, <-ended)
	})
}

func TestC002StalledFrameCloses(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		log := &lines{}
		ts := start(t, d, Options{PartialTime: 100 * time.Millisecond, Log: log.logger()})
		conn := ts.dial()
		frame := request(codeEcho, 1, make([]byte, 10_000))
		_, err := conn.Write(append(request(codeEcho, 0, nil), frame[:len(frame)-1]...))
		require.NoError(t, err)
		closedBy(t, conn)
		require.ErrorIs(t, wait(t, ts.closed).CloseReason(), ErrStalled)
		require.Equal(t, 1, log.count("unfinished frame"))
		require.Zero(t, ts.srv.Stats().Partial)
	})
}

func TestTricklingFrameCloses(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{PartialTime: 100 * time.Millisecond, MinRate: 1 << 20})
		conn := ts.dial()
		_, err := conn.Write(request(codeEcho, 0, nil))
		require.NoError(t, err)
		go func() {
			for _, b := range request(codeEcho, 1, make([]byte, 10<<20)) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
				<-time.After(time.Millisecond)
			}
		}()
		closedBy(t, conn)
		require.ErrorIs(t, wait(t, ts.closed).CloseReason(), ErrStalled)
	})
}

func TestTooManyConnections(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		log := &lines{}
		ts := start(t, d, Options{MaxConns: 2, Log: log.logger()})
		one := ts.client()
		call := func(c *Client) error {
			_, err := c.Call(context.Background(), &protocol.Command{Code: codeEcho})
			return err
		}
		require.NoError(t, call(one))
		two := ts.client()
		require.NoError(t, call(two))
		for range 3 {
			conn, err := net.Dial("tcp", ts.addr)
			require.NoError(t, err)
			require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
			closedBy(t, conn)
			conn.Close()
		}
		require.EqualValues(t, 3, ts.srv.Stats().Listeners[0].Refused)
		require.Equal(t, 1, log.count("too many"))
		two.Close()
		eventually(t, func() bool { return ts.srv.Stats().Listeners[0].Open == 1 }, "closed")
		require.NoError(t, call(ts.client()))
	})
}

func TestTooManyUnfinishedBytes(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{MaxPartial: 1 << 20})
		good := ts.client()
		frame := request(codeEcho, 1, make([]byte, 2<<20))
		var conns []net.Conn
		for range 4 {
			conn := ts.dial()
			conns = append(conns, conn)
			conn.Write(append(request(codeEcho, 0, nil), frame[:400<<10]...))
		}
		require.ErrorIs(t, wait(t, ts.closed).CloseReason(), ErrTooBuffered)
		body := make([]byte, 5_000)
		reply, err := good.Call(context.Background(), &protocol.Command{Code: codeEcho, Body: body})
		require.NoError(t, err)
		require.Len(t, reply.Body, len(body))
		for _, conn := range conns {
			conn.Close()
		}
		eventually(t, func() bool { return ts.srv.Stats().Partial == 0 }, "given back")
	})
}

func TestPanicClosesOnlyItsConnection(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		log := &lines{}
		ts := start(t, d, Options{Log: log.logger()})
		good := ts.client()
		conn := ts.dial()
		all := append(request(codeEcho, 0, []byte("before")), request(codePanic, 1, nil)...)
		_, err := conn.Write(append(all, request(codeEcho, 2, nil)...))
		require.NoError(t, err)
		expect(t, conn, "before")
		closedBy(t, conn)
		require.ErrorIs(t, wait(t, ts.closed).CloseReason(), ErrPanic)
		require.Equal(t, 1, log.count("testWorker).Serve"), "the stack is logged")
		_, err = good.Call(context.Background(), &protocol.Command{Code: codeEcho})
		require.NoError(t, err)
	})
}

func TestPanicInClosedAndRun(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		log := &lines{}
		ts := start(t, d, Options{Log: log.logger()}, func(w *testShared) {
			w.onClosed = func(s *Session) {
				if errors.Is(s.CloseReason(), ErrPanic) {
					w.closed <- s
					panic("in Closed")
				}
			}
		})
		c, good := ts.client(), ts.client()
		s := ts.session(c)
		s.Run(func() { panic("in Run") })
		require.ErrorIs(t, wait(t, ts.closed).CloseReason(), ErrPanic)
		<-c.Done()
		eventually(t, func() bool { return log.count("in Closed") > 0 && log.count("in Run") > 0 }, "logged")
		_, err := good.Call(context.Background(), &protocol.Command{Code: codeEcho})
		require.NoError(t, err)
	})
}

// session is the server's side of c.
func (ts *testServer) session(c *Client) *Session {
	ts.t.Helper()
	_, err := c.Call(context.Background(), &protocol.Command{Code: codeEcho})
	require.NoError(ts.t, err)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, s := range ts.seen {
		if s.Remote() == c.Local() {
			return s
		}
	}
	require.FailNow(ts.t, "no session")
	return nil
}

func TestTooManyPendingBytesOfAll(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{MaxOut: 512 << 10, MaxTotalOut: 1 << 20, ReadPerPass: 4 << 10})
		var conns []net.Conn
		var sent sync.WaitGroup
		defer sent.Wait()
		for range 8 {
			conn := ts.dial()
			defer conn.Close()
			conns = append(conns, conn)
			big := protocol.Command{Code: codeBig, Remark: strings.Repeat("x", 32)}
			sent.Go(func() {
				for range 1000 {
					if _, err := conn.Write(big.Append(nil)); err != nil {
						return
					}
				}
			})
		}
		eventually(t, func() bool { return ts.srv.Stats().Pending > 1<<20 }, "too much is pending")
		// Nothing much is added, but who wants little is served, and who reads at last gets everything.
		good := ts.client()
		for range 100 {
			_, err := good.Call(context.Background(), &protocol.Command{Code: codeFlush})
			require.NoError(t, err)
		}
		require.Less(t, ts.srv.Stats().Pending, int64(4<<20))
		r := frameReader{conn: conns[0]}
		for range 1000 {
			_, err := r.next()
			require.NoError(t, err)
		}
		for _, conn := range conns {
			conn.Close()
		}
		eventually(t, func() bool { return ts.srv.Stats().Pending == 0 }, "forgotten")
	})
}

func TestHeldFrameIsNotStalled(t *testing.T) {
	srv := &Server{opts: Options{}.withDefaults(), counters: new(counters)}
	io := &noEndpoint{}
	c := &io.core
	c.init(srv, io)
	c.worker = &fuzzWorker{&testShared{}}
	s := &Session{core: c, listener: &listener{}, known: true, activeAt: c.now}
	frame := request(codeEcho, 1, []byte("late"))
	c.feed(s, frame[:30])
	s.held = true
	c.now += 10 * int64(c.opts.PartialTime) // its peer takes answers all the while
	s.activeAt, s.sentAt = c.now, c.now
	c.check(s)
	require.False(t, s.ended)
	c.resume(s)
	c.check(s)
	require.False(t, s.ended, "nothing could arrive while it was held")
	c.now += int64(c.opts.PartialTime)
	c.check(s)
	require.ErrorIs(t, s.reason, ErrStalled)
}
