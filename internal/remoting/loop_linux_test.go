package remoting

import (
	"context"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/metaqio/metaq/internal/protocol"
)

// rawConns makes n connections that cost this process nothing but descriptors.
func rawConns(t *testing.T, addr string, n int) (fds []int) {
	t.Helper()
	ap := netip.MustParseAddrPort(addr)
	for range n {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		fds = append(fds, fd)
		require.NoError(t, unix.Connect(fd, &unix.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()}))
	}
	return fds
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func TestIdleConnectionsKeepNothing(t *testing.T) {
	const n = 2000
	ts := start(t, driverCases[0], Options{})
	frame := request(codeEcho, 0, nil)
	var total, before int64
	for range 2 { // the first round fills what the loop keeps for everybody
		before = heapInUse()
		fds := rawConns(t, ts.addr, n)
		defer func() {
			for _, fd := range fds {
				unix.Close(fd)
			}
		}()
		for _, part := range [][]byte{frame[:20], frame[20:]} { // what half a frame takes must be given back
			for _, fd := range fds {
				unix.Write(fd, part)
			}
			total += int64(n * len(part))
			ts.arrived(total)
		}
	}
	ts.mu.Lock()
	ts.seen = nil // the test's own
	ts.mu.Unlock()
	each := (heapInUse() - before) / n
	t.Logf("%d bytes a connection, of which %d are the session", each, unsafe.Sizeof(Session{}))
	require.Less(t, each, int64(1<<10))
}

func TestNoDescriptorIsLeft(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(entries)
	}
	overDrivers(t, func(t *testing.T, d driverCase) {
		warm, err := net.Listen("tcp", "127.0.0.1:0") // the runtime opens its poller once
		require.NoError(t, err)
		warm.Close()
		before := count()
		t.Run("connections", func(t *testing.T) {
			ts := start(t, d, Options{HTTP: func(c net.Conn) { c.Close() }})
			for i := range 100 {
				switch conn := ts.dial(); i % 5 {
				case 0: // closed when the test ends
				case 1:
					conn.Write([]byte("GET / HTTP/1.1\r\n"))
				case 2:
					conn.Write([]byte{0xFF, 0, 0, 0, 0, 0, 0, 0})
				case 3:
					conn.Write(append(request(codeNever, 1, nil), 0))
				case 4:
					conn.Write(request(codePanic, 1, nil))
					conn.Close()
				}
			}
			eventually(t, func() bool { return ts.srv.Stats().Listeners[0].Accepted == 100 }, "accepted")
		})
		eventually(t, func() bool { return count() <= before }, "every descriptor is closed")
	})
}

// Several sessions have one driver only in an event loop.
func TestFlushAnswersOtherSessions(t *testing.T) {
	var parked []flushAnswer
	ts := start(t, driverCases[0], Options{}, func(w *testShared) {
		w.serve = func(s *Session, c *protocol.Command) { parked = append(parked, flushAnswer{s, c.Reply(0, "")}) }
		w.onFlush = func(*testWorker) {
			if len(parked) < 3 {
				return
			}
			for _, p := range parked {
				p.s.Touched()
				p.s.Out = p.c.Append(p.s.Out)
			}
			parked = nil
		}
	})
	var wg sync.WaitGroup
	for range 3 {
		c := ts.client()
		wg.Go(func() {
			_, err := c.Call(context.Background(), &protocol.Command{})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
