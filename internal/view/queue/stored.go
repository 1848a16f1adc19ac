package queue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"github.com/metaqio/metaq/message"
)

// Stored is what is needed to read entries of a queue from the store without a lock.
type Stored struct {
	view  *View
	topic uint64
	queue int32
	end   message.QueueOffset // entries before it are in the store
}

// Stored takes down what ReadStored needs. REQUIRES: the state lock, shared.
func (q *Queue) Stored() Stored {
	return Stored{view: q.topic.view, topic: q.topic.id, queue: q.id, end: q.persisted}
}

// Read fills dst with entries from the store, from offset on. It may return fewer
// than are there and reads the disk; call it without any lock.
func (s Stored) Read(from message.QueueOffset, dst []Entry) (n int, err error) {
	no := int64(from / chunkEntries)
	skip := int(from % chunkEntries)
	lower := indexKey(nil, s.topic, s.queue, no)
	upper := indexKey(nil, s.topic, s.queue, int64(s.end/chunkEntries)+1)
	want := no
	var broken error
	err = s.view.store.Scan(lower, upper, func(k, v []byte) bool {
		if int64(binary.BigEndian.Uint64(k[14:])) != want {
			return false // a gap: given up by retention, or not written yet
		}
		want++
		found, bad := unpack(v, skip, dst[n:])
		n, skip, broken = n+found, 0, bad
		return bad == nil && n < len(dst)
	})
	if err = errors.Join(err, broken); err != nil {
		return 0, fmt.Errorf("read queue index: %w", err)
	}
	return n, nil
}

// Min is the smallest offset whose message retention has left.
func (q *Queue) Min() message.QueueOffset { return message.QueueOffset(q.min.Load()) }

// Bounds takes down what Trim needs of every queue that reaches back before the
// start of the log, as far as is known. REQUIRES: the state lock, shared.
func (v *View) Bounds() (out []Bound) {
	for _, t := range v.topics {
		for _, q := range t.Queues {
			if q.end > q.Min() && q.minFor.Load() != int64(v.start) {
				out = append(out, Bound{q: q, start: v.start, min: q.Min(), end: q.end, stored: q.Stored()})
			}
		}
	}
	return out
}

// Bound is a queue whose smallest offset is to be found again.
type Bound struct {
	q        *Queue
	start    message.Position
	min, end message.QueueOffset
	stored   Stored
}

// Trim finds the smallest offset of a queue again after retention has given up a
// part of the log. It reads the store; call it without any lock, one at a time. It
// reports false when the offset may be among those that are not in the store yet:
// their messages are still in the log, and it is to be called again later.
func (b Bound) Trim() (done bool, err error) {
	var failed error
	known := min(b.end, b.stored.end)
	n := sort.Search(int(max(known-b.min, 0)), func(i int) bool {
		var e [1]Entry
		k, err := b.stored.Read(b.min+message.QueueOffset(i), e[:])
		if err != nil {
			failed = err
		}
		return err != nil || k > 0 && e[0].Position >= b.start
	})
	if failed != nil {
		return false, failed
	}
	b.q.min.Store(int64(b.min) + int64(n))
	done = known == b.end || b.min+message.QueueOffset(n) < known
	if done {
		b.q.minFor.Store(int64(b.start))
	}
	if n > 0 {
		v := b.stored.view
		v.mu.Lock()
		v.trimmed = append(v.trimmed, trimmed{b.q, int64(b.min+message.QueueOffset(n)) / chunkEntries})
		v.mu.Unlock()
	}
	return done, nil
}
