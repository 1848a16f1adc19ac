package eventloop

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrNoDescriptor says that a connection is not one of the operating system's, so that no loop can serve it.
var ErrNoDescriptor = errors.New("connection has no descriptor")

// Again is what Read and Write return when they would have to wait.
const Again = syscall.EAGAIN

// Socket is a connected stream socket in a Poll. The zero value is no socket. It belongs to the thread of its Poll.
type Socket struct {
	fd    int32
	mask  uint32
	token uint64
}

// Detach takes the descriptor out of c, which is closed without closing the connection. The caller owns the descriptor,
// which does not block. When c has none (it is a pipe, or speaks TLS), the error is ErrNoDescriptor and c stays usable.
func Detach(c net.Conn) (fd int, err error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return -1, ErrNoDescriptor
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return -1, fmt.Errorf("look at the connection's descriptor: %w", err)
	}
	var dup int
	var dupErr error
	// A copy of the descriptor keeps the connection open when the runtime takes its own out of its poller and closes it.
	err = raw.Control(func(fd uintptr) {
		dup, dupErr = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err = errors.Join(err, dupErr); err != nil {
		return -1, fmt.Errorf("copy the connection's descriptor: %w", err)
	}
	c.Close()
	return dup, nil
}

// CloseDescriptor closes a descriptor of Detach that was never added to a Poll.
func CloseDescriptor(fd int) { unix.Close(fd) }

// Add watches the descriptor for reading. Its events carry the token, which must not be the largest number of all. The
// Socket owns the descriptor from then on, unless there is an error.
func (p *Poll) Add(fd int, token uint64) (Socket, error) {
	ev := event(unix.EPOLLIN, token)
	if err := unix.EpollCtl(p.ep, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return Socket{}, fmt.Errorf("watch connection: %w", err)
	}
	return Socket{fd: int32(fd), mask: unix.EPOLLIN, token: token}, nil
}

// Want changes what s is watched for; it costs a system call only when that differs from before. A broken connection is
// reported in any case.
func (p *Poll) Want(s *Socket, read, write bool) error {
	var mask uint32
	if read {
		mask |= unix.EPOLLIN
	}
	if write {
		mask |= unix.EPOLLOUT
	}
	if mask == s.mask {
		return nil
	}
	ev := event(mask, s.token)
	if err := unix.EpollCtl(p.ep, unix.EPOLL_CTL_MOD, int(s.fd), &ev); err != nil {
		return fmt.Errorf("change what a connection is watched for: %w", err)
	}
	s.mask = mask
	return nil
}

// Close closes s, which also takes it out of its Poll. Events that were already taken may still carry its token.
func (s *Socket) Close() {
	unix.Close(int(s.fd))
	s.fd = -1
}

// Read reads once. n is 0 at the end of the stream when errno is 0; errno is Again when there is nothing to read. b must
// not be empty.
func (s *Socket) Read(b []byte) (n int, errno syscall.Errno) {
	return transfer(unix.SYS_READ, int(s.fd), b)
}

// Write writes once, perhaps only a part. errno is Again when there is no room at all. b must not be empty.
func (s *Socket) Write(b []byte) (n int, errno syscall.Errno) {
	return transfer(unix.SYS_WRITE, int(s.fd), b)
}

// CloseWrite tells the peer that nothing more will come.
func (s *Socket) CloseWrite() { unix.Shutdown(int(s.fd), unix.SHUT_WR) }

// Conn takes s out of its Poll and makes it a net.Conn again. s is closed in any case.
func (p *Poll) Conn(s *Socket) (net.Conn, error) {
	// The descriptor must leave the set by name: the set would go on watching the connection through the copy.
	if err := unix.EpollCtl(p.ep, unix.EPOLL_CTL_DEL, int(s.fd), nil); err != nil {
		s.Close()
		return nil, fmt.Errorf("stop watching connection: %w", err)
	}
	f := os.NewFile(uintptr(s.fd), "connection")
	s.fd = -1
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("make a connection of a descriptor: %w", err)
	}
	return c, nil
}

// transfer reads or writes without telling the scheduler: the descriptor never blocks.
func transfer(call uintptr, fd int, b []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch errno {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
