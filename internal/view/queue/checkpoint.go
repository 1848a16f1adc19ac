package queue

import (
	"encoding/binary"
	"slices"

	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/message"
)

// change is what a checkpoint writes of one queue: its new full chunks, which
// nobody changes any more, and the chunk that is being filled, packed already.
type change struct {
	q       *Queue
	from    int64 // number of the first chunk
	end     message.QueueOffset
	min     message.QueueOffset
	full    []*chunk
	partial []byte
}

// Checkpoint implements shard.View.
func (v *View) Checkpoint() (write func(*kv.Batch), done func()) {
	v.mu.Lock()
	gone := v.trimmed
	v.trimmed = nil
	v.mu.Unlock()
	for _, g := range gone { // their smallest offset is to be written
		g.q.mark()
	}
	changes := make([]change, 0, len(v.dirty))
	for i, q := range v.dirty {
		q.dirty = false
		v.dirty[i] = nil
		if !q.topic.gone {
			changes = append(changes, q.change())
		}
	}
	v.dirty = v.dirty[:0]
	named, dropped := v.named, v.dropped
	v.named, v.dropped = nil, nil
	counter := binary.BigEndian.AppendUint64(nil, v.nextID)
	counter = binary.BigEndian.AppendUint64(counter, uint64(v.start))
	counts := make([]int, len(named))
	for i, t := range named {
		counts[i] = len(t.Queues)
	}
	write = func(b *kv.Batch) {
		b.Set([]byte{prefix, kindNext}, counter)
		for _, t := range dropped { // before what was made: a name may have been used again
			b.Delete(topicKey(t.Name))
			b.DeleteRange(topicRange(kindMeta, t.id))
			b.DeleteRange(topicRange(kindIndex, t.id))
		}
		for i, t := range named {
			if slices.Contains(dropped, t) {
				continue
			}
			b.Set(topicKey(t.Name), binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, t.id), uint32(counts[i])))
		}
		for _, g := range gone {
			b.DeleteRange(indexKey(nil, g.q.topic.id, g.q.id, 0), indexKey(nil, g.q.topic.id, g.q.id, g.before))
		}
		var key, value []byte
		for i := range changes {
			key, value = changes[i].write(b, key, value)
		}
	}
	done = func() {
		for i := range changes {
			changes[i].q.persisted = changes[i].end
		}
		v.mem.written()
	}
	return write, done
}

func (q *Queue) change() change {
	c := change{q: q, from: int64(q.persisted / chunkEntries), end: q.end, min: q.Min()}
	if len(q.mem) == 0 { // only its smallest offset has changed
		return c
	}
	at := max(c.from-q.firstNo, 0)
	c.from = q.firstNo + at
	full := int64(q.end/chunkEntries) - q.firstNo
	c.full = q.mem[min(at, full):full:full]
	if n := int(q.end % chunkEntries); n > 0 && full < int64(len(q.mem)) {
		c.partial = q.mem[full].pack(nil, n)
	}
	return c
}

func (c *change) write(b *kv.Batch, key, value []byte) ([]byte, []byte) {
	t := c.q.topic.id
	no := c.from
	for _, full := range c.full {
		key = indexKey(key[:0], t, c.q.id, no)
		value = full.pack(value[:0], chunkEntries)
		b.Set(key, value)
		no++
	}
	if len(c.partial) > 0 {
		key = indexKey(key[:0], t, c.q.id, no)
		b.Set(key, c.partial)
	}
	key = metaKey(key[:0], t, c.q.id)
	value = binary.BigEndian.AppendUint64(value[:0], uint64(c.end))
	value = binary.BigEndian.AppendUint64(value, uint64(c.min))
	b.Set(key, value)
	return key, value
}
