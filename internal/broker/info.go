package broker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/stats"
	"github.com/metaqio/metaq/internal/view/offset"
	"github.com/metaqio/metaq/message"
)

// Info is what an operator asks a broker for.
type Info struct {
	Puts, PutBytes, PutFailed, Gets int64 // since the start
	PutsMorning, PutsYesterday      int64 // at the last midnight, and the one before
	GetsMorning, GetsYesterday      int64
	PutTPS, GetTPS                  [3]float64 // over 10, 60 and 600 s
	FoundTPS, MissTPS, TotalTPS     [3]float64 // pulls that found something, nothing, all
	Put99, Put999, PutMax           time.Duration
	PutTimes                        [len(PutTimeLimits) + 1]int64 // appends that took up to each limit, and longer
	LogMin, LogMax                  int64
	FoldBehind, Unsynced            int64
	DiskUse                         float64
	DiskTotal, DiskFree             int64
	Earliest                        int64 // ms, when the oldest segment ends
	Timers, Waiting                 int64
	PoolWaiting, PoolLimit          int
}

// PutTimeLimits are how RocketMQ groups the times of appends.
var PutTimeLimits = [...]time.Duration{
	2 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second, 10 * time.Second,
}

// Info collects what the broker knows of its work.
func (b *Broker) Info() Info {
	log := b.shard.Log()
	append := b.shard.Stats.Append.Snapshot()
	i := Info{
		Puts: b.Stats.Sends.Load(), PutBytes: b.Stats.SendBytes.Load(), PutFailed: b.Stats.Refused.Load(), Gets: b.Stats.Pulled.Load(),
		Put99: append.Quantile(0.99), Put999: append.Quantile(0.999), PutMax: append.Quantile(1),
		LogMin: int64(log.Start()), LogMax: int64(log.Tail()), FoldBehind: int64(log.Tail() - b.shard.Applied()),
		Unsynced: int64(log.Tail() - log.Synced()), DiskUse: b.shard.DiskUse(), Waiting: b.waiting.Load(), PoolLimit: b.pool.limit,
	}
	for bucket, n := range append.Counts {
		k, _ := slices.BinarySearch(PutTimeLimits[:], stats.UpperBound(bucket))
		i.PutTimes[k] += n
	}
	i.DiskTotal, i.DiskFree = b.shard.DiskSize()
	if segments := log.Segments(); len(segments) > 0 {
		i.Earliest = segments[0].LastTime
	}
	b.pool.mu.Lock()
	i.PoolWaiting = len(b.pool.waiting)
	b.pool.mu.Unlock()
	b.shard.RLock()
	i.Timers = int64(b.timers.Len())
	b.shard.RUnlock()
	b.history.fill(&i)
	return i
}

// sample is what was counted at one moment.
type sample struct{ puts, gets, found, missed int64 }

// history keeps a sample every ten seconds, and those of the last two midnights.
type history struct {
	mu        sync.Mutex // guards the following
	samples   []sample   // the newest last, ten minutes' worth
	morning   sample
	yesterday sample
	day       int // of the year, of morning
}

const (
	samplePeriod = 10 * time.Second
	maxSamples   = 61
)

func (b *Broker) sample() {
	s := sample{b.Stats.Sends.Load(), b.Stats.Pulled.Load(), b.Stats.Pulls.Load() - b.Stats.EmptyPulls.Load(), b.Stats.EmptyPulls.Load()}
	h := &b.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.samples) == maxSamples {
		h.samples = slices.Delete(h.samples, 0, 1)
	}
	h.samples = append(h.samples, s)
	if day := time.Now().YearDay(); day != h.day {
		if h.day != 0 {
			h.yesterday, h.morning = h.morning, s
		}
		h.day = day
	}
}

func (h *history) fill(i *Info) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i.PutsMorning, i.GetsMorning = h.morning.puts, h.morning.gets
	i.PutsYesterday, i.GetsYesterday = h.yesterday.puts, h.yesterday.gets
	n := len(h.samples)
	for k, back := range []int{1, 6, 60} {
		if back = min(back, n-1); back <= 0 {
			continue
		}
		now, then := h.samples[n-1], h.samples[n-1-back]
		seconds := float64(back) * samplePeriod.Seconds()
		i.PutTPS[k] = float64(now.puts-then.puts) / seconds
		i.GetTPS[k] = float64(now.gets-then.gets) / seconds
		i.FoundTPS[k] = float64(now.found-then.found) / seconds
		i.MissTPS[k] = float64(now.missed-then.missed) / seconds
		i.TotalTPS[k] = i.FoundTPS[k] + i.MissTPS[k]
	}
}

// QueueStats is what there is in a queue.
type QueueStats struct {
	Queue      int32
	Min, Max   message.QueueOffset
	LastStored int64 // ms, 0 when empty
}

// TopicStats tells what there is in each queue of a topic. It may read the disk.
func (b *Broker) TopicStats(_ context.Context, topic string) ([]QueueStats, error) {
	t, ok := b.Topic(topic)
	if !ok {
		return nil, refuse(TopicNotFound, "topic[%s] not exist", topic)
	}
	var out []QueueStats
	for id := range max(t.ReadQueues, t.WriteQueues) {
		w, ok := b.window(topic, id)
		if !ok {
			continue
		}
		s := QueueStats{Queue: id, Min: w.low, Max: w.high}
		if w.high > w.low {
			var err error
			if s.LastStored, err = w.storeTime(w.high - 1); err != nil {
				return nil, err
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// QueueProgress is how far a group is in a queue.
type QueueProgress struct {
	Topic        string
	Queue        int32
	Max          message.QueueOffset
	Consumed     message.QueueOffset // the next to be consumed; 0 when nothing was committed
	LastConsumed int64               // ms, when the last consumed message was stored; 0 when there is none
}

// Progress tells how far a group is in topics; without topics, in those it has
// offsets in (and, if it is connected, subscribes), its retry topic included.
func (b *Broker) Progress(_ context.Context, group string, topics []string) ([]QueueProgress, error) {
	if len(topics) == 0 {
		topics = b.topicsOfGroup(group)
	}
	var out []QueueProgress
	for _, topic := range topics {
		t, ok := b.Topic(topic)
		if !ok {
			continue
		}
		for id := range t.ReadQueues {
			w, ok := b.window(topic, id)
			if !ok {
				continue
			}
			p := QueueProgress{Topic: topic, Queue: id, Max: w.high}
			b.shard.RLock()
			at := b.offsets.Of([]byte(group), []byte(topic)).At(id)
			b.shard.RUnlock()
			if at != offset.None {
				p.Consumed = at
			}
			if last := p.Consumed - 1; last >= w.low && last < w.high {
				var err error
				if p.LastConsumed, err = w.storeTime(last); err != nil {
					return nil, err
				}
			}
			out = append(out, p)
		}
	}
	return out, nil
}

func (b *Broker) topicsOfGroup(group string) []string {
	topics := b.TopicsOf(group)
	members := b.Members(group)
	if len(members) == 0 {
		return topics
	}
	return slices.DeleteFunc(topics, func(topic string) bool { // a topic that no member subscribes any more does not count
		return !slices.ContainsFunc(members, func(m Member) bool { return m.Consumer.Of([]byte(topic)) != nil })
	})
}

// TopicsOf lists the topics in which a group has offsets.
func (b *Broker) TopicsOf(group string) []string {
	b.shard.RLock()
	defer b.shard.RUnlock()
	return b.offsets.TopicsOf(group)
}

// GroupsOf lists the groups that have offsets in a topic or whose members subscribe it.
func (b *Broker) GroupsOf(topic string) []string {
	b.shard.RLock()
	groups := b.offsets.GroupsOf(topic)
	b.shard.RUnlock()
	for _, g := range b.ConsumerGroups() {
		if slices.ContainsFunc(b.Members(g), func(m Member) bool { return m.Consumer.Of([]byte(topic)) != nil }) {
			groups = append(groups, g)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// GroupOffset is an offset that a group has committed.
type GroupOffset struct {
	Group, Topic string
	Queue        int32
	Offset       message.QueueOffset
}

// Offsets lists all committed offsets.
func (b *Broker) Offsets() (out []GroupOffset) {
	b.shard.RLock()
	defer b.shard.RUnlock()
	for _, group := range b.offsets.Groups() {
		for _, topic := range b.offsets.TopicsOf(group) {
			t := b.offsets.Of([]byte(group), []byte(topic))
			for q := range t.Queues() {
				if at := t.At(q); at != offset.None {
					out = append(out, GroupOffset{group, topic, q, at})
				}
			}
		}
	}
	return out
}

// SystemTopics lists the topics that are the broker's own.
func (b *Broker) SystemTopics() (out []string) {
	topics, _, _ := b.Topics()
	for _, t := range topics {
		if message.IsSystemTopic(t.Name) || b.isOwnTopic(t.Name) {
			out = append(out, t.Name)
		}
	}
	return out
}

// ResetRequest is an administrator's order to continue elsewhere.
type ResetRequest struct {
	Group, Topic string
	QueueID      int32 // negative: all
	Offset       int64 // -1: by the time
	Timestamp    int64 // ms; negative: the end
	Actor        string
}

// ResetGroup sets a group's offsets, and makes its members follow with their next pulls.
func (b *Broker) ResetGroup(ctx context.Context, r *ResetRequest) ([]entry.QueueAt, error) {
	t, ok := b.Topic(r.Topic)
	if !ok {
		return nil, refuse(TopicNotFound, "topic[%s] not exist", r.Topic)
	}
	if _, ok := b.Group(r.Group); !ok {
		return nil, refuse(GroupNotFound, "subscription group [%s] not exist", r.Group)
	}
	first, last := int32(0), t.ReadQueues-1
	if r.QueueID >= 0 {
		first, last = r.QueueID, r.QueueID
	}
	var items []entry.QueueAt
	for id := first; id <= last; id++ {
		w, ok := b.window(r.Topic, id)
		if !ok {
			return nil, refuse(Internal, "topic %s has no queue %d", r.Topic, id)
		}
		at := message.QueueOffset(r.Offset)
		switch {
		case r.QueueID >= 0 && r.Offset != -1:
			if at < w.low || at > w.high+1 {
				return nil, refuse(Internal, "Target offset %d not in consume queue range [%d-%d]", at, w.low, w.high)
			}
		case r.Timestamp < 0:
			at = w.high
		default:
			var err error
			if at, err = b.SearchOffset(ctx, r.Topic, id, r.Timestamp, false); err != nil {
				return nil, err
			}
			at = min(max(at, w.low), w.high)
		}
		items = append(items, entry.QueueAt{Queue: id, Offset: at})
	}
	if err := b.ResetOffset(ctx, r.Group, r.Topic, items, true, r.Actor); err != nil {
		return nil, err
	}
	b.wakeWaiting(r.Topic, items)
	return items, nil
}

// wakeWaiting has the pulls that wait in queues look again: for those of the group, a reset is pending.
func (b *Broker) wakeWaiting(topic string, items []entry.QueueAt) {
	b.shard.RLock()
	defer b.shard.RUnlock()
	t := b.queues.Topic([]byte(topic))
	if t == nil {
		return
	}
	for _, it := range items {
		if int(it.Queue) < len(t.Queues) { // the topic may be another one by now
			t.Queues[it.Queue].Waiters.NotifyAll()
		}
	}
}
