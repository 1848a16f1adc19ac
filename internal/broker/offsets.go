package broker

import (
	"context"
	"errors"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/internal/view/offset"
	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/message"
)

// pendingCommit is an offset that this pass commits.
type pendingCommit struct {
	group, topic string
	at           entry.QueueAt
}

// commit notes a group's offset for the pass's batch, if it is further than what is
// known. Nothing beyond the queue's end can have been consumed.
func (p *Pass) commit(group, topic []byte, queue int32, off message.QueueOffset, client *Client) {
	d := p.find(topic)
	if d == nil || int(queue) >= len(d.queues.Queues) {
		return
	}
	off = min(off, d.queues.Queues[queue].End())
	if p.b.offsets.Of(group, topic).At(queue) >= off {
		return
	}
	for i := range p.commits {
		if c := &p.commits[i]; c.at.Queue == queue && c.topic == string(topic) && c.group == string(group) {
			c.at.Offset = max(c.at.Offset, off)
			return
		}
	}
	if g := p.b.groups.Get(group); g != nil {
		if client != nil {
			p.b.committers.set(committed{g.Name, d.topic.Name, queue}, client.ID)
		}
		p.commits = append(p.commits, pendingCommit{g.Name, d.topic.Name, entry.QueueAt{Queue: queue, Offset: off}})
	}
}

// flushCommits puts the noted offsets into the batch.
func (p *Pass) flushCommits() {
	if len(p.commits) == 0 {
		p.batch.Lazy = p.batch.Lazy && len(p.batch.Msgs) == 0
		return
	}
	p.batch.Lazy = !p.durable && len(p.batch.Msgs) == 0
	for i := range p.commits {
		c := &p.commits[i]
		p.items[0] = c.at
		p.batch.Command(&entry.CommitOffsets{Group: c.group, Topic: c.topic, Items: p.items[:]})
	}
	clear(p.commits)
	p.commits, p.durable = p.commits[:0], false
}

// CommitRequest says how far a group has consumed a queue.
type CommitRequest struct {
	Group, Topic []byte
	QueueID      int32
	Offset       message.QueueOffset
	Client       *Client
}

// Committed says what became of a commit.
type Committed byte

const (
	// CommitPassed: there is nothing to be stored, because it comes late or is known already.
	CommitPassed Committed = iota
	// CommitPending: it is stored once the pass's batch is done.
	CommitPending
	// CommitBackwards: it is a reset, see ResetOffset.
	CommitBackwards
)

// Commit stores a group's offset. It never goes back by itself: a smaller offset is
// passed over as one that comes late. It is a reset, with a name on it, when the
// client that committed last takes it back (it seeks), or when nobody of the group is
// connected (an administrator's tool).
func (p *Pass) Commit(r *CommitRequest) (Committed, error) {
	if p.b.groups.Get(r.Group) == nil {
		if p.mayCreateGroup(string(r.Group)) {
			return CommitPassed, ErrCold
		}
		return CommitPassed, refuse(GroupNotFound, "Group %s not exist!", r.Group)
	}
	d := p.find(r.Topic)
	if d == nil {
		return CommitPassed, refuse(TopicNotFound, "Topic %s not exist!", r.Topic)
	}
	if r.QueueID < 0 || int(r.QueueID) >= len(d.queues.Queues) {
		return CommitPassed, refuse(InvalidParameter, "queueId %d is illegal, topic %s has %d queues", r.QueueID, r.Topic, len(d.queues.Queues))
	}
	if r.Offset < 0 { // so Go clients say that they have consumed nothing yet
		return CommitPassed, nil
	}
	t := p.b.offsets.Of(r.Group, r.Topic)
	if t.Pending(r.QueueID) || p.b.locks.denies(string(r.Group), string(r.Topic), r.QueueID, r.Client) {
		return CommitPassed, nil
	}
	switch at := t.At(r.QueueID); {
	case r.Offset < at && (!p.b.clients.online(string(r.Group)) || p.b.committers.is(r.Group, r.Topic, r.QueueID, r.Client)):
		return CommitBackwards, nil
	case min(r.Offset, d.queues.Queues[r.QueueID].End()) <= at:
		return CommitPassed, nil
	}
	p.durable = true
	p.commit(r.Group, r.Topic, r.QueueID, r.Offset, r.Client)
	return CommitPending, nil
}

// ColdCommit is Commit for a group that has to be made first, or by order of actor
// when that takes its offset back.
func (b *Broker) ColdCommit(ctx context.Context, r *CommitRequest, actor string) error {
	if err := b.EnsureGroups(ctx, []string{string(r.Group)}); err != nil {
		return err
	}
	p, batch := b.coldPass(), &shard.Batch{}
	done := make(chan struct{})
	batch.Done = func(*shard.Batch) { close(done) }
	p.Begin(batch)
	outcome, err := p.Commit(r)
	submitted := p.End()
	switch {
	case errors.Is(err, ErrCold):
		return refuse(GroupNotFound, "Group %s not exist!", r.Group)
	case err != nil:
		return err
	case outcome == CommitBackwards:
		return b.ResetOffset(ctx, string(r.Group), string(r.Topic), []entry.QueueAt{{Queue: r.QueueID, Offset: r.Offset}}, false, actor)
	case !submitted:
		return nil
	}
	select {
	case <-done:
		return batch.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// settleReset notes that the group was told of a reset.
func (p *Pass) settleReset(r *PullRequest, at message.QueueOffset) {
	p.settle(string(r.Group), string(r.Topic), r.QueueID, at)
}

func (p *Pass) settle(group, topic string, queue int32, at message.QueueOffset) {
	p.batch.Command(&entry.ResetOffsets{Group: group, Topic: topic, Items: []entry.QueueAt{{Queue: queue, Offset: at}}, Actor: "told"})
}

// ResetOffset sets offsets by order of actor, back or forth. Pending makes it bind
// the group's next pulls.
func (b *Broker) ResetOffset(ctx context.Context, group, topic string, items []entry.QueueAt, pending bool, actor string) error {
	return b.do(ctx, &entry.ResetOffsets{Group: group, Topic: topic, Items: items, Pending: pending, Actor: actor})
}

// Offset is how far a group has consumed a queue. A group without an offset begins
// at 0 if the queue's first message is young; else the error's reason is NoOffset
// and the client decides where to begin. ErrCold: call ColdOffset.
func (p *Pass) Offset(group, topic []byte, queueID int32, zeroIfNone bool) (message.QueueOffset, error) {
	if at := p.b.offsets.Of(group, topic).At(queueID); at != offset.None {
		return at, nil
	}
	d := p.find(topic)
	if !zeroIfNone || d == nil || queueID < 0 || int(queueID) >= len(d.queues.Queues) {
		return 0, errNoOffset
	}
	q := d.queues.Queues[queueID]
	if q.Min() > 0 || q.End() == 0 {
		return 0, errNoOffset
	}
	var first [1]queue.Entry
	if _, err := q.Read(0, first[:]); err != nil {
		return 0, ErrCold
	}
	return 0, p.b.mustBeYoung(first[0])
}

var errNoOffset = refuse(NoOffset, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first")

func (b *Broker) mustBeYoung(first queue.Entry) error {
	if int64(b.shard.Applied()-first.Position) > b.young {
		return errNoOffset
	}
	return nil
}

// ColdOffset is Offset for a group without one, when the queue's first index entry is not in memory.
func (b *Broker) ColdOffset(topic string, queueID int32) (message.QueueOffset, error) {
	w, ok := b.window(topic, queueID)
	if !ok || w.low > 0 || w.high == 0 {
		return 0, errNoOffset
	}
	first, err := w.entry(0)
	if err != nil {
		return 0, err
	}
	return 0, b.mustBeYoung(first)
}

// Bounds are the smallest offset of a queue and the one that its next message gets; 0, 0 for an unknown queue.
func (p *Pass) Bounds(topic []byte, queueID int32) (low, high message.QueueOffset) {
	d := p.find(topic)
	if d == nil || queueID < 0 || int(queueID) >= len(d.queues.Queues) {
		return 0, 0
	}
	q := d.queues.Queues[queueID]
	return q.Min(), q.End()
}
