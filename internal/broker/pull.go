package broker

import (
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
	// subscription; else the one of the group's heartbeats counts. The type is told in
	// any case.
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
	// stale says that the client has changed its subscription, and that it is not known, or
	// not looked up yet, how: there is nothing for it until then.
	stale  bool
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
	q.filter, q.stale, err = p.subscription(r, q.group)
	return q, err
}

// subscription finds what the pull filters by.
func (p *Pass) subscription(r *PullRequest, g *group.Group) (f filter.Filter, stale bool, err error) {
	if !r.HasExpression {
		return p.b.clients.subscription(r, g)
	}
	if string(r.Expression) != "*" || !filter.IsTag(r.ExpressionType) {
		f, err = p.b.parse(r.ExpressionType, r.Expression)
	}
	return f, false, err
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
	p.looked = q
	if denied || q.stale { // another client owns the queue, or it is not known what this one wants: there is nothing for it
		res := q.bounds()
		res.Status = OffsetOverflowOne
		return res, nil
	}
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
	if !q.within(&res) {
		return res, nil
	}
	return p.pick(q, res)
}

// within says whether there are messages from the offset on; if not, the result says what there is.
func (q *pull) within(res *PullResult) bool {
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
		return true
	}
	return false
}

// pick chooses the entries of the answer from those in memory.
func (p *Pass) pick(q *pull, res PullResult) (PullResult, error) {
	if !q.filter.All() && p.scanned >= passScans*p.conf.MaxScanBytes {
		return res, ErrCold // others of this pass wait
	}
	want := q.want(p.conf)
	if cap(p.entries) < want {
		p.entries = make([]queue.Entry, 0, want)
	}
	n, err := q.queue.Read(q.offset, p.entries[:want])
	if err != nil {
		return res, ErrCold
	}
	return res, p.choose(q, &res, p.entries[:n], true)
}

// AppendRecords appends the records of the last Pull that found some. It needs the
// log's memory only; ErrCold, with dst as it was, when that does not have them all.
func (p *Pass) AppendRecords(dst []byte) ([]byte, error) {
	return p.b.appendRecords(dst, p.entries, true)
}
