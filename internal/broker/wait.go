package broker

import (
	"container/heap"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metaqio/metaq/internal/filter"
	"github.com/metaqio/metaq/internal/waiters"
	"github.com/metaqio/metaq/message"
)

// Waiting is a pull that waits for a message (long polling). It belongs to the pass that parked it.
type Waiting struct {
	waiters.Waiter
	// Reply is the door's: whom to answer.
	Reply any

	pull     pull
	group    string
	client   *Client
	version  int64  // of the subscription that the pull was sent with
	typ      string // TAG or SQL92, of that; empty when the pull brought its own expression
	began    int64  // offset that was asked for
	deadline time.Time
	index    int  // in the heap of deadlines
	woken    bool // in the pass's list
}

// waitList is the waiting pulls of one pass.
type waitList struct {
	wake func() // makes the driver run a pass

	mu    sync.Mutex // guards the following
	woken []*Waiting

	deadlines deadlines // belongs to the driver, as do the next two
	watched   bool
	stale     int // of those waiting, how many do not know what to filter by
	next      atomic.Int64
	spare     []*Waiting
}

// never is when nothing is due, in ns of the monotonic clock.
const never = int64(1<<63 - 1)

// Park lets the request of the last Pull wait; that must have found nothing. It
// reports false when too many wait already.
func (p *Pass) Park(r *PullRequest, q PullResult, reply any) (*Waiting, bool) {
	if p.b.waiting.Add(1) > int64(p.conf.MaxWaiters) {
		p.b.waiting.Add(-1)
		return nil, false
	}
	w := &Waiting{
		Reply: reply, pull: p.looked, group: string(r.Group), client: r.Client, began: int64(r.Offset),
		deadline: time.Now().Add(r.Suspend),
	}
	w.pull.offset = q.Next
	if !r.HasExpression {
		w.version, w.typ = r.SubVersion, filter.TypeSQL92
		if filter.IsTag(r.ExpressionType) {
			w.typ = filter.TypeTag
		}
	}
	if w.pull.stale {
		p.waits.stale++
	}
	w.Notify = func() { p.waits.notify(w) }
	heap.Push(&p.waits.deadlines, w)
	p.waits.setNext()
	p.watchDeadlines()
	w.pull.queue.Waiters.Park(&w.Waiter)
	return w, true
}

// watchDeadlines puts the pass into the broker's list of those with waiting pulls
// while it has any. So nobody has to say when a driver, and its pass, is over.
func (p *Pass) watchDeadlines() {
	if waits := len(p.waits.deadlines) > 0; waits != p.waits.watched {
		p.waits.watched = waits
		p.b.mu.Lock()
		if waits {
			p.b.passes[p] = struct{}{}
		} else {
			delete(p.b.passes, p)
		}
		p.b.mu.Unlock()
	}
}

// notify is called when something arrived for w.
func (l *waitList) notify(w *Waiting) {
	l.mu.Lock()
	first := len(l.woken) == 0
	if !w.woken {
		w.woken = true
		l.woken = append(l.woken, w)
	}
	l.mu.Unlock()
	if first {
		l.wake()
	}
}

func (l *waitList) setNext() {
	if len(l.deadlines) == 0 {
		l.next.Store(never)
		return
	}
	l.next.Store(int64(l.deadlines[0].deadline.Sub(epoch)))
}

// epoch is where the monotonic times of deadlines count from.
var epoch = time.Now()

// Forget ends a waiting pull without an answer: its connection is gone.
func (p *Pass) Forget(w *Waiting) {
	if !w.Parked() {
		return
	}
	p.end(w)
}

func (p *Pass) end(w *Waiting) {
	w.Leave()
	if w.pull.stale {
		p.waits.stale--
	}
	heap.Remove(&p.waits.deadlines, w.index)
	p.waits.setNext()
	p.watchDeadlines()
	p.b.waiting.Add(-1)
}

// heard has pulls looked at again after a heartbeat: those that wait for it, and those
// of the client in groups whose subscriptions it has changed. Else messages that come
// after the change would be passed over by what was wanted before.
func (p *Pass) heard(c *Client, changed []string) {
	if p.waits.stale == 0 && len(changed) == 0 {
		return
	}
	for _, w := range p.waits.deadlines {
		if w.client == c && w.typ != "" && !w.pull.stale && slices.Contains(changed, w.group) {
			w.pull.stale = true
			p.waits.stale++
		}
		if w.pull.stale && (w.client == c || w.client == nil) {
			p.waits.notify(w)
		}
	}
}

// refresh finds out again what a pull filters by.
func (p *Pass) refresh(w *Waiting) error {
	f, stale, err := p.b.clients.subscription(&PullRequest{
		Group: []byte(w.group), Topic: w.pull.dest.name, SubVersion: w.version, ExpressionType: []byte(w.typ), Client: w.client,
	}, w.pull.group)
	if err != nil || stale {
		return err
	}
	w.pull.filter, w.pull.stale = f, false
	p.waits.stale--
	return nil
}

// Woken looks again for those waiting pulls for which something arrived or whose
// time is over, and calls answer for each that is to be answered; for Found,
// AppendRecords gives the records. REQUIRES: between Begin and End.
func (p *Pass) Woken(answer func(w *Waiting, res PullResult, err error)) {
	l := &p.waits
	l.mu.Lock()
	woken := l.woken
	l.woken = l.spare[:0]
	for _, w := range woken {
		w.woken = false
	}
	l.mu.Unlock()
	for i, w := range woken {
		woken[i] = nil
		if w.Parked() {
			p.lookAgain(w, false, answer)
		}
	}
	l.spare = woken[:0]
	if l.next.Load() == never {
		return
	}
	now := time.Now()
	for len(l.deadlines) > 0 && !now.Before(l.deadlines[0].deadline) {
		p.lookAgain(l.deadlines[0], true, answer)
	}
}

// lookAgain decides about one waiting pull.
func (p *Pass) lookAgain(w *Waiting, due bool, answer func(*Waiting, PullResult, error)) {
	if w.pull.dest.queues.Gone() {
		p.end(w)
		answer(w, PullResult{}, refuse(TopicNotFound, "topic[%s] not exist, it was deleted", w.pull.dest.name))
		return
	}
	if t := p.b.offsets.Of([]byte(w.group), w.pull.dest.name); t.Pending(w.pull.queue.ID()) {
		res := w.pull.bounds()
		res.Status, res.Next = OffsetReset, t.At(w.pull.queue.ID())
		p.end(w)
		p.settle(w.group, string(w.pull.dest.name), w.pull.queue.ID(), res.Next)
		answer(w, res, nil)
		return
	}
	if w.pull.stale {
		if err := p.refresh(w); err != nil {
			p.end(w)
			answer(w, PullResult{}, err)
			return
		}
	}
	denied := p.b.locks.denies(w.group, string(w.pull.dest.name), w.pull.queue.ID(), w.client)
	res, err := w.pull.bounds(), error(nil)
	res.Status = OffsetOverflowOne
	if !denied && !w.pull.stale {
		res, err = p.look(&w.pull)
	}
	switch {
	case err != nil, res.Status != OffsetOverflowOne && res.Status != NoMatchedMessage && res.Status != NoMessageInQueue:
	case res.Status == NoMatchedMessage && res.Next < res.Max: // there is more, and nothing would wake it: the client comes again at once
	case !due: // nothing for it yet; what was looked at need not be looked at again
		w.pull.offset = res.Next
		return
	case int64(res.Next) > w.began:
		res.Status = NoMatchedMessage
	}
	p.end(w)
	answer(w, res, err)
}

// deadlines is a heap of waiting pulls, the earliest first.
type deadlines []*Waiting

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].deadline.Before(d[j].deadline) }
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

// Push implements heap.Interface.
func (d *deadlines) Push(x any) {
	w := x.(*Waiting)
	w.index = len(*d)
	*d = append(*d, w)
}

// Pop implements heap.Interface.
func (d *deadlines) Pop() any {
	w := (*d)[len(*d)-1]
	(*d)[len(*d)-1] = nil
	*d = (*d)[:len(*d)-1]
	return w
}

// Offset is where the waiting pull goes on; Bounds are the queue's. REQUIRES: between Begin and End.
func (w *Waiting) Offset() message.QueueOffset { return w.pull.offset }

// Bounds are the smallest and the next offset of the queue that the pull waits for.
func (w *Waiting) Bounds() (low, high message.QueueOffset) {
	return w.pull.queue.Min(), w.pull.queue.End()
}
