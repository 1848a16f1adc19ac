package bench

import (
	"sync"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
)

// sampled is one in how many successes is looked at closely.
const sampled = 1024

// An opaque is opaqueBase, plus the slot of the request, plus how often the slot was used before: an answer that comes twice finds
// nobody.
const (
	slotBits = 16
	useMask  = 1<<14 - 1
)

// slot is a request that may be under way.
type slot struct {
	since int64 // when it was sent, or due
	queue int32
	use   uint16
	busy  bool
}

// A producer is one connection that sends. In a closed loop one goroutine does everything; with a schedule another one sends, and
// mu guards what both use.
type producer struct {
	*course
	o         ProduceOptions
	number    int
	link      *link
	tally     *tally
	template  *template
	queues    []int32
	next      int           // index of the queue whose turn it is
	sequences []uint64      // by index of the queue
	left      int64         // frames still to be sent
	frames    int64         // sent
	room      chan struct{} // for the sender of a schedule: there may be room again
	stopAt    int64         // when that sender stopped

	mu       sync.Mutex
	slots    []slot
	free     []uint16
	sentAll  bool
	cmd      protocol.Command // for answers that are looked at closely
	response protocol.SendMessageResponse

	acked, total, unmatched, badAcks int64
	failed                           map[int32]int64
	remark                           string
	latency, lateness                latencies
	lastAck                          int64

	each     func(frame []byte) error // eachAnswer; made once, so that a read does not allocate
	answered int64                    // when the answers of this read came; 0 before the first
	news     int64                    // messages that they acknowledge
}

func newProducer(o ProduceOptions, b Broker, number int) (*producer, error) {
	highest := int32(0)
	for _, q := range b.Queues {
		highest = max(highest, q)
	}
	t, err := newTemplate(templateOptions{
		group: o.Group, topic: o.Target.Topic, broker: b.Name, encoding: o.Encoding, queues: int(highest) + 1, size: o.Size, batch: o.Batch,
	})
	if err != nil {
		return nil, err
	}
	p := &producer{
		o: o, number: number, template: t, queues: b.Queues, sequences: make([]uint64, len(b.Queues)), room: make(chan struct{}, 1),
		slots: make([]slot, o.InFlight), free: make([]uint16, o.InFlight), failed: map[int32]int64{},
		latency: newLatencies(), lateness: newLatencies(),
		next:   number % len(b.Queues), // connections do not begin with the same queue
		stopAt: noEnd,
	}
	p.each = p.eachAnswer
	for i := range p.free {
		p.free[i] = uint16(o.InFlight - 1 - i)
	}
	return p, nil
}

// join makes p part of a course.
func (p *producer) join(c *course, i int) {
	p.course, p.tally = c, &c.tallies[i]
	if c.end < noEnd {
		_ = p.link.conn.SetDeadline(c.at(c.end).Add(p.o.Drain)) // a closed connection is found by the read
	}
}

// interrupt ends the run: nothing more is sent, and what is under way has a moment to be answered.
func (p *producer) interrupt() {
	_ = p.link.conn.SetDeadline(time.Now().Add(min(p.o.Drain, time.Second))) // as in join
	p.signal()
}

// signal wakes the sender of a schedule.
func (p *producer) signal() {
	select {
	case p.room <- struct{}{}:
	default:
	}
}

func (p *producer) run() error {
	if p.o.Rate > 0 {
		return p.scheduled()
	}
	return p.loop()
}

// loop sends whenever there is room and reads answers in between.
func (p *producer) loop() error {
	for {
		if err := p.fill(); err != nil {
			return err
		}
		if p.inFlight() == 0 && p.link.rest == nil {
			return nil
		}
		switch more, err := p.readAnswers(); {
		case err != nil:
			return err
		case !more:
			return nil
		}
	}
}

// fill sends until the window is full.
func (p *producer) fill() error {
	for {
		idle, err := p.link.idle()
		if err != nil || !idle {
			return err
		}
		now := p.now()
		if p.over(now) {
			p.left = 0
		}
		p.mu.Lock()
		for p.left > 0 && len(p.free) > 0 && len(p.link.out) < chunk {
			p.add(now, now)
		}
		p.mu.Unlock()
		if p.left == 0 && p.o.Count > 0 && p.o.Duration == 0 && !p.sentAll {
			p.sentAll = true
			_ = p.link.conn.SetReadDeadline(time.Now().Add(p.o.Drain)) // as in join
		}
		if len(p.link.out) == 0 {
			return nil
		}
		if err := p.link.flush(); err != nil {
			return err
		}
	}
}

// add appends a request to what is to be written. mu is held.
func (p *producer) add(now, due int64) {
	at := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	s := &p.slots[at]
	queue := p.queues[p.next]
	s.since, s.queue, s.busy = due, queue, true
	p.link.out = p.template.append(p.link.out, &sending{
		opaque: opaqueBase + int32(at) + int32(s.use)<<slotBits,
		born:   (p.wall + now) / int64(time.Millisecond),
		queue:  int(queue),
		mark: mark{
			run: p.o.Run, stream: uint32(p.number), queue: uint32(queue), sequence: p.sequences[p.next], time: p.wall + due,
		},
	})
	p.sequences[p.next] += uint64(p.o.Batch)
	if p.next++; p.next == len(p.queues) {
		p.next = 0
	}
	p.left--
	p.frames++
}

func (p *producer) inFlight() int { return p.o.InFlight - len(p.free) }

// readAnswers waits for answers and takes them; false when the time is over.
func (p *producer) readAnswers() (more bool, err error) {
	p.answered, p.news = 0, 0
	more, err = p.link.read(p.each)
	if p.answered == 0 {
		return more, err
	}
	p.mu.Unlock()
	p.signal()
	if p.news > 0 {
		p.total += p.news
		p.tally.messages.Add(p.news)
		p.tally.bytes.Add(p.news * int64(p.o.Size))
		if p.measured(p.answered) {
			p.acked += p.news
			p.lastAck = p.answered
		}
	}
	return more, err
}

// eachAnswer is called for the answers of one read, the first of which locks mu.
func (p *producer) eachAnswer(frame []byte) error {
	if p.answered == 0 {
		p.answered = p.now()
		p.mu.Lock()
	}
	ok, err := p.take(frame, p.answered)
	if ok {
		p.news += int64(p.o.Batch)
	}
	return err
}

// take takes an answer; true if it acknowledges a send. mu is held.
func (p *producer) take(frame []byte, now int64) (acked bool, err error) {
	r, ok := scanReply(frame)
	if !ok || r.code != protocol.RespSuccess {
		if err := p.cmd.Decode(frame); err != nil {
			return false, err
		}
		if !p.cmd.IsResponse() {
			return false, nil // the server tells something; a load generator has no use for it
		}
		r = reply{opaque: p.cmd.Opaque, code: p.cmd.Code}
	}
	n := int(r.opaque) - opaqueBase
	at := n & (1<<slotBits - 1)
	if n < 0 || at >= len(p.slots) || !p.slots[at].busy || int(p.slots[at].use) != n>>slotBits {
		p.unmatched++
		return false, nil
	}
	s := &p.slots[at]
	s.busy = false
	s.use = (s.use + 1) & useMask
	p.free = append(p.free, uint16(at))
	if r.code != protocol.RespSuccess {
		p.fail(r.code)
		return false, nil
	}
	if p.measured(now) {
		p.latency.add(now-s.since, int64(p.o.Batch))
	}
	if (p.total/int64(p.o.Batch)+int64(at))%sampled == 0 {
		p.examine(frame, s.queue)
	}
	return true, nil
}

func (p *producer) fail(code int32) {
	p.failed[code] += int64(p.o.Batch)
	p.tally.errors.Add(int64(p.o.Batch))
	if p.remark == "" {
		p.remark = p.cmd.Remark
	}
}

// examine looks whether a success says where the message went.
func (p *producer) examine(frame []byte, queue int32) {
	if p.cmd.Decode(frame) != nil || p.response.Decode(&p.cmd.Ext) != nil ||
		p.response.QueueId != queue || p.response.QueueOffset < 0 || len(p.response.MsgId) == 0 {
		p.badAcks++
	}
}
