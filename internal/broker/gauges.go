package broker

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/metaqio/metaq/message"
)

// Gauges are what a broker has at one moment.
type Gauges struct {
	Topics, Queues, Groups int

	Clients        int // that have sent a heartbeat
	Consumers      int // memberships in consumer groups
	ConsumerGroups int // with members
	ProducerGroups int // with members

	Timers       int           // messages that wait for their time
	TimerOverdue time.Duration // how long the first of them is late; 0 when none is

	Transactions   int           // that nobody has decided
	TransactionAge time.Duration // of the oldest of them; 0 when there is none

	Waiting, WaitingLimit                  int64 // pulls that wait for messages
	Replies, ReplyLimit                    int   // on their way to who asked
	PoolRunning, PoolWaiting, PoolCapacity int   // requests that may block: on goroutines, behind them, and the limit of those behind
}

// Gauges collects what there is.
func (b *Broker) Gauges() Gauges {
	g := Gauges{Waiting: b.waiting.Load(), WaitingLimit: int64(b.conf.Load().MaxWaiters), PoolCapacity: b.pool.limit}
	now := b.now()
	b.shard.RLock()
	g.Topics, g.Queues, g.Groups, g.Timers = b.topics.Len(), b.queues.Queues(), b.groups.Len(), b.timers.Len()
	if due, ok := b.timers.Next(); ok && due < now {
		g.TimerOverdue = time.Duration(now-due) * time.Millisecond
	}
	g.Transactions = b.txns.Len()
	if o, ok := b.txns.Oldest(); ok {
		g.TransactionAge = time.Duration(max(now-o.Stored, 0)) * time.Millisecond
	}
	b.shard.RUnlock()
	b.replies.mu.Lock()
	g.Replies, g.ReplyLimit = b.replies.n, b.conf.Load().MaxReplies
	b.replies.mu.Unlock()
	b.pool.mu.Lock()
	g.PoolRunning, g.PoolWaiting = b.pool.running, len(b.pool.waiting)
	b.pool.mu.Unlock()
	t := b.clients
	t.mu.RLock()
	defer t.mu.RUnlock()
	g.Clients, g.ConsumerGroups, g.ProducerGroups = len(t.all), len(t.groups), len(t.producers)
	for _, members := range t.groups {
		g.Consumers += len(members)
	}
	return g
}

// Errors of Ready.
var (
	errNotLeading = errors.New("this node does not lead the shard")
	errFailed     = errors.New("the shard has failed or is stopping")
	errFull       = errors.New("the disk of the broker is full; sends resume by themselves when there is room")
)

// Ready is nil while sends are accepted, else why they are not.
func (b *Broker) Ready() error {
	if err := b.shard.Failure(); err != nil {
		return fmt.Errorf("%w: %w", errFailed, err)
	}
	if !b.shard.Leads() {
		return errNotLeading
	}
	if why := b.refusing.Load(); why != nil {
		return why
	}
	if b.shard.Full() {
		return errFull
	}
	return nil
}

// GroupLag is how far a group is behind in a topic.
type GroupLag struct {
	Group, Topic string
	Messages     int64 // stored, and not consumed yet
	Members      int   // of the group, connected
}

// Lags tells how far the groups are behind in the topics in which they have offsets, of the limit pairs with the most
// messages; left is how many pairs there are beside those. Pairs come in the order of their names.
func (b *Broker) Lags(limit int) (list []GroupLag, left int) {
	b.shard.RLock()
	for _, group := range b.offsets.Groups() {
		for _, topic := range b.offsets.TopicsOf(group) {
			list = append(list, GroupLag{Group: group, Topic: topic})
		}
	}
	b.shard.RUnlock()
	known := list[:0]
	for _, l := range list { // the lock is taken for each, so that folding goes on
		var ok bool
		if l.Messages, ok = b.lag(l.Group, l.Topic); ok {
			known = append(known, l)
		}
	}
	list = known
	if limit = max(limit, 0); len(list) > limit {
		left = len(list) - limit
		slices.SortStableFunc(list, func(x, y GroupLag) int { return cmp.Compare(y.Messages, x.Messages) })
		list = list[:limit]
		slices.SortFunc(list, func(x, y GroupLag) int {
			return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Topic, y.Topic))
		})
	}
	t := b.clients
	t.mu.RLock()
	defer t.mu.RUnlock()
	for i := range list {
		list[i].Members = len(t.groups[list[i].Group])
	}
	return list, left
}

// lag counts what is in the queues of a topic behind a group's offsets; where it has none, everything is. It is false
// for a topic that is gone.
func (b *Broker) lag(group, topic string) (n int64, ok bool) {
	b.shard.RLock()
	defer b.shard.RUnlock()
	t := b.queues.Topic([]byte(topic))
	if t == nil {
		return 0, false
	}
	offsets := b.offsets.Of([]byte(group), []byte(topic))
	for _, q := range t.Queues {
		from := max(offsets.At(q.ID()), q.Min()) // a queue without an offset has None, which is less than any
		n += int64(max(q.End()-from, message.QueueOffset(0)))
	}
	return n, true
}
