package eventloop

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The number of events taken from the kernel at once: it begins small and doubles while it is filled, so that one pass
// sees every ready connection of a busy server.
const (
	minEvents = 128
	maxEvents = 4096
)

// wakeToken marks the eventfd among the events; no socket has it.
const wakeToken = ^uint64(0)

// Event says what a socket is ready for.
type Event struct {
	Token  uint64 // as given to Add
	Read   bool   // bytes, the end of the stream or an error can be read
	Write  bool   // there is room to write
	Broken bool   // the connection is reset, or both of its directions are closed
}

// Poll is a set of sockets of which one thread asks which are ready. Only Wake may be called by other goroutines.
type Poll struct {
	ep     int
	wakeFD atomic.Int64 // -1 when closed
	raw    []unix.EpollEvent
	events []Event
}

// NewPoll makes an empty set. The error is that of the kernel, usually too many open files.
func NewPoll() (*Poll, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll set: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(ep)
		return nil, fmt.Errorf("create eventfd: %w", err)
	}
	p := &Poll{ep: ep, raw: make([]unix.EpollEvent, minEvents), events: make([]Event, 0, minEvents)}
	p.wakeFD.Store(int64(wake))
	// Edge-triggered: each write is one event, and nobody has to read the counter back.
	ev := event(unix.EPOLLIN|unix.EPOLLET, wakeToken)
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, wake, &ev); err != nil {
		_ = p.Close() // the error to tell is the other one
		return nil, fmt.Errorf("watch eventfd: %w", err)
	}
	return p, nil
}

// Close gives the set's descriptors back. Sockets that are still in it stay open. Wake does nothing from then on, but
// must not run at the same time.
func (p *Poll) Close() error {
	wake := p.wakeFD.Swap(-1)
	if wake < 0 {
		return nil
	}
	unix.Close(int(wake))
	if err := unix.Close(p.ep); err != nil {
		return fmt.Errorf("close epoll set: %w", err)
	}
	return nil
}

// Ready returns what is ready now, without blocking and without giving the processor away. The events are valid until
// the next call of Ready or Block.
func (p *Poll) Ready() ([]Event, error) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.ep), uintptr(unsafe.Pointer(&p.raw[0])),
		uintptr(len(p.raw)), 0, 0, 0)
	if errno != 0 && errno != unix.EINTR {
		return nil, os.NewSyscallError("epoll_pwait", errno)
	}
	if errno != 0 {
		n = 0
	}
	return p.take(int(n)), nil
}

// Block waits until something is ready, Wake is called or the time is over; less than zero waits without limit. It may
// return early and with nothing. The events are valid until the next call of Ready or Block.
func (p *Poll) Block(limit time.Duration) ([]Event, error) {
	ms := -1
	if limit >= 0 {
		ms = int((limit + time.Millisecond - 1) / time.Millisecond)
	}
	n, err := unix.EpollWait(p.ep, p.raw, ms)
	if err != nil && err != unix.EINTR {
		return nil, os.NewSyscallError("epoll_wait", err)
	}
	return p.take(max(n, 0)), nil
}

// Wake ends a Block of the thread that owns the set, now or the next one. Any goroutine may call it.
func (p *Poll) Wake() {
	fd := p.wakeFD.Load()
	if fd < 0 {
		return
	}
	one := uint64(1) // the counter's value is never read, only that it changes: it lasts for 2^64 wake-ups
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&one)), unsafe.Sizeof(one))
}

// take translates n raw events and drops the wake-up, whose only meaning is that Block returned.
func (p *Poll) take(n int) []Event {
	p.events = p.events[:0]
	for i := range p.raw[:n] {
		raw := &p.raw[i]
		token := uint64(uint32(raw.Fd)) | uint64(uint32(raw.Pad))<<32
		if token == wakeToken {
			continue
		}
		broken := raw.Events&(unix.EPOLLERR|unix.EPOLLHUP) != 0
		p.events = append(p.events, Event{
			Token:  token,
			Read:   raw.Events&(unix.EPOLLIN|unix.EPOLLRDHUP) != 0,
			Write:  raw.Events&unix.EPOLLOUT != 0,
			Broken: broken,
		})
	}
	if n == len(p.raw) && n < maxEvents {
		p.raw = make([]unix.EpollEvent, 2*n)
	}
	return p.events
}

// event packs a token into the kernel's 64 bits of user data, which package unix splits in two.
func event(mask uint32, token uint64) unix.EpollEvent {
	return unix.EpollEvent{Events: mask, Fd: int32(uint32(token)), Pad: int32(uint32(token >> 32))}
}
