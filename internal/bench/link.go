package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
)

// chunk is about how much is built before it is written: the server gets work while we make more, and the bytes are still in the cache.
const chunk = 64 << 10

// firstRead is the size of a read buffer at the beginning. It grows with the frames that come.
const firstRead = 128 << 10

// A link is a connection whose owner reads and writes in one goroutine and never waits for the socket to take bytes: a server that
// waits for us to read would wait for ever.
type link struct {
	conn net.Conn
	try  *tryWriter // nil where there is none: then a goroutine writes
	out  []byte     // frames to be written
	rest chan error // the end of a write by another goroutine; nil when there is none
	in   []byte
	kept int // bytes at the front of in
}

// dialer makes a connection.
type dialer func(ctx context.Context, addr string) (net.Conn, error)

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	return d.DialContext(ctx, "tcp", addr)
}

func newLink(ctx context.Context, dial dialer, addr string) (*link, error) {
	conn, err := dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	return &link{conn: conn, try: newTryWriter(conn), in: make([]byte, firstRead)}, nil
}

// idle tells whether out may be filled: nobody else is writing it.
func (l *link) idle() (bool, error) {
	if l.rest == nil {
		return true, nil
	}
	select {
	case err := <-l.rest:
		l.rest = nil
		return true, err
	default:
		return false, nil
	}
}

// flush gives out to the socket. What that does not take at once is left to a goroutine; until it is done idle is false.
func (l *link) flush() error {
	if len(l.out) == 0 {
		return nil
	}
	n := 0
	if l.try != nil {
		var err error
		if n, err = l.try.write(l.out); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	b := l.out[n:]
	l.out = l.out[:0]
	if len(b) == 0 {
		return nil
	}
	l.rest = make(chan error, 1)
	go func(done chan<- error) {
		_, err := l.conn.Write(b)
		done <- err
	}(l.rest)
	return nil
}

// close closes the connection and waits for the goroutine of flush.
func (l *link) close() {
	_ = l.conn.Close() // whatever it was for is done
	if l.rest != nil {
		<-l.rest //nolint:errcheck // likewise
		l.rest = nil
	}
}

// read waits for bytes and calls each for every whole frame that has come. A time-out is not an error: it returns false.
func (l *link) read(each func(frame []byte) error) (more bool, err error) {
	if l.kept == len(l.in) {
		l.in = append(l.in, make([]byte, len(l.in))...)
	}
	n, err := l.conn.Read(l.in[l.kept:])
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return false, nil
		}
		return false, fmt.Errorf("read: %w", err)
	}
	l.kept += n
	used := 0
	for {
		b := l.in[used:l.kept]
		size, err := protocol.FrameSize(b, maxReply)
		if err != nil {
			return false, fmt.Errorf("read: %w", err)
		}
		if size == 0 || size > len(b) {
			break
		}
		if err := each(b[:size:size]); err != nil {
			return false, err
		}
		used += size
	}
	if used > 0 {
		l.kept = copy(l.in, l.in[used:l.kept])
	}
	return true, nil
}

// maxReply bounds the frames that are read: pulls may ask for more than a frame of a send takes.
const maxReply = 64 << 20
