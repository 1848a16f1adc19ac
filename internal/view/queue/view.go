package queue

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

// DefaultMemory is how many bytes of index stay in memory although they are in the store.
const DefaultMemory = 64 << 20

// View is the queue index of a shard.
type View struct {
	store  *kv.Store
	topics map[string]*Topic
	nextID uint64
	queues int              // of all topics
	start  message.Position // retention gave up what is before

	mem     memory
	dirty   []*Queue
	arrived []*Queue // got messages that somebody waits for
	named   []*Topic // made or grown since the last checkpoint
	dropped []*Topic // deleted since the last checkpoint
	broken  error

	mu      sync.Mutex // guards the following
	trimmed []trimmed  // what retention gave up, to be removed by the next checkpoint
}

// trimmed says that chunks of a queue before a number are not needed any more.
type trimmed struct {
	q      *Queue
	before int64
}

// New makes an empty view that keeps about memory bytes of index in memory.
func New(memory int) *View {
	v := &View{topics: map[string]*Topic{}, nextID: 1}
	v.mem.limit = max(memory/chunkBytes, 1)
	return v
}

// Topic finds a topic by name; nil when there is none. The name may alias anything.
func (v *View) Topic(name []byte) *Topic { return v.topics[string(name)] }

// Queues is the number of queues of all topics.
func (v *View) Queues() int { return v.queues }

// Arrived calls fn for each queue that got messages since the last call and has waiters. Tail's holder only.
func (v *View) Arrived(fn func(*Queue)) {
	for i, q := range v.arrived {
		q.woken = false
		fn(q)
		v.arrived[i] = nil
	}
	v.arrived = v.arrived[:0]
}

// Commands implements shard.CommandView.
func (v *View) Commands() []entry.Kind {
	return []entry.Kind{entry.KindPutTopic, entry.KindDeleteTopic, entry.KindDropLog}
}

// FoldCommand implements shard.CommandView.
func (v *View) FoldCommand(_ shard.At, c entry.Raw) error {
	switch c.Kind {
	case entry.KindPutTopic:
		var p entry.PutTopic
		if err := p.ParseBody(c.Body); err != nil {
			return err
		}
		v.put(p.Topic.Name, int(max(p.Topic.ReadQueues, p.Topic.WriteQueues)))
	case entry.KindDeleteTopic:
		var d entry.DeleteTopic
		if err := d.ParseBody(c.Body); err != nil {
			return err
		}
		v.drop(d.Name)
	case entry.KindDropLog:
		var d entry.DropLog
		if err := d.ParseBody(c.Body); err != nil {
			return err
		}
		v.start = max(v.start, d.Before)
	}
	return nil
}

func (v *View) put(name string, queues int) {
	t := v.topics[name]
	if t == nil {
		t = &Topic{Name: name, id: v.nextID, view: v}
		v.nextID++
		v.topics[name] = t
	} else if queues <= len(t.Queues) {
		return
	}
	t.grow(queues)
	v.named = append(v.named, t)
}

func (t *Topic) grow(queues int) {
	for i := len(t.Queues); i < queues; i++ {
		t.Queues = append(t.Queues, &Queue{topic: t, id: int32(i)})
		t.view.queues++
	}
}

func (v *View) drop(name string) {
	t := v.topics[name]
	if t == nil {
		return
	}
	t.gone = true
	delete(v.topics, name)
	v.dropped = append(v.dropped, t)
	v.queues -= len(t.Queues)
	for _, q := range t.Queues {
		for _, c := range q.mem {
			v.mem.leave(c)
		}
		q.mem = nil
		if !q.woken && !q.Waiters.Empty() { // they are told that the topic is gone
			q.woken = true
			v.arrived = append(v.arrived, q)
		}
	}
}

// FoldRecord implements shard.RecordView. A record counts if its topic and queue
// are there and its offset is the next one.
func (v *View) FoldRecord(at shard.At, record []byte) (bool, error) {
	var r message.Record
	if _, err := r.Parse(record); err != nil {
		return false, fmt.Errorf("record at %d: %w", at.Position, err)
	}
	t := v.topics[string(r.Topic)]
	if t == nil || int(r.QueueID) >= len(t.Queues) || r.QueueID < 0 {
		return false, nil
	}
	ok := t.Queues[r.QueueID].Append(r.QueueOffset, at.Position, int32(len(record)), Tag(r.Properties))
	return ok, v.broken
}

// Tag is what the index keeps of a message's tag: the 32-bit hash, sign-extended; 0 without a tag.
func Tag(properties []byte) int64 {
	tag, ok := message.Property(properties, message.PropertyTags)
	if !ok {
		return 0
	}
	return int64(message.TagHash(tag))
}

// Load implements shard.View.
func (v *View) Load(s *kv.Store) error {
	v.store = s
	err := s.Get([]byte{prefix, kindNext}, func(b []byte) error {
		if len(b) != 16 {
			return fmt.Errorf("queue view: counter has %d bytes", len(b))
		}
		v.nextID = binary.BigEndian.Uint64(b)
		v.start = message.Position(binary.BigEndian.Uint64(b[8:]))
		return nil
	})
	if err != nil {
		return err
	}
	byID := map[uint64]*Topic{}
	from := []byte{prefix, kindTopic}
	err = s.Scan(from, kv.PrefixEnd(from), func(k, b []byte) bool {
		t := &Topic{Name: string(k[2:]), id: binary.BigEndian.Uint64(b), view: v}
		t.grow(int(binary.BigEndian.Uint32(b[8:])))
		v.topics[t.Name], byID[t.id] = t, t
		return true
	})
	if err != nil {
		return err
	}
	from = []byte{prefix, kindMeta}
	return s.Scan(from, kv.PrefixEnd(from), func(k, b []byte) bool {
		t := byID[binary.BigEndian.Uint64(k[2:])]
		if id := binary.BigEndian.Uint32(k[10:]); t != nil && int(id) < len(t.Queues) {
			q := t.Queues[id]
			q.end = message.QueueOffset(binary.BigEndian.Uint64(b))
			q.min.Store(int64(binary.BigEndian.Uint64(b[8:])))
			q.persisted = q.end
		}
		return true
	})
}
