package remoting

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

func TestShutdownWaitsForAnswers(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{MaxOut: 64 << 20})
		idle := ts.client()
		ts.session(idle)
		silent := ts.dial()
		conn := ts.dial()
		big := protocol.Command{Code: codeBig, Opaque: 0, Remark: strings.Repeat("x", 8<<10)}
		_, err := conn.Write(append(big.Append(nil), request(codeLater, 1, []byte("later"))...))
		require.NoError(t, err)
		post := wait(t, ts.later)

		shut := make(chan error, 1)
		go func() { shut <- ts.srv.Shutdown(context.Background()) }()
		<-idle.Done() // nothing is pending there
		if !d.tls {   // a silent one is in the handshake there, which ends
			closedBy(t, silent)
		}
		silent.Close()
		_, err = net.Dial("tcp", ts.addr)
		require.Error(t, err, "nothing is accepted any more")
		_, err = conn.Write(request(codeEcho, 2, nil)) // nobody reads this
		require.NoError(t, err)
		post()
		r := frameReader{conn: conn}
		for i := range 2 {
			c, err := r.next()
			require.NoError(t, err)
			require.EqualValues(t, i, c.Opaque)
		}
		_, err = r.next()
		require.ErrorIs(t, err, io.EOF, "no reset")
		conn.Close()
		require.NoError(t, wait(t, shut))
		for range 2 {
			require.ErrorIs(t, wait(t, ts.closed).CloseReason(), ErrShutdown)
		}
	})
}

func TestShutdownGivesUp(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		c := ts.client()
		c.Go(&protocol.Command{Code: codeNever}, func(*protocol.Command, error) {})
		ts.session(c)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, ts.srv.Shutdown(ctx), context.DeadlineExceeded)
		require.ErrorIs(t, wait(t, ts.closed).CloseReason(), ErrShutdown)
		<-c.Done()
	})
}

func TestServeEndsWithItsContext(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		o := Options{NewWorker: func(Driver) Worker { return &benchWorker{} }}
		d.setup(&o)
		srv, err := New(o)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- srv.Serve(ctx) }()
		for _, name := range []string{"one", "two"} { // while it serves
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			srv.Listen(name, ln)
			conn, err := net.Dial("tcp", ln.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			eventually(t, func() bool {
				st := srv.Stats().Listeners
				return st[len(st)-1].Name == name && st[len(st)-1].Open == 1
			}, "accepted")
		}
		cancel()
		require.ErrorIs(t, wait(t, done), context.Canceled)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		srv.Listen("late", ln)
		_, err = net.Dial("tcp", ln.Addr().String())
		require.Error(t, err)
	})
}

func TestShutdownWithoutServe(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		o := Options{NewWorker: func(Driver) Worker { return &benchWorker{} }}
		d.setup(&o)
		srv, err := New(o)
		require.NoError(t, err)
		require.NoError(t, srv.Shutdown(context.Background()))
		require.NoError(t, srv.Serve(context.Background()), "it is over at once")
	})
}

func TestNewNeedsAWorker(t *testing.T) {
	_, err := New(Options{})
	require.ErrorIs(t, err, errNoWorker)
}
