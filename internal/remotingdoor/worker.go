package remotingdoor

import (
	"context"
	"errors"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
)

// worker serves one driver of connections. All but what mu guards belongs to it.
type worker struct {
	d      *Door
	driver remoting.Driver
	pass   *broker.Pass
	cur    *flight // of this pass
	spare  []*flight
	after  []func() // to be done when the pass has ended
	props  []byte   // unescaped properties of the message at hand
	send   protocol.SendMessageRequest
	pull   protocol.PullMessageRequest

	mu       sync.Mutex // guards the following
	landed   []*flight  // whose batches are done
	woken    bool       // a waiting pull is to be looked at
	flushing bool       // the worker will see both by itself

	took []*flight

	head    []byte // of JSON answers to sends, with this configuration
	headFor *broker.Config

	pulled  int64     // pulls that this pass has answered
	pulling time.Time // when the first pull of this pass came; zero before
}

// conn is what the door keeps with a connection.
type conn struct {
	s         *remoting.Session
	client    *broker.Client // of the last heartbeat
	storeHost netip.AddrPort
	hostHex   []byte // the address part of offset message ids
	waits     map[*broker.Waiting]struct{}
	// fingerprint is that of the last heartbeat that told all subscriptions.
	fingerprint int32
}

// NewWorker makes the worker of a driver; it is what remoting.Options wants.
func (d *Door) NewWorker(driver remoting.Driver) remoting.Worker {
	w := &worker{d: d, driver: driver}
	w.pass = d.b.NewPass(w.wake)
	w.cur = w.newFlight()
	return w
}

// wake is called, from anywhere, when a waiting pull is to be looked at.
func (w *worker) wake() {
	w.mu.Lock()
	wake := !w.flushing && !w.woken
	w.woken = true
	w.mu.Unlock()
	if wake {
		w.driver.Wake()
	}
}

func (w *worker) newFlight() *flight {
	if n := len(w.spare); n > 0 {
		f := w.spare[n-1]
		w.spare = w.spare[:n-1]
		return f
	}
	f := &flight{w: w}
	f.batch.Done = f.done
	return f
}

// Begin implements remoting.Worker.
func (w *worker) Begin() { w.pass.Begin(&w.cur.batch) }

// Serve implements remoting.Worker.
func (w *worker) Serve(s *remoting.Session, c *protocol.Command) {
	h, ok := w.d.table[c.Code]
	switch {
	case !ok:
		w.d.b.Stats.RefusedFor[broker.Unsupported].Add(1)
		w.answer(s, c, c.Reply(protocol.RespRequestCodeNotSupported, " request type "+itoa(int64(c.Code))+" not supported"))
	case h.hot != nil:
		h.hot(w, s, c)
	default:
		w.goCold(s, c, h.cold)
	}
}

// later does something when the pass has ended and views are not held any more.
func (w *worker) later(f func()) { w.after = append(w.after, f) }

// answer writes the answer of a hot request.
func (w *worker) answer(s *remoting.Session, c *protocol.Command, a *protocol.Command) {
	if a != nil && !c.IsOneway() {
		s.Out = a.Append(s.Out)
	}
}

// refuse answers a hot request with an error.
func (w *worker) refuse(s *remoting.Session, c *protocol.Command, err error) {
	w.answer(s, c, c.Reply(w.d.outcome(err)))
}

// goCold serves a request on the pool, with a copy of it.
func (w *worker) goCold(s *remoting.Session, c *protocol.Command, serve func(context.Context, *request) *protocol.Command) {
	err := w.detach(s, c, serve, func(f func()) error {
		if !w.d.b.Go(f) {
			return errPoolFull
		}
		return nil
	})
	if err != nil {
		w.refuse(s, c, err)
	}
}

var errPoolFull = &broker.Error{
	Reason: broker.Busy, Text: "[OVERLOAD]system busy, start flow control for a while: too many requests wait that may need the disk (pool-queue)",
}

// detach serves a copy of a request away from the pass, where run runs it. The error is run's.
func (w *worker) detach(s *remoting.Session, c *protocol.Command, serve func(context.Context, *request) *protocol.Command, run func(func()) error) error {
	r := &request{Command: clone(c), d: w.d, s: s, client: w.conn(s).client, at: time.Now()}
	return run(func() {
		ctx, cancel := context.WithTimeout(w.d.ctx, coldTime)
		defer cancel()
		if a := r.serve(ctx, serve); a != nil && !r.IsOneway() {
			s.Post(a.Append(nil))
		}
	})
}

// serve calls the handler. A panic in it is answered, and ends nothing else.
func (r *request) serve(ctx context.Context, handle func(context.Context, *request) *protocol.Command) (a *protocol.Command) {
	defer func() {
		if p := recover(); p != nil {
			r.d.opts.Log.Error("request failed", "code", r.Name(), "client", r.s.Remote().String(), "panic", p, "stack", string(debug.Stack()))
			a = r.fail(errPanic)
		}
	}()
	return handle(ctx, r)
}

var errPanic = errors.New("the request failed in the server: see its log")

// clone copies a command whose memory is about to be used again.
func clone(c *protocol.Command) *protocol.Command {
	n := *c
	n.Ext = protocol.Ext{}
	for i := range c.Ext.Len() {
		f := c.Ext.At(i)
		n.Ext.SetBytes(string(f.Key), c.Ext.Value(f))
	}
	n.Body = append([]byte(nil), c.Body...)
	return &n
}

// conn is what the door keeps with a connection.
func (w *worker) conn(s *remoting.Session) *conn {
	if c, ok := s.Attachment.(*conn); ok {
		return c
	}
	c := &conn{s: s, storeHost: w.d.opts.StoreHost(s)}
	c.hostHex = appendHostHex(nil, c.storeHost)
	s.Attachment = c
	return c
}

// Flush implements remoting.Worker: it submits the pass's batch, and answers those
// whose batches are done and those whose wait is over.
func (w *worker) Flush() {
	w.mu.Lock()
	w.flushing = true
	w.mu.Unlock()
	w.end()
	w.timePulls()
	for i, f := range w.after {
		f()
		w.after[i] = nil
	}
	w.after = w.after[:0]
	for {
		w.mu.Lock()
		w.took, w.landed = w.landed, w.took[:0]
		woken := w.woken
		w.woken = false
		if len(w.took) == 0 && !woken {
			w.flushing = false
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		for i, f := range w.took {
			w.answerFlight(f)
			f.reset()
			w.spare = append(w.spare, f)
			w.took[i] = nil
		}
		if woken {
			w.pass.Begin(&w.cur.batch)
			w.pass.Woken(w.answerWaiting)
			w.end()
		}
	}
}

// timePulls notes how long the pulls of this pass took that were answered at once: all of them the same, since it is
// the pass that takes the time.
func (w *worker) timePulls() {
	if w.pulling.IsZero() {
		return
	}
	if w.pulled > 0 {
		w.d.b.Stats.PullTime.ObserveN(time.Since(w.pulling), w.pulled)
	}
	w.pulled, w.pulling = 0, time.Time{}
}

// end ends the pass; its batch, when there is something in it, has taken off.
func (w *worker) end() {
	f := w.cur
	if f.batch.Empty() {
		// The batch may get commands in End, so it decides.
		if !w.pass.End() {
			return
		}
		w.cur = w.newFlight()
		return
	}
	w.cur = w.newFlight()
	w.pass.End()
}

// split lets the pass's batch take off and begins another one: a batch has a largest size.
func (w *worker) split() {
	w.end()
	w.pass.Begin(&w.cur.batch)
}

// Closed implements remoting.Worker.
func (w *worker) Closed(s *remoting.Session) {
	if w.d.opts.NameServer != nil {
		w.d.opts.NameServer.Closed(s)
	}
	c, ok := s.Attachment.(*conn)
	if !ok {
		return
	}
	for wait := range c.waits {
		w.pass.Forget(wait)
	}
	c.waits = nil
	if c.client != nil {
		client := c.client
		c.client = nil
		w.d.b.Gone(client)
	}
}
