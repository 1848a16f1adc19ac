package remoting

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

// benchWorker answers each request with the same frame, in Flush, as a broker answers sends.
type benchWorker struct {
	answer  []byte
	waiting []benchAnswer
}

type benchAnswer struct {
	s      *Session
	opaque int32
}

func (w *benchWorker) Begin() {}

func (w *benchWorker) Serve(s *Session, c *protocol.Command) {
	w.waiting = append(w.waiting, benchAnswer{s, c.Opaque})
}

func (w *benchWorker) Flush() {
	for _, a := range w.waiting {
		a.s.Touched()
		at := len(a.s.Out)
		a.s.Out = append(a.s.Out, w.answer...)
		binary.BigEndian.PutUint32(a.s.Out[at+opaqueAt:], uint32(a.opaque))
	}
	w.waiting = w.waiting[:0]
}

func (w *benchWorker) Closed(*Session) {}

// opaqueAt is where a binary header has the opaque, from the start of the frame.
const opaqueAt = 8 + 2 + 1 + 2

// benchFrame is a send of about 300 bytes.
func benchFrame(opaque int32) []byte {
	c := protocol.Command{Code: 310, Opaque: opaque, Encoding: protocol.Binary, Body: make([]byte, 100)}
	for _, k := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
		c.Ext.Set(k, "value12")
	}
	return c.Append(nil)
}

func benchServer(b *testing.B, d driverCase) *testServer {
	reply := protocol.Command{Encoding: protocol.Binary, Flag: protocol.FlagResponse}
	reply.Ext.Set("msgId", "0A0000010000000000000001")
	reply.Ext.Set("queueId", "1")
	return start(b, d, Options{NewWorker: func(Driver) Worker { return &benchWorker{answer: reply.Append(nil)} }})
}

// BenchmarkPipelined is one connection with 1,024 requests under way. An op is a request.
func BenchmarkPipelined(b *testing.B) {
	for _, d := range driverCases[:3] {
		b.Run(d.name, func(b *testing.B) {
			ts := benchServer(b, d)
			conn := dialBench(b, ts)
			const window = 512
			frames := make([]byte, 0, 400*window)
			for i := range window {
				frames = append(frames, benchFrame(int32(i))...)
			}
			b.SetBytes(int64(len(frames) / window))
			b.ReportAllocs()
			answers := make([]byte, 64<<10)
			size := answerSize(b, conn, frames[:len(frames)/window])
			var window2 sync.WaitGroup
			b.ResetTimer()
			credits := make(chan struct{}, 2)
			window2.Go(func() {
				for sent := 0; sent < b.N; sent += window {
					credits <- struct{}{}
					conn.Write(frames)
				}
				close(credits)
			})
			for range credits {
				_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.LimitReader(conn, int64(size*window)), answers)
				require.NoError(b, err)
			}
			window2.Wait()
			b.StopTimer()
		})
	}
}

// BenchmarkSync64 is 64 connections with one request under way each. An op is a request.
func BenchmarkSync64(b *testing.B) {
	for _, d := range driverCases[:3] {
		b.Run(d.name, func(b *testing.B) {
			ts := benchServer(b, d)
			var left atomic.Int64
			left.Store(int64(b.N))
			frame := benchFrame(1)
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			var wg sync.WaitGroup
			conns := make([]net.Conn, 64)
			size := 0
			for i := range conns {
				conns[i] = dialBench(b, ts)
				size = answerSize(b, conns[i], frame)
			}
			b.ResetTimer()
			for _, conn := range conns {
				wg.Go(func() {
					answer := make([]byte, size)
					for left.Add(-1) >= 0 {
						conn.Write(frame)
						if _, err := io.ReadFull(conn, answer); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
		})
	}
}

func dialBench(b *testing.B, ts *testServer) net.Conn {
	conn, err := net.Dial("tcp", ts.addr)
	require.NoError(b, err)
	b.Cleanup(func() { conn.Close() })
	return conn
}

// answerSize sends one request and measures the answer.
func answerSize(b *testing.B, conn net.Conn, frame []byte) int {
	_, err := conn.Write(frame)
	require.NoError(b, err)
	r := frameReader{conn: conn}
	_, err = r.next()
	require.NoError(b, err)
	return r.used
}
