package remoting

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

func TestEcho(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		c := ts.client()
		for i := range 100 {
			body := bytes.Repeat([]byte{byte(i)}, i*100)
			for _, code := range []int32{codeEcho, codeFlush} {
				for _, enc := range []protocol.Encoding{protocol.JSON, protocol.Binary} {
					reply, err := c.Call(context.Background(), &protocol.Command{Code: code, Body: body, Encoding: enc})
					require.NoError(t, err)
					require.Equal(t, body, append([]byte{}, reply.Body...))
					require.Equal(t, enc, reply.Encoding)
				}
			}
		}
		eventually(t, func() bool { return ts.srv.Stats().FramesIn == 400 }, "all counted")
		st := ts.srv.Stats()
		require.EqualValues(t, 1, st.Listeners[0].Open)
		require.EqualValues(t, 1, st.Listeners[0].Accepted)
		require.Equal(t, ts.addr, st.Listeners[0].Addr)
	})
}

func TestPipelinedInOneWrite(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		conn := ts.dial()
		var all []byte
		const n = 10_000
		for i := range n {
			all = append(all, request([]int32{codeEcho, codeFlush}[i/100%2], int32(i), fmt.Appendf(nil, "body %d", i))...)
		}
		sent := make(chan error, 1)
		go func() {
			_, err := conn.Write(all)
			sent <- err
		}()
		seen := make([]bool, n)
		r := frameReader{conn: conn}
		for range n {
			c, err := r.next()
			require.NoError(t, err)
			require.False(t, seen[c.Opaque])
			seen[c.Opaque] = true
			require.Equal(t, fmt.Sprintf("body %d", c.Opaque), string(c.Body))
		}
		require.NoError(t, <-sent)
	})
}
