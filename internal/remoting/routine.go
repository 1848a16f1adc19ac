package remoting

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// firstRead is the read buffer of a connection that sends little. It grows when a read fills it.
const firstRead = 4 << 10

// writeStep is how much is written under one time limit.
const writeStep = 64 << 10

// routine drives one connection. A goroutine reads it and makes a pass of what it read. Mail makes a pass too, in a
// goroutine that lives as long as there is mail; so nobody has to interrupt a read. Another one writes while there is
// something to write, so that a peer that does not read is still read. mu makes all of them one driver.
type routine struct {
	mu sync.Mutex
	core
	conn net.Conn
	s    *Session

	kick    chan struct{} // wakes the reading goroutine while it does not read
	small   int           // how many reads in a row used little of the buffer
	out     []byte        // given to the writer, which is not done with it
	writing bool
	wrErr   error
}

// serveRoutine drives conn until it is closed. prefix was read from it before.
func (srv *Server) serveRoutine(conn net.Conn, prefix []byte, ln *listener, secure bool) {
	r := &routine{conn: conn, kick: make(chan struct{}, 1)}
	r.core.init(srv, r)
	r.secure, r.bufs.single = secure, true
	r.box.keep = keepSingleMail
	r.box.wake = func() { go r.mail() }
	r.worker = srv.opts.NewWorker(r)
	r.s = newSession(conn, ln)
	r.s.core, r.s.activeAt = &r.core, r.now
	r.buf = make([]byte, firstRead)
	if !srv.addRoutine(r) {
		conn.Close()
		ln.left(srv)
		return
	}
	defer srv.removeRoutine(r)
	r.run(prefix)
}

// run reads until the connection is closed.
func (r *routine) run(prefix []byte) {
	r.mu.Lock()
	r.begin()
	if len(prefix) > 0 {
		r.pass.bytesIn += int64(len(prefix))
		r.feed(r.s, prefix)
	}
	r.finish()
	if !r.box.sleep() {
		go r.mail()
	}
	for !r.s.gone {
		if r.reading(r.s) {
			r.read()
		} else {
			r.idle()
		}
	}
	r.box.close()
	r.begin()
	r.finish()
	r.mu.Unlock()
}

// read reads once and makes a pass of it. mu is held before and after, not while it waits.
func (r *routine) read() {
	s := r.s
	b, kept := r.room(s)
	r.setReadDeadline()
	r.mu.Unlock()
	n, err := r.conn.Read(b[kept:])
	r.mu.Lock()
	if s.gone {
		return
	}
	r.begin()
	if n > 0 {
		r.received(b[:kept+n], n)
	}
	switch {
	case err == nil || s.gone:
	case isTimeout(err):
	case s.over, s.hard:
		s.hard = true
		s.Touched()
	case errors.Is(err, io.EOF):
		r.halfClosed(s)
	default:
		r.end(s, errors.Join(ErrBroken, err), true)
	}
	r.check(s)
	r.finish()
}

// received serves what was read, and gives the read buffer the size that the peer seems to need.
func (r *routine) received(b []byte, n int) {
	s := r.s
	if s.over {
		return // lingering: what comes is dropped
	}
	r.pass.bytesIn += int64(n)
	s.activeAt = r.now
	r.feed(s, b)
	switch {
	case s.in != nil:
	case n == len(r.buf) && n < r.opts.ReadPerPass:
		r.buf, r.small = make([]byte, min(4*n, r.opts.ReadPerPass)), 0
	case n > len(r.buf)/8 || len(r.buf) == firstRead:
		r.small = 0
	default:
		if r.small++; r.small == 16 {
			r.buf, r.small = make([]byte, firstRead), 0
		}
	}
}

// idle waits, without reading, until the session has changed or its time is over. mu is held before and after.
func (r *routine) idle() {
	if !r.drained(r.s) {
		at, _ := r.due(r.s)
		r.mu.Unlock()
		timer := time.NewTimer(time.Duration(at - clock()))
		select {
		case <-r.kick:
		case <-timer.C:
		}
		timer.Stop()
		r.mu.Lock()
	}
	if r.s.gone {
		return
	}
	r.begin()
	r.check(r.s)
	if r.drained(r.s) {
		r.resume(r.s)
	}
	r.finish()
}

// setReadDeadline lets a read end when the session has to be looked at.
func (r *routine) setReadDeadline() {
	at, _ := r.due(r.s)
	r.conn.SetReadDeadline(started.Add(time.Duration(at)))
}

// mail makes passes until there is no mail.
func (r *routine) mail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.s.gone {
		r.begin()
		r.finish()
		if r.s.gone || r.box.sleep() {
			break
		}
	}
	r.changed()
}

// changed tells the reading goroutine that the session may have changed.
func (r *routine) changed() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// send implements endpoint.
func (r *routine) send(s *Session) {
	if s.hard {
		r.drop(s)
		return
	}
	r.countAnswers(s)
	if n := len(s.Out) - s.outAt; n > 0 && r.wrErr == nil {
		if s.queued == 0 {
			s.sentAt = r.now
		}
		s.queued += n
		if r.out == nil && s.outAt == 0 {
			r.out, s.Out, s.walked = s.Out, nil, 0 // the writer gives it back
		} else {
			r.out = append(r.out, s.Out[s.outAt:]...)
			s.wrote(&r.core, n)
		}
		if !r.writing {
			r.writing = true
			go r.write()
		}
	} else if s.Out != nil && n == 0 {
		s.wrote(&r.core, 0)
	}
	r.after(s)
}

// after closes s when it is over.
func (r *routine) after(s *Session) {
	r.settled(s)
	switch {
	case s.hard || s.gone:
	case r.wrErr != nil:
		r.end(s, r.wrErr, true)
	case s.over && s.Pending() == 0 && s.eof:
		r.drop(s)
	case s.over && s.Pending() == 0 && !s.linger:
		s.linger = true
		r.watch(s, lingerTime)
		if half, ok := r.conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
	if s.held || s.over {
		r.setReadDeadline() // of a read that may be under way
	}
	r.changed()
}

// drop closes the connection of s. The read or write that is under way ends with an error.
func (r *routine) drop(s *Session) {
	r.conn.Close()
	s.queued = 0
	r.leave(s)
	r.changed()
}

// write writes until there is nothing to write.
func (r *routine) write() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.out) > 0 && r.wrErr == nil && !r.s.gone {
		b := r.out
		r.out = nil
		for at := 0; at < len(b) && r.wrErr == nil; at += writeStep {
			r.step(b[at:min(len(b), at+writeStep)])
		}
		r.bufs.putOut(b)
	}
	r.out, r.writing = nil, false
	r.account(r.s)
	if s := r.s; s.gone || r.wrErr == nil && !s.held && !s.over && !s.eof && !r.stop {
		return
	}
	r.begin()
	r.s.Touched()
	r.finish()
}

// step writes b without holding mu. There is no time limit: when the session's is over, the connection is closed, and
// that ends the write.
func (r *routine) step(b []byte) {
	r.mu.Unlock()
	n, err := r.conn.Write(b)
	r.mu.Lock()
	s := r.s
	if s.gone {
		r.wrErr = ErrClosed
		return
	}
	s.queued -= n
	r.now = clock()
	s.activeAt, s.sentAt = r.now, r.now
	r.srv.counters.bytesOut.Add(int64(n))
	if r.drained(r.s) {
		r.changed()
	}
	if err != nil {
		r.wrErr = errors.Join(ErrBroken, err)
	}
}

// adopt implements endpoint: the session was there from the beginning.
func (r *routine) adopt(*Session) {}

// handOver implements endpoint.
func (r *routine) handOver(s *Session, to protocolKind, prefix []byte) {
	r.release(s)
	s.gone = true
	r.conn.SetReadDeadline(time.Time{})
	r.srv.serveOther(to, r.conn, append([]byte(nil), prefix...), s.listener, r.secure)
}

// sessions implements endpoint.
func (r *routine) sessions(f func(s *Session)) {
	if !r.s.gone {
		f(r.s)
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}
