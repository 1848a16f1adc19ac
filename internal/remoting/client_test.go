package remoting

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

func TestClientPipelines(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		c := ts.client()
		const under, total = 500, 20_000
		var left atomic.Int64
		left.Store(total)
		var wg sync.WaitGroup
		wg.Add(total)
		var next func()
		next = func() {
			n := left.Add(-1)
			if n < 0 {
				return
			}
			body := binary.BigEndian.AppendUint64(nil, uint64(n))
			c.Go(&protocol.Command{Code: codeFlush, Body: body}, func(reply *protocol.Command, err error) {
				if err != nil || !bytes.Equal(reply.Body, body) {
					t.Errorf("call %d: %v", n, err)
				}
				next() // in the callback: this is what a load generator does
				wg.Done()
			})
		}
		for range under {
			next()
		}
		wg.Wait()
	})
}

func TestClientLargeFrames(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		c := ts.client()
		body := bytes.Repeat([]byte("0123456789"), 1_000_000)
		reply, err := c.Call(context.Background(), &protocol.Command{Code: codeEcho, Body: body})
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, reply.Body))
	})
}

func TestClientTimeouts(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		c := ts.client(func(o *ClientOptions) { o.Timeout = 200 * time.Millisecond })
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_, err := c.Call(ctx, &protocol.Command{Code: codeLater})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = c.Call(context.Background(), &protocol.Command{Code: codeLater})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		failed := make(chan error, 2)
		for range 2 {
			c.Go(&protocol.Command{Code: codeLater}, func(_ *protocol.Command, err error) { failed <- err })
		}
		for range 2 {
			require.ErrorIs(t, wait(t, failed), context.DeadlineExceeded)
		}
		for range 4 { // too late: whoever has the places now must not get them
			wait(t, ts.later)()
		}
		for range 10 {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			reply, err := c.Call(ctx, &protocol.Command{Code: codeEcho, Body: []byte("mine")})
			cancel()
			require.NoError(t, err)
			require.Equal(t, "mine", string(reply.Body))
		}
		require.NoError(t, c.Err())
	})
}

func TestClientClosed(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		c := ts.client()
		failed := make(chan error, 2)
		c.Go(&protocol.Command{Code: codeNever}, func(_ *protocol.Command, err error) { failed <- err })
		go func() {
			_, err := c.Call(context.Background(), &protocol.Command{Code: codeNever})
			failed <- err
		}()
		eventually(t, func() bool { return ts.srv.Stats().FramesIn == 2 }, "requests")
		require.NoError(t, c.Close())
		for range 2 {
			require.ErrorIs(t, wait(t, failed), ErrClosed)
		}
		<-c.Done()
		require.ErrorIs(t, c.Err(), ErrClosed)
		_, err := c.Call(context.Background(), &protocol.Command{})
		require.ErrorIs(t, err, ErrClosed)
		require.ErrorIs(t, c.Oneway(&protocol.Command{}), ErrClosed)
		c.Go(&protocol.Command{}, func(_ *protocol.Command, err error) { failed <- err })
		require.ErrorIs(t, wait(t, failed), ErrClosed)
		require.NoError(t, c.Close())
	})
}

func TestClientServerGone(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		c := ts.client()
		s := ts.session(c)
		failed := make(chan error, 1)
		c.Go(&protocol.Command{Code: codeNever}, func(_ *protocol.Command, err error) { failed <- err })
		s.Close(ErrShutdown)
		require.ErrorIs(t, wait(t, failed), ErrClosed)
	})
}

func TestClientMalformedAnswer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	go func() {
		conn, err := ln.Accept()
		if err == nil {
			conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			conn.Close()
		}
	}()
	c, err := Dial(context.Background(), ln.Addr().String(), ClientOptions{})
	require.NoError(t, err)
	<-c.Done()
	require.ErrorIs(t, c.Err(), protocol.ErrMalformed)
}

func TestClientCannotConnect(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ln.Close()
	_, err = Dial(context.Background(), ln.Addr().String(), ClientOptions{})
	require.Error(t, err)
}

// A server that does not read must not stop callers for longer than the time limit.
func TestClientStuckWrite(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	c, err := Dial(context.Background(), ln.Addr().String(), ClientOptions{Timeout: 50 * time.Millisecond})
	require.NoError(t, err)
	conn, err := ln.Accept()
	require.NoError(t, err)
	defer conn.Close()
	body := make([]byte, 1<<20)
	for range 100 {
		if err = c.Oneway(&protocol.Command{Body: body}); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, ErrClosed)
	<-c.Done()
}
