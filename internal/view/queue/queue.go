package queue

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/metaqio/metaq/internal/waiters"
	"github.com/metaqio/metaq/message"
)

// ErrCold says that entries are not in memory: read them with View.ReadStored.
var ErrCold = errors.New("index entries are not in memory")

// Topic is a topic's queues. The slice only grows; a deleted topic is not reused.
type Topic struct {
	Name   string
	Queues []*Queue

	id   uint64
	gone bool
	view *View
}

// Gone says whether the topic was deleted; who kept a pointer has to look it up again.
func (t *Topic) Gone() bool { return t.gone }

// Queue is one queue of a topic. It implements shard.Target.
type Queue struct {
	// Waiters wait for messages in this queue.
	Waiters waiters.List

	topic *Topic
	id    int32
	dirty bool // changed since the last checkpoint
	woken bool // in the view's list of queues to be told of

	end       message.QueueOffset // next offset to be folded
	persisted message.QueueOffset // entries before it are in the store
	firstNo   int64               // number of mem[0]
	mem       []*chunk
	min       atomic.Int64 // smallest offset that can be read; set by Bound.Trim
	minFor    atomic.Int64 // start of the log that min was found for

	next message.QueueOffset // belongs to the tail's holder: next offset to be assigned
	term uint64              // likewise: the leadership that next is good for
}

// ID is the queue's number in its topic.
func (q *Queue) ID() int32 { return q.id }

// End is the offset that the next message gets: one more than the newest readable.
func (q *Queue) End() message.QueueOffset { return q.end }

// Assign implements shard.Target.
func (q *Queue) Assign(term uint64) message.QueueOffset {
	if q.term != term {
		q.term, q.next = term, q.end
	}
	q.next++
	return q.next - 1
}

// Rewind implements shard.Target.
func (q *Queue) Rewind(off message.QueueOffset) { q.next = off }

// Append implements shard.Target.
func (q *Queue) Append(off message.QueueOffset, pos message.Position, size int32, tag int64) bool {
	if q.topic.gone || off != q.end {
		return false
	}
	i := int(off % chunkEntries)
	if i == 0 || len(q.mem) == 0 {
		if err := q.grow(int64(off / chunkEntries)); err != nil {
			q.topic.view.broken = err
			return false
		}
	}
	q.mem[len(q.mem)-1].put(i, pos, size, tag)
	q.end = off + 1
	if !q.dirty {
		q.mark()
	}
	if !q.woken && !q.Waiters.Empty() {
		q.woken = true
		q.topic.view.arrived = append(q.topic.view.arrived, q)
	}
	return true
}

// mark puts the queue into the list of what the next checkpoint writes.
func (q *Queue) mark() {
	if !q.dirty {
		q.dirty = true
		q.topic.view.dirty = append(q.topic.view.dirty, q)
	}
}

// grow adds chunk no to the memory; when it has entries in the store already, they are read.
func (q *Queue) grow(no int64) error {
	c := q.topic.view.mem.take(q, no)
	if len(q.mem) == 0 {
		q.firstNo = no
	}
	if int64(q.end) > no*chunkEntries {
		found := 0
		key := indexKey(nil, q.topic.id, q.id, no)
		err := q.topic.view.store.Get(key, func(v []byte) (err error) { found, err = c.load(v); return err })
		if err != nil {
			return fmt.Errorf("index of %s queue %d, chunk %d: %w", q.topic.Name, q.id, no, err)
		}
		if want := int(q.end % chunkEntries); found < want {
			return fmt.Errorf("index of %s queue %d: chunk %d has %d entries instead of %d", q.topic.Name, q.id, no, found, want)
		}
	}
	q.mem = append(q.mem, c)
	return nil
}

// giveUp frees chunk no, its oldest one in memory, if the store has all of it.
func (q *Queue) giveUp(no int64) bool {
	if len(q.mem) == 0 || q.firstNo != no {
		return true // it has been given up already, with its topic
	}
	if q.persisted < q.end && q.persisted < message.QueueOffset((no+1)*chunkEntries) {
		return false
	}
	q.topic.view.mem.give(q.mem[0])
	q.mem[0] = nil
	q.mem = q.mem[1:]
	q.firstNo++
	return true
}

// Read fills dst with the entries from offset on, as far as there are any, and
// returns how many. ErrCold means that they have to be read with ReadStored.
func (q *Queue) Read(from message.QueueOffset, dst []Entry) (int, error) {
	n := min(len(dst), int(q.end-from))
	if from < 0 || n <= 0 {
		return 0, nil
	}
	no := int64(from/chunkEntries) - q.firstNo
	if len(q.mem) == 0 || no < 0 {
		return 0, ErrCold
	}
	i := int(from % chunkEntries)
	for k := range n {
		dst[k] = q.mem[no].get(i)
		if i++; i == chunkEntries {
			i, no = 0, no+1
		}
	}
	return n, nil
}
