package broker

import (
	"errors"
	"fmt"
	"time"

	"github.com/metaqio/metaq/internal/filter"
	"github.com/metaqio/metaq/internal/view/group"
	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/message"
)

// PullRequest asks for messages of a queue from an offset on. The slices are kept
// only while Pull runs.
type PullRequest struct {
	Group, Topic []byte
	QueueID      int32
	Offset       message.QueueOffset
	Max          int32
	// Commit is how far the group has consumed the queue; negative: nothing to commit.
	Commit  message.QueueOffset
	Suspend time.Duration // how long to wait when there is nothing; 0 = not at all
	// Expression filters, when HasExpression says that the request brings its own
	// subscription; else the one of the group's heartbeats counts.
	HasExpression  bool
	ExpressionType []byte
	Expression     []byte
	SubVersion     int64
	Lite           bool
	Client         *Client // who asks, as far as known by heartbeats; may be nil
}

// PullStatus says what a pull found.
type PullStatus byte

// The statuses; see semantics of RocketMQ's GetMessageStatus.
const (
	Found PullStatus = iota
	NoMatchedMessage
	MessageWasRemoving
	OffsetOverflowOne
	OffsetOverflowBadly
	OffsetTooSmall
	NoMessageInQueue
	OffsetReset
)

// PullResult is what a pull found: bounds of the queue, where to go on, and which records.
type PullResult struct {
	Status       PullStatus
	Next         message.QueueOffset
	Min, Max     message.QueueOffset
	TopicSysFlag int32
	GroupSysFlag int32
	Count        int // of records
}

// pull is a request whose names are looked up and checked.
type pull struct {
	dest   *destination
	group  *group.Group
	queue  *queue.Queue
	filter filter.Filter
	offset message.QueueOffset
	max    int
}

// checkPull checks a request in the order of the protocol.
func (p *Pass) checkPull(r *PullRequest) (pull, error) {
	var q pull
	if p.conf.Permission&permRead == 0 {
		return q, refuse(NoPermission, "the broker[%s] pulling message is forbidden", p.conf.Name)
	}
	if q.group = p.b.groups.Get(r.Group); q.group == nil {
		if p.mayCreateGroup(string(r.Group)) {
			return q, ErrNewGroup
		}
		return q, refuse(GroupNotFound, "subscription group [%s] does not exist, apply first please!", r.Group)
	}
	if !q.group.ConsumeEnable {
		return q, refuse(NoPermission, "subscription group no permission, %s", r.Group)
	}
	if q.dest = p.find(r.Topic); q.dest == nil {
		return q, refuse(TopicNotFound, "topic[%s] not exist, apply first please!", r.Topic)
	}
	if !q.dest.topic.Readable() {
		return q, refuse(NoPermission, "the topic[%s] pulling message is forbidden", r.Topic)
	}
	if r.QueueID < 0 || r.QueueID >= q.dest.topic.ReadQueues {
		return q, refuse(InvalidQueue, "queueId[%d] is illegal, topic:[%s] topicConfig.readQueueNums:[%d]", r.QueueID, r.Topic, q.dest.topic.ReadQueues)
	}
	q.queue = q.dest.queues.Queues[r.QueueID]
	q.offset = r.Offset
	q.max = min(max(int(r.Max), 1), p.conf.MaxPullMessages)
	var err error
	q.filter, err = p.subscription(r, q.group)
	return q, err
}

// subscription finds what the pull filters by.
func (p *Pass) subscription(r *PullRequest, g *group.Group) (filter.Filter, error) {
	if r.HasExpression {
		if string(r.Expression) == "*" && (len(r.ExpressionType) == 0 || string(r.ExpressionType) == filter.TypeTag) {
			return filter.Filter{}, nil
		}
		f, err := filter.Parse(string(r.ExpressionType), string(r.Expression))
		if errors.Is(err, filter.ErrUnsupported) {
			return f, &Error{Internal, err.Error()}
		}
		if err != nil {
			return f, refuse(BadExpression, "parse the consumer's subscription failed: %v", err)
		}
		return f, nil
	}
	return p.b.clients.subscription(r, g)
}

// Pull looks for messages. On success with Found, [Pass.AppendRecords] gives the
// records. ErrNewGroup: make the group and pull again; another ErrCold: call
// ColdPull. An empty result may be waited for, see Park.
func (p *Pass) Pull(r *PullRequest) (PullResult, error) {
	q, err := p.checkPull(r)
	if err != nil {
		return PullResult{}, err
	}
	if t := p.b.offsets.Of(r.Group, r.Topic); t.Pending(r.QueueID) { // what the pull commits is older than the reset, and void
		res := q.bounds()
		res.Status, res.Next = OffsetReset, t.At(r.QueueID)
		p.settleReset(r, t.At(r.QueueID))
		return res, nil
	}
	denied := p.b.locks.deny(r)
	if r.Commit >= 0 && !denied {
		p.commit(r.Group, r.Topic, r.QueueID, r.Commit, r.Client)
	}
	if denied { // another client owns the queue: there is nothing for this one
		res := q.bounds()
		res.Status, res.Next = OffsetOverflowOne, q.offset
		p.looked = q
		return res, nil
	}
	p.looked = q
	return p.look(&q)
}

// bounds is a result without messages.
func (q *pull) bounds() PullResult {
	return PullResult{
		Next: q.offset, Min: q.queue.Min(), Max: q.queue.End(),
		TopicSysFlag: q.dest.topic.SysFlag, GroupSysFlag: q.group.SysFlag,
	}
}

// look decides by the bounds of the queue and picks entries.
func (p *Pass) look(q *pull) (PullResult, error) {
	res := q.bounds()
	p.entries = p.entries[:0]
	switch {
	case res.Max == 0:
		res.Status, res.Next = NoMessageInQueue, 0
	case q.offset < res.Min:
		res.Status, res.Next = OffsetTooSmall, res.Min
	case q.offset == res.Max:
		res.Status = OffsetOverflowOne
	case q.offset > res.Max:
		res.Status, res.Next = OffsetOverflowBadly, res.Max
	default:
		return p.pick(q, res)
	}
	return res, nil
}

// pick chooses the entries of the answer from those in memory.
func (p *Pass) pick(q *pull, res PullResult) (PullResult, error) {
	want := q.max
	if !q.filter.All() {
		want = max(p.conf.MaxScan, q.max)
	}
	if cap(p.entries) < want {
		p.entries = make([]queue.Entry, 0, want)
	}
	n, err := q.queue.Read(q.offset, p.entries[:want])
	if err != nil {
		return res, ErrCold
	}
	p.choose(q, &res, p.entries[:n])
	return res, p.verify(q, &res)
}

// verify is the second stage of a filter: it looks at the tags of what was picked.
func (p *Pass) verify(q *pull, res *PullResult) error {
	if q.filter.All() || res.Count == 0 {
		return nil
	}
	kept := p.entries[:0]
	for _, e := range p.entries {
		var err error
		if p.scratch, err = p.b.appendRecords(p.scratch[:0], []queue.Entry{e}, true); err != nil {
			return err
		}
		var r message.Record
		if _, err := r.Parse(p.scratch); err != nil {
			return fmt.Errorf("record at %d: %w", e.Position, err)
		}
		if q.filter.MatchProperties(r.Properties) {
			kept = append(kept, e)
		}
	}
	p.entries = kept
	if res.Count = len(kept); res.Count == 0 {
		res.Status = NoMatchedMessage
	}
	return nil
}

// choose keeps the entries that match, within the limits of an answer, and says where to go on.
func (p *Pass) choose(q *pull, res *PullResult, found []queue.Entry) {
	picked, bytes := 0, 0
	looked := 0
	for _, e := range found {
		if q.filter.MatchTag(e.Tag) {
			if picked == q.max || picked > 0 && bytes+int(e.Size) > p.conf.MaxPullBytes {
				break
			}
			found[picked] = e
			picked++
			bytes += int(e.Size)
		}
		looked++
	}
	p.entries = found[:picked]
	res.Next = q.offset + message.QueueOffset(looked)
	res.Count = picked
	res.Status = Found
	if picked == 0 {
		res.Status = NoMatchedMessage
	}
}

// AppendRecords appends the records of the last Pull that found some. It needs the
// log's memory only; ErrCold, with dst as it was, when that does not have them all.
func (p *Pass) AppendRecords(dst []byte) ([]byte, error) {
	return p.b.appendRecords(dst, p.entries, true)
}
