package eventloop

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what should happen at once.
const patience = 20 * time.Second

// pair makes a socket in a Poll, and its peer.
func pair(t *testing.T, p *Poll, token uint64) (*Socket, *net.TCPConn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	peer, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { peer.Close() })
	conn, err := ln.Accept()
	require.NoError(t, err)
	fd, err := Detach(conn)
	require.NoError(t, err)
	_, err = conn.Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed, "the connection is taken out of its net.Conn")
	s, err := p.Add(fd, token)
	require.NoError(t, err)
	return &s, peer.(*net.TCPConn)
}

func newPoll(t *testing.T) *Poll {
	p, err := NewPoll()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// next waits for one event.
func next(t *testing.T, p *Poll) Event {
	t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		events, err := p.Block(time.Second)
		require.NoError(t, err)
		if len(events) > 0 {
			require.Len(t, events, 1)
			return events[0]
		}
	}
	require.FailNow(t, "nothing is ready")
	panic("unreachable")
}

func TestReadAndWrite(t *testing.T) {
	p := newPoll(t)
	s, peer := pair(t, p, 7)
	defer s.Close()
	b := make([]byte, 10)
	_, errno := s.Read(b)
	require.Equal(t, Again, errno)
	events, err := p.Ready()
	require.NoError(t, err)
	require.Empty(t, events)

	_, err = peer.Write([]byte("hello"))
	require.NoError(t, err)
	require.Equal(t, Event{Token: 7, Read: true}, next(t, p))
	n, errno := s.Read(b[:2])
	require.Zero(t, errno)
	require.Equal(t, "he", string(b[:n]))
	require.Equal(t, Event{Token: 7, Read: true}, next(t, p), "there is more: it is level-triggered")
	n, errno = s.Read(b)
	require.Zero(t, errno)
	require.Equal(t, "llo", string(b[:n]))

	n, errno = s.Write([]byte("answer"))
	require.Zero(t, errno)
	require.Equal(t, 6, n)
	n, err = peer.Read(b)
	require.NoError(t, err)
	require.Equal(t, "answer", string(b[:n]))
}

func TestByteByByte(t *testing.T) {
	p := newPoll(t)
	s, peer := pair(t, p, 1)
	defer s.Close()
	for i := range 100 {
		_, err := peer.Write([]byte{byte(i)})
		require.NoError(t, err)
		require.True(t, next(t, p).Read)
		b := make([]byte, 10)
		n, errno := s.Read(b)
		require.Zero(t, errno)
		require.Equal(t, []byte{byte(i)}, b[:n])
	}
}

func TestWantWrite(t *testing.T) {
	p := newPoll(t)
	s, peer := pair(t, p, 1<<40)
	defer s.Close()
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	sent := 0
	for { // until nothing more goes in
		n, errno := s.Write(chunk)
		sent += n
		if errno == Again {
			break
		}
		require.Zero(t, errno)
	}
	require.NoError(t, p.Want(s, false, true))
	events, err := p.Ready()
	require.NoError(t, err)
	require.Empty(t, events, "there is no room")
	got := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(io.Discard, peer)
		got <- n
	}()
	require.Equal(t, Event{Token: 1 << 40, Write: true}, next(t, p))
	require.NoError(t, p.Want(s, true, false))
	s.CloseWrite()
	require.EqualValues(t, sent, <-got)
}

func TestHalfClosed(t *testing.T) {
	p := newPoll(t)
	s, peer := pair(t, p, 3)
	defer s.Close()
	_, err := peer.Write([]byte("last"))
	require.NoError(t, err)
	require.NoError(t, peer.CloseWrite())
	b := make([]byte, 10)
	require.True(t, next(t, p).Read)
	n, errno := s.Read(b)
	require.Zero(t, errno)
	require.Equal(t, 4, n)
	require.True(t, next(t, p).Read)
	n, errno = s.Read(b)
	require.Zero(t, errno)
	require.Zero(t, n, "the end of the stream")
	n, errno = s.Write([]byte("answer"))
	require.Zero(t, errno)
	require.Equal(t, 6, n)
	s.CloseWrite()
	all, err := io.ReadAll(peer)
	require.NoError(t, err)
	require.Equal(t, "answer", string(all))
}

func TestReset(t *testing.T) {
	p := newPoll(t)
	s, peer := pair(t, p, 3)
	defer s.Close()
	require.NoError(t, p.Want(s, false, false))
	require.NoError(t, peer.SetLinger(0))
	require.NoError(t, peer.Close())
	ev := next(t, p)
	require.True(t, ev.Broken, "reported although nothing is wanted")
	_, errno := s.Read(make([]byte, 1))
	require.Equal(t, syscall.ECONNRESET, errno)
	_, errno = s.Write([]byte("x"))
	require.Equal(t, syscall.EPIPE, errno)
}

func TestWake(t *testing.T) {
	p := newPoll(t)
	var wg sync.WaitGroup
	for range 2000 { // more than a counter of one byte holds
		wg.Go(p.Wake)
		events, err := p.Block(patience)
		require.NoError(t, err)
		require.Empty(t, events)
		wg.Wait()
	}
	p.Wake() // before the wait
	began := time.Now()
	_, err := p.Block(patience)
	require.NoError(t, err)
	require.Less(t, time.Since(began), patience)
}

func TestBlockEnds(t *testing.T) {
	p := newPoll(t)
	events, err := p.Block(time.Millisecond)
	require.NoError(t, err)
	require.Empty(t, events)
}

func TestManySockets(t *testing.T) {
	p := newPoll(t)
	const n = 3 * minEvents
	for i := range n {
		s, peer := pair(t, p, uint64(i))
		defer s.Close()
		_, err := peer.Write([]byte("x"))
		require.NoError(t, err)
	}
	seen := make(map[uint64]bool)
	for until := time.Now().Add(patience); len(seen) < n && time.Now().Before(until); {
		events, err := p.Block(time.Second)
		require.NoError(t, err)
		for _, ev := range events {
			seen[ev.Token] = true
		}
	}
	require.Len(t, seen, n)
	events, err := p.Ready()
	require.NoError(t, err)
	require.Len(t, events, n, "the events have grown to all that is ready")
}

func TestConnGoesBack(t *testing.T) {
	p := newPoll(t)
	s, peer := pair(t, p, 1)
	conn, err := p.Conn(s)
	require.NoError(t, err)
	defer conn.Close()
	require.Equal(t, peer.LocalAddr().String(), conn.RemoteAddr().String())
	_, err = peer.Write([]byte("x"))
	require.NoError(t, err)
	b := make([]byte, 1)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience))) // it is in the runtime's poller again
	_, err = conn.Read(b)
	require.NoError(t, err)
	events, err := p.Ready()
	require.NoError(t, err)
	require.Empty(t, events, "and not in ours")
}

func TestDetachNeedsADescriptor(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	_, err := Detach(a)
	require.ErrorIs(t, err, ErrNoDescriptor)
}

func TestNoDescriptorIsLeft(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(entries)
	}
	before := count()
	for range 10 {
		p, err := NewPoll()
		require.NoError(t, err)
		s, peer := pair(t, p, 1)
		s.Close()
		s, peer2 := pair(t, p, 1)
		conn, err := p.Conn(s)
		require.NoError(t, err)
		for _, c := range []io.Closer{peer, peer2, conn, p} {
			require.NoError(t, c.Close())
		}
		require.NoError(t, p.Close(), "closing twice does nothing")
		p.Wake()
	}
	require.Equal(t, before, count())
}

func BenchmarkWake(b *testing.B) {
	p, err := NewPoll()
	require.NoError(b, err)
	defer p.Close()
	b.ReportAllocs()
	for b.Loop() {
		p.Wake()
		p.Ready()
	}
}
