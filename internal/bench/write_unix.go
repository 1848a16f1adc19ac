//go:build unix

package bench

import (
	"errors"
	"net"
	"syscall"
)

// A tryWriter writes what a socket takes now. It is made once, so that a write does not allocate.
type tryWriter struct {
	raw syscall.RawConn
	fn  func(fd uintptr) bool
	b   []byte
	n   int
	err error
}

// newTryWriter gives nil for a connection that is no socket.
func newTryWriter(conn net.Conn) *tryWriter {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	w := &tryWriter{raw: raw}
	w.fn = func(fd uintptr) bool {
		for w.n < len(w.b) {
			n, err := syscall.Write(int(fd), w.b[w.n:])
			switch {
			case err == nil:
				w.n += n
			case errors.Is(err, syscall.EINTR):
			case errors.Is(err, syscall.EAGAIN):
				return true
			default:
				w.err = err
				return true
			}
		}
		return true
	}
	return w
}

func (w *tryWriter) write(b []byte) (n int, err error) {
	w.b, w.n, w.err = b, 0, nil
	if err := w.raw.Write(w.fn); err != nil {
		return w.n, err
	}
	return w.n, w.err
}
