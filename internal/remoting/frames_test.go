package remoting

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

// arrived waits until the server has read n bytes.
func (ts *testServer) arrived(n int64) {
	ts.t.Helper()
	for until := time.Now().Add(patience); ts.srv.Stats().BytesIn < n; runtime.Gosched() {
		require.True(ts.t, time.Now().Before(until), "bytes do not arrive")
	}
}

// expect reads n echoes, numbered from zero, with the given bodies.
func expect(t *testing.T, conn net.Conn, bodies ...string) {
	t.Helper()
	r := frameReader{conn: conn}
	for i, body := range bodies {
		c, err := r.next()
		require.NoError(t, err)
		require.EqualValues(t, i, c.Opaque)
		require.True(t, c.IsResponse())
		require.Equal(t, body, string(c.Body))
	}
}

func TestC002FramesCutAtEveryByte(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		bodies := []string{"first", "", "the third"}
		var all []byte
		for i, b := range bodies {
			all = append(all, request(codeEcho, int32(i), []byte(b))...)
		}
		before := int64(0)
		for cut := 1; cut < len(all); cut++ {
			conn := ts.dial()
			_, err := conn.Write(all[:cut])
			require.NoError(t, err)
			ts.arrived(before + int64(cut))
			_, err = conn.Write(all[cut:])
			require.NoError(t, err)
			expect(t, conn, bodies...)
			before += int64(len(all))
			conn.Close()
		}
	})
}

func TestC002FramesByteByByte(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		conn := ts.dial()
		bodies := []string{"slowly", "but surely"}
		n := int64(0)
		for i, body := range bodies {
			for _, b := range request(codeFlush, int32(i), []byte(body)) {
				_, err := conn.Write([]byte{b})
				require.NoError(t, err)
				n++
				ts.arrived(n)
			}
		}
		expect(t, conn, bodies...)
	})
}

func TestC002AbortedFramesStayApart(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{ReadPerPass: 32 << 10})
		good := ts.client()
		var wg sync.WaitGroup
		for i := range 20 {
			conn := ts.dial()
			frame := request(codeEcho, 1, bytes.Repeat([]byte("evil"), 10_000))
			wg.Go(func() {
				for _, part := range [][]byte{frame[:i*500+1], frame[i*500+1 : i*500+300]} {
					conn.Write(part)
					runtime.Gosched()
				}
				conn.Close()
			})
		}
		for i := range 300 {
			body := bytes.Repeat([]byte{byte(i), 'g'}, 50*i)
			c, err := good.Call(context.Background(), &protocol.Command{Code: codeFlush, Body: body})
			require.NoError(t, err)
			require.True(t, bytes.Equal(body, c.Body), "body %d", i)
		}
		wg.Wait()
		eventually(t, func() bool { return ts.srv.Stats().Listeners[0].Open == 1 }, "aborted connections are closed")
		require.Empty(t, ts.closed, "no request of theirs was whole")
		require.Zero(t, ts.srv.Stats().Partial)
	})
}

func TestFramesOfAllSizes(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		const largest = 4 << 20
		ts := start(t, d, Options{MaxOut: 64 << 20, MaxFrame: largest})
		conn := ts.dial()
		rnd := rand.New(rand.NewPCG(1, 2))
		sizes := []int{largest, 0, 300 << 10, 8 << 10, 8<<10 - 50, 256 << 10, 1 << 20, 100, 3 << 20}
		for range 200 {
			sizes = append(sizes, rnd.IntN(1<<rnd.IntN(17)))
		}
		go func() {
			for i, size := range sizes {
				body := bytes.Repeat([]byte{byte(i)}, size)
				frame := request(codeEcho, int32(i), nil)
				body = body[:min(len(body), largest-len(frame))] // the largest frame there may be
				conn.Write(request(codeEcho, int32(i), body))
			}
		}()
		r := frameReader{conn: conn}
		for i, size := range sizes {
			c, err := r.next()
			require.NoError(t, err)
			require.EqualValues(t, i, c.Opaque)
			require.InDelta(t, size, len(c.Body), 200)
			require.Equal(t, len(c.Body), bytes.Count(c.Body, []byte{byte(i)}))
		}
		eventually(t, func() bool { return ts.srv.Stats().Partial == 0 }, "buffers are given back")
	})
}

func TestClaimedLengthAllocatesNothing(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		conn := ts.dial()
		frame := request(codeEcho, 0, make([]byte, 16<<20-500)) // close to the default limit
		sent := 0
		for _, part := range []int{100, 20_000, 100_000, 1 << 20} {
			_, err := conn.Write(frame[sent : sent+part])
			require.NoError(t, err)
			sent += part
			ts.arrived(int64(sent))
			require.Less(t, ts.srv.Stats().Partial, int64(3*sent+512))
		}
		if d.name != "loop" {
			return // that much is sent only once
		}
		_, err := conn.Write(frame[sent:])
		require.NoError(t, err)
		r := frameReader{conn: conn}
		c, err := r.next()
		require.NoError(t, err)
		require.Len(t, c.Body, 16<<20-500)
	})
}

func TestMalformedFramesClose(t *testing.T) {
	word := func(words ...uint32) (b []byte) {
		for _, w := range words {
			b = binary.BigEndian.AppendUint32(b, w)
		}
		return b
	}
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		good := ts.client()
		for name, bad := range map[string][]byte{
			"negative length":        word(0xFFFFFFFF, 0),
			"too long":               word(16<<20+1, 0),
			"shorter than its words": word(3, 0),
			"header longer":          word(100, 97),
			"no JSON":                append(word(12, 8), "not JSON"...),
			"no such encoding":       append(word(12, 7<<24|8), "12345678"...),
			"short binary header":    append(word(12, 1<<24|8), "12345678"...),
			"letters":                []byte("HELO example"),
		} {
			t.Run(name, func(t *testing.T) {
				conn := ts.dial()
				_, err := conn.Write(append(request(codeEcho, 0, []byte("before")), bad...))
				require.NoError(t, err)
				expect(t, conn, "before")
				r := frameReader{conn: conn}
				_, err = r.next()
				require.Error(t, err)
				require.ErrorIs(t, wait(t, ts.closed).CloseReason(), ErrMalformed)
			})
		}
		_, err := good.Call(context.Background(), &protocol.Command{Code: codeEcho})
		require.NoError(t, err)
		require.EqualValues(t, 8, ts.srv.Stats().Closed["malformed"])
	})
}

func TestOneway(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		c := ts.client()
		for i := range 100 {
			require.NoError(t, c.Oneway(&protocol.Command{Code: codeEcho, Body: fmt.Append(nil, i)}))
		}
		reply, err := c.Call(context.Background(), &protocol.Command{Code: codeEcho, Body: []byte("last")})
		require.NoError(t, err)
		require.Equal(t, "last", string(reply.Body))
		ts.mu.Lock()
		defer ts.mu.Unlock()
		require.Len(t, ts.bodies, 100)
		for i, b := range ts.bodies {
			require.Equal(t, fmt.Sprint(i), string(b))
		}
		eventually(t, func() bool { return ts.srv.Stats().FramesOut == 1 }, "one answer")
	})
}

func TestSmallPassesReachEverybody(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{PassBytes: 1, ReadPerPass: 1 << 10})
		var wg sync.WaitGroup
		for range 30 {
			c := ts.client()
			wg.Go(func() {
				for i := range 50 {
					reply, err := c.Call(context.Background(), &protocol.Command{Code: codeFlush, Body: make([]byte, 100*i)})
					if err != nil || len(reply.Body) != 100*i {
						t.Errorf("call %d: %v", i, err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

// FuzzCuts feeds a stream of bytes to a session, whole and cut: the same requests must come out.
func FuzzCuts(f *testing.F) {
	frames := append(request(1, 2, []byte("three")), request(4, 5, nil)...)
	f.Add(frames, uint64(1), uint16(1<<10))
	f.Add(append(frames, 0xFF, 0xFF, 0xFF, 0xFF), uint64(2), uint16(64))
	f.Add([]byte("GET / HTTP/1.1\r\n"), uint64(3), uint16(100))
	big := append(request(1, 2, make([]byte, 40<<10)), frames...)
	f.Add(big, uint64(4), uint16(20<<10))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64, buf uint16) {
		if len(data) > 1<<20 {
			return
		}
		whole, wholeErr := feedAll(data, nil, 1<<20)
		cut, cutErr := feedAll(data, rand.New(rand.NewPCG(seed, 0)), max(int(buf), 64))
		require.Equal(t, whole, cut)
		require.Equal(t, wholeErr == nil, cutErr == nil)
	})
}

// feedAll gives data to a session in pieces, and returns the requests that came out and why the session ended.
func feedAll(data []byte, cuts *rand.Rand, buf int) (got []string, reason error) {
	shared := &testShared{closed: make(chan *Session, 1), serve: func(s *Session, c *protocol.Command) {
		got = append(got, fmt.Sprintf("%d %d %d %x %d", c.Code, c.Opaque, c.Flag, c.Body, c.Ext.Len()))
	}}
	srv := &Server{opts: Options{}.withDefaults(), counters: new(counters)}
	io := &noEndpoint{}
	c := &io.core
	c.init(srv, io)
	c.worker = &fuzzWorker{shared}
	c.buf = make([]byte, buf)
	s := &Session{core: c, listener: &listener{name: "fuzz"}}
	for len(data) > 0 && !s.ended && !s.gone {
		c.begin()
		b, kept := c.room(s)
		n := min(len(data), len(b)-kept)
		if cuts != nil {
			n = 1 + cuts.IntN(n)
		}
		copy(b[kept:], data[:n])
		data = data[n:]
		c.feed(s, b[:kept+n])
		c.finish()
	}
	return got, s.reason
}

// fuzzWorker is a worker outside of a test.
type fuzzWorker struct{ *testShared }

func (w *fuzzWorker) Begin()                                {}
func (w *fuzzWorker) Serve(s *Session, c *protocol.Command) { w.serve(s, c) }
func (w *fuzzWorker) Flush()                                {}
func (w *fuzzWorker) Closed(*Session)                       {}

// noEndpoint is a driver without connections.
type noEndpoint struct{ core }

func (e *noEndpoint) send(s *Session) {
	e.countAnswers(s)
	s.wrote(&e.core, len(s.Out)-s.outAt)
}
func (e *noEndpoint) adopt(*Session)                                {}
func (e *noEndpoint) handOver(s *Session, _ protocolKind, _ []byte) { s.gone = true }
func (e *noEndpoint) sessions(func(*Session))                       {}
