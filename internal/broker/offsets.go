package broker

import (
	"context"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/view/offset"
	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/message"
)

// pendingCommit is an offset that this pass commits.
type pendingCommit struct {
	group, topic string
	at           entry.QueueAt
}

// commit notes a group's offset for the pass's batch, if it is further than what is known.
func (p *Pass) commit(group, topic []byte, queue int32, off message.QueueOffset) {
	if p.b.offsets.Of(group, topic).At(queue) >= off {
		return
	}
	for i := range p.commits {
		if c := &p.commits[i]; c.at.Queue == queue && c.topic == string(topic) && c.group == string(group) {
			c.at.Offset = max(c.at.Offset, off)
			return
		}
	}
	d, g := p.find(topic), p.b.groups.Get(group)
	if d != nil && g != nil {
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
	// CommitBackwards: it is an administrator's reset, see ResetOffset.
	CommitBackwards
)

// Commit stores a group's offset. It never goes back: a smaller offset from a member
// of the group, which may come late, is passed over. From anybody else it is an
// administrator's reset.
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
	if r.Offset < 0 {
		return CommitPassed, refuse(InvalidParameter, "offset %d is negative", r.Offset)
	}
	id := ""
	if r.Client != nil {
		id = r.Client.ID
	}
	t := p.b.offsets.Of(r.Group, r.Topic)
	if t.Pending(r.QueueID) || p.b.locks.denies(string(r.Group), string(r.Topic), r.QueueID, id) {
		return CommitPassed, nil
	}
	switch at := t.At(r.QueueID); {
	case r.Offset < at && !p.b.isMember(r.Client, string(r.Group)):
		return CommitBackwards, nil
	case r.Offset <= at:
		return CommitPassed, nil
	}
	p.durable = true
	p.commit(r.Group, r.Topic, r.QueueID, r.Offset)
	return CommitPending, nil
}

func (b *Broker) isMember(c *Client, group string) bool {
	if c == nil {
		return false
	}
	b.clients.mu.RLock()
	defer b.clients.mu.RUnlock()
	return c.consumers[group] != nil
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
// and the client decides where to begin.
func (p *Pass) Offset(group, topic []byte, queueID int32, zeroIfNone bool) (message.QueueOffset, error) {
	if at := p.b.offsets.Of(group, topic).At(queueID); at != offset.None {
		return at, nil
	}
	notFound := refuse(NoOffset, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first")
	if !zeroIfNone {
		return 0, notFound
	}
	d := p.find(topic)
	if d == nil || queueID < 0 || int(queueID) >= len(d.queues.Queues) {
		return 0, notFound
	}
	q := d.queues.Queues[queueID]
	if q.Min() > 0 || q.End() == 0 {
		return 0, notFound
	}
	var first [1]queue.Entry
	if n, err := q.Read(0, first[:]); err != nil || n == 0 {
		return 0, notFound // not even its index is in memory: it is not young
	}
	if int64(p.b.shard.Applied()-first[0].Position) > p.b.young {
		return 0, notFound
	}
	return 0, nil
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
