package remoting

import (
	"fmt"
	"net"
	"runtime"
	"syscall"
	"time"

	"github.com/metaqio/metaq/internal/eventloop"
)

// sessionSocket is what an event loop keeps with a session.
type sessionSocket struct {
	eventloop.Socket
	fd   int // until the loop adopts it
	slot uint32
}

// sweeps is the number of steps in which a loop looks once at the time limits of all its sessions; it does so four times
// in the shortest of them.
const sweeps = 8

// stallTime is after how long a pause of the process or of a worker peers get the time to be read before their time
// limits are looked at again.
const stallTime = 2 * time.Second

// maxTick is the longest time between two steps of a sweep.
const maxTick = 250 * time.Millisecond

// loop drives many connections from one thread. All of its fields belong to that thread, except the mailbox.
type loop struct {
	core
	poll  *eventloop.Poll
	left  []eventloop.Event // events that the last pass had no bytes to spend on
	ready []*Session        // sessions with served requests left in their own buffer

	slots []slot
	free  []uint32
	open  int // sessions in slots

	bytes    int // read in this pass
	swept    int // where the sweep is in slots
	nextTick int64
	tick     time.Duration
	nextLate int64
	looked   int64 // when the last pass looked at time limits
}

// slot is a place for a session. Its use is part of the token of the session's events, so that a late event never
// reaches a newer session.
type slot struct {
	s   *Session
	use uint32
}

func newLoop(srv *Server) (*loop, error) {
	poll, err := eventloop.NewPoll()
	if err != nil {
		return nil, err
	}
	o := &srv.opts
	l := &loop{poll: poll, nextLate: noTime}
	l.core.init(srv, l)
	l.buf = make([]byte, o.ReadPerPass)
	l.box.keep, l.box.wake = keepLoopMail, poll.Wake
	shortest := min(o.IdleTimeout, o.PartialTime, o.MaxOutTime)
	l.tick = min(max(shortest/(4*sweeps), time.Millisecond), maxTick)
	l.worker = o.NewWorker(l)
	return l, nil
}

// run drives the loop until it is stopped and its last session is gone.
func (l *loop) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for !l.stop || l.open > 0 {
		events := l.wait()
		l.begin()
		l.read(events)
		l.look()
		l.finish()
	}
	l.close()
}

// close ends the loop. Mail that comes later is refused by the mailbox; what came before is looked at once more.
func (l *loop) close() {
	l.box.close()
	l.begin()
	l.finish()
	_ = l.poll.Close() // nothing is left that could suffer
}

// wait returns what is ready, waiting for it only when there is nothing else to do.
func (l *loop) wait() []eventloop.Event {
	if len(l.left) > 0 {
		return l.left
	}
	events, err := l.poll.Ready()
	if err == nil && len(events) == 0 && len(l.ready) == 0 && l.box.sleep() {
		events, err = l.poll.Block(l.patience())
		l.box.awake()
	}
	if err != nil {
		// The set and its buffer are ours alone: this is a mistake in the program, and no connection can be served.
		panic(fmt.Sprintf("wait for connections: %v", err))
	}
	return events
}

// patience is how long the loop may wait: until the next step of the sweep, or for ever without sessions.
func (l *loop) patience() time.Duration {
	if l.open == 0 {
		return -1
	}
	return max(time.Duration(min(l.nextTick, l.nextLate)-clock()), 0)
}

// read reads each ready session once.
func (l *loop) read(events []eventloop.Event) {
	l.bytes = 0
	ready := l.ready
	l.ready = nil
	for _, s := range ready {
		if !s.gone && l.resume(s) {
			s.Touched() // to be watched again
		}
	}
	l.left = nil
	for i := range events {
		if l.bytes >= l.opts.PassBytes {
			l.left = events[i:] // the kernel would name them in the same order again, and never reach the last
			return
		}
		ev := &events[i]
		at := &l.slots[uint32(ev.Token)]
		s := at.s
		if s == nil || at.use != uint32(ev.Token>>32) {
			continue
		}
		if ev.Write {
			s.Touched()
		}
		if ev.Read || ev.Broken {
			l.readOne(s, ev.Broken)
		}
	}
}

// readOne reads s once and serves what came.
func (l *loop) readOne(s *Session, broken bool) {
	if !l.reading(s) {
		if broken {
			l.end(s, ErrBroken, true)
		}
		return
	}
	b, kept := l.room(s)
	n, errno := s.sock.Read(b[kept:])
	switch {
	case errno == eventloop.Again:
		return
	case errno != 0:
		l.end(s, broke(errno), true)
		return
	case s.over: // lingering: what comes is dropped
		if n == 0 {
			s.hard = true
			s.Touched()
		}
		return
	case n == 0:
		l.halfClosed(s)
		return
	}
	l.bytes += n
	l.pass.bytesIn += int64(n)
	s.activeAt = l.now
	l.feed(s, b[:kept+n])
}

// broke makes the reason of a connection's end of what the kernel says.
func broke(errno syscall.Errno) error {
	return fmt.Errorf("%w: %w", ErrBroken, errno)
}

// look ends the sessions whose time is over.
func (l *loop) look() {
	if l.now >= l.nextLate {
		l.nextLate = l.checkLate()
	}
	stood := l.now-l.looked > int64(stallTime)
	l.looked = l.now
	if stood { // nobody was read for long, so nobody is idle yet
		l.nextTick = l.now + int64(sweeps*l.tick)
	}
	if l.now < l.nextTick {
		return
	}
	l.nextTick = l.now + int64(l.tick)
	for range (len(l.slots) + sweeps - 1) / sweeps {
		if l.swept >= len(l.slots) {
			l.swept = 0
		}
		if s := l.slots[l.swept].s; s != nil {
			l.check(s)
		}
		l.swept++
	}
}

// send implements endpoint.
func (l *loop) send(s *Session) {
	if s.hard {
		l.drop(s)
		return
	}
	l.countAnswers(s)
	if len(s.Out) > s.outAt {
		n, errno := s.sock.Write(s.Out[s.outAt:])
		switch {
		case errno == eventloop.Again:
		case errno != 0:
			l.end(s, broke(errno), true)
			return
		default:
			l.pass.bytesOut += int64(n)
			s.activeAt, s.sentAt = l.now, l.now
		}
		s.wrote(&l.core, n)
	} else if s.Out != nil {
		s.wrote(&l.core, 0)
	}
	l.after(s)
}

// after decides what s is to be watched for, and closes it when it is over.
func (l *loop) after(s *Session) {
	l.settled(s)
	pending := s.Pending()
	switch {
	case s.hard || s.gone:
		return
	case s.over && pending == 0 && s.eof:
		l.drop(s)
		return
	case s.over && pending == 0 && !s.linger:
		s.linger = true
		s.sock.CloseWrite()
		l.watch(s, lingerTime)
		l.nextLate = min(l.nextLate, s.endAt)
	case l.drained(s):
		l.ready = append(l.ready, s) // resume makes it read again
	}
	if s.endAt != 0 {
		l.nextLate = min(l.nextLate, s.endAt)
	}
	if err := l.poll.Want(&s.sock.Socket, l.reading(s), pending > 0); err != nil {
		l.end(s, fmt.Errorf("%w: %w", ErrBroken, err), true)
	}
}

// drop closes the connection of s.
func (l *loop) drop(s *Session) {
	s.sock.Close()
	l.forget(s)
	l.leave(s)
}

// forget frees the slot of s.
func (l *loop) forget(s *Session) {
	at := &l.slots[s.sock.slot]
	at.s = nil
	at.use++
	l.free = append(l.free, s.sock.slot)
	l.open--
	s.gone = true
}

// adopt implements endpoint.
func (l *loop) adopt(s *Session) {
	if l.stop {
		eventloop.CloseDescriptor(s.sock.fd)
		l.leave(s)
		return
	}
	at := uint32(len(l.slots))
	if n := len(l.free); n > 0 {
		at = l.free[n-1]
		l.free = l.free[:n-1]
	} else {
		l.slots = append(l.slots, slot{})
	}
	sock, err := l.poll.Add(s.sock.fd, uint64(at)|uint64(l.slots[at].use)<<32)
	if err != nil {
		l.warn(&l.srv.throttles.adopt, "closing connection: no loop can take it", s, err)
		eventloop.CloseDescriptor(s.sock.fd)
		l.free = append(l.free, at)
		l.leave(s)
		return
	}
	s.sock.Socket, s.sock.slot = sock, at
	s.activeAt = l.now
	l.slots[at].s = s
	l.open++
	if l.open == 1 {
		l.looked, l.nextTick = l.now, l.now+int64(l.tick)
	}
}

// handOver implements endpoint.
func (l *loop) handOver(s *Session, to protocolKind, prefix []byte) {
	conn, err := l.poll.Conn(&s.sock.Socket)
	l.forget(s)
	if err != nil {
		l.warn(&l.srv.throttles.adopt, "closing connection: cannot hand it over", s, err)
		l.leave(s)
		return
	}
	l.release(s)
	l.bufs.putOut(s.Out)
	s.Out = nil
	l.srv.serveOther(to, conn, append([]byte(nil), prefix...), s.listener, false)
}

// sessions implements endpoint.
func (l *loop) sessions(f func(s *Session)) {
	for _, at := range l.slots {
		if at.s != nil {
			f(at.s)
		}
	}
}

// detach makes a session of a connection whose descriptor can be had.
func (srv *Server) detach(conn net.Conn, ln *listener) (*Session, error) {
	s := newSession(conn, ln)
	fd, err := eventloop.Detach(conn)
	if err != nil {
		return nil, err
	}
	s.sock.fd = fd
	return s, nil
}

// abandon closes a session that no loop has adopted.
func (s *Session) abandon() { eventloop.CloseDescriptor(s.sock.fd) }
