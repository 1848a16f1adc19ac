package bench

import (
	"sync/atomic"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

// Bits of a pull's sysFlag.
const (
	pullCommit    = 1
	pullHold      = 2
	pullSubscribe = 4
)

// busyPause is how long a queue waits when the server is busy.
const busyPause = 20 * time.Millisecond

// goal is what the consumers of a run reach together.
type goal struct {
	wanted   atomic.Int64 // messages until the end; 0: there is no such end
	seen     atomic.Int64
	finish   func() // called at the end, perhaps more than once
	starting int64
	started  atomic.Int64
	ready    func()
}

// begun says that a connection has all its pulls under way.
func (g *goal) begun() {
	if g.started.Add(1) == g.starting && g.ready != nil {
		g.ready()
	}
}

// count counts messages and ends the run when there were enough.
func (g *goal) count(n int64) {
	seen := g.seen.Add(n)
	if wanted := g.wanted.Load(); wanted > 0 && seen >= wanted {
		g.finish()
	}
}

// want sets how many messages end the run.
func (g *goal) want(n int64) {
	g.wanted.Store(n)
	g.count(0)
}

// queuePull is a queue that a consumer pulls.
type queuePull struct {
	id     int32
	offset int64
	to     int64
}

// A consumer is one connection that pulls some queues, each with one pull at a time.
type consumer struct {
	*course
	goal   *goal
	o      ConsumeOptions
	broker string
	link   *link
	tally  *tally
	queues []queuePull
	due    []int32 // indices of queues to be pulled next
	busy   []int32 // indices of queues to be pulled after a pause
	open   int     // pulls under way

	cmd, request protocol.Command
	header       protocol.PullMessageRequest
	response     protocol.PullMessageResponse
	record       message.Record
	checks       checks

	received, total, bytes, found int64
	uncounted                     int64 // foreign messages that foreignSince has told
	failed                        map[int32]int64
	remark                        string
	latency                       latencies
	lastAt                        int64
}

func newConsumer(o ConsumeOptions, b Broker) *consumer {
	cs := &consumer{o: o, broker: b.Name, failed: map[int32]int64{}, latency: newLatencies(), checks: newChecks(o)}
	cs.request = protocol.Command{
		Code: protocol.ReqPullMessage, Language: protocol.LanguageGo, Version: protocol.ServerVersion, Encoding: o.Encoding,
	}
	cs.header = protocol.PullMessageRequest{
		ConsumerGroup: []byte(o.Group), Topic: []byte(o.Target.Topic), MaxMsgNums: int32(o.Batch), SysFlag: pullHold | pullSubscribe,
		SuspendTimeoutMillis: o.Hold.Milliseconds(), Subscription: []byte("*"), ExpressionType: []byte("TAG"), Bname: []byte(b.Name),
		Lo: true,
	}
	if o.Commit {
		cs.header.SysFlag |= pullCommit
	}
	return cs
}

// add gives the consumer a queue.
func (cs *consumer) add(id int32, s Start) {
	cs.queues = append(cs.queues, queuePull{id: id, offset: s.From, to: s.To})
	cs.checks.whole = append(cs.checks.whole, s.Whole)
}

func (cs *consumer) join(c *course, g *goal, i int) {
	cs.course, cs.goal, cs.tally = c, g, &c.tallies[i]
	cs.setDeadline()
}

// setDeadline makes the reading end with the run.
func (cs *consumer) setDeadline() {
	at := time.Time{}
	if cs.end < noEnd {
		at = cs.at(cs.end)
	}
	_ = cs.link.conn.SetReadDeadline(at) // a closed connection is found by the read
}

func (cs *consumer) interrupt() {
	_ = cs.link.conn.SetReadDeadline(time.Now()) // as in setDeadline
}

func (cs *consumer) run() error {
	for i, q := range cs.queues {
		if q.to < 0 || q.offset < q.to {
			cs.due = append(cs.due, int32(i))
		}
	}
	first := true
	for {
		if err := cs.pull(); err != nil {
			return err
		}
		if first && len(cs.due) == 0 {
			first = false
			cs.goal.begun()
		}
		if cs.open == 0 && len(cs.due)+len(cs.busy) == 0 && cs.link.rest == nil {
			return nil
		}
		if len(cs.busy) > 0 {
			_ = cs.link.conn.SetReadDeadline(time.Now().Add(busyPause)) // as in setDeadline
		}
		more, err := cs.readAnswers()
		if err != nil {
			return err
		}
		if cs.over(cs.now()) {
			return nil
		}
		if !more {
			if len(cs.busy) == 0 {
				return nil
			}
			cs.due = append(cs.due, cs.busy...)
			cs.busy = cs.busy[:0]
			cs.setDeadline()
		}
	}
}

// pull sends the pulls that are to be sent.
func (cs *consumer) pull() error {
	for len(cs.due) > 0 {
		idle, err := cs.link.idle()
		if err != nil || !idle {
			return err
		}
		n := 0
		for n < len(cs.due) && len(cs.link.out) < chunk {
			at := cs.due[n]
			q := &cs.queues[at]
			cs.header.QueueId, cs.header.QueueOffset, cs.header.CommitOffset = q.id, q.offset, q.offset
			cs.request.Opaque = at
			cs.request.Ext.Reset()
			cs.header.Encode(&cs.request.Ext)
			cs.link.out = cs.request.Append(cs.link.out)
			n++
		}
		cs.due = append(cs.due[:0], cs.due[n:]...)
		cs.open += n
		if err := cs.link.flush(); err != nil {
			return err
		}
	}
	return nil
}

// readAnswers waits for answers and takes them; false when the time is over.
func (cs *consumer) readAnswers() (bool, error) {
	now := int64(0)
	got := int64(0)
	more, err := cs.link.read(func(frame []byte) error {
		if now == 0 {
			now = cs.now()
		}
		n, err := cs.take(frame, now)
		got += n
		return err
	})
	if got > 0 {
		cs.total += got
		cs.tally.messages.Add(got)
		cs.lastAt = now
		if cs.measured(now) {
			cs.received += got
		}
		cs.goal.count(got - cs.foreignSince())
	}
	return more, err
}

// foreignSince is how many messages since the last call do not count towards the goal, because the run is about others.
func (cs *consumer) foreignSince() (n int64) {
	if cs.o.Run != 0 {
		n = cs.checks.foreign - cs.uncounted
		cs.uncounted = cs.checks.foreign
	}
	return n
}

// take takes an answer and tells how many messages it has.
func (cs *consumer) take(frame []byte, now int64) (int64, error) {
	c := &cs.cmd
	if err := c.Decode(frame); err != nil {
		return 0, err
	}
	at := c.Opaque
	if !c.IsResponse() || at < 0 || int(at) >= len(cs.queues) {
		return 0, nil
	}
	cs.open--
	q := &cs.queues[at]
	switch c.Code {
	case protocol.RespSuccess, protocol.RespPullNotFound, protocol.RespPullRetryImmediately, protocol.RespPullOffsetMoved:
	default:
		cs.failed[c.Code]++
		cs.tally.errors.Add(1)
		if cs.remark == "" {
			cs.remark = c.Remark
		}
		if c.Code == protocol.RespSystemBusy {
			cs.busy = append(cs.busy, at)
		}
		return 0, nil
	}
	if err := cs.response.Decode(&c.Ext); err != nil {
		return 0, err
	}
	n := int64(0)
	if c.Code == protocol.RespSuccess {
		var err error
		if n, err = cs.messages(int(at), c.Body, now); err != nil {
			return n, err
		}
		cs.found++
	}
	q.offset = cs.response.NextBeginOffset
	if q.to < 0 || q.offset < q.to {
		cs.due = append(cs.due, at)
	}
	return n, nil
}

// messages checks the records of a pull.
func (cs *consumer) messages(at int, body []byte, now int64) (n int64, err error) {
	q := &cs.queues[at]
	measured := cs.measured(now)
	bytes := int64(0)
	expected := message.QueueOffset(q.offset)
	for len(body) > 0 {
		size, err := cs.record.Parse(body)
		if err != nil {
			return n, err
		}
		body = body[size:]
		n++
		bytes += int64(len(cs.record.Body))
		m, known := cs.checks.check(at, q.id, expected, &cs.record)
		expected = cs.record.QueueOffset + 1
		if !known {
			continue
		}
		if cs.o.Live && measured {
			cs.latency.add(max(0, cs.wall+now-m.time), 1)
		}
	}
	cs.tally.bytes.Add(bytes)
	if measured {
		cs.bytes += bytes
	}
	return n, nil
}
