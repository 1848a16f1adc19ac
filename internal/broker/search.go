package broker

import (
	"context"
	"errors"
	"sort"

	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/message"
)

// window is what is needed to look into a queue from a goroutine that may block.
type window struct {
	b         *Broker
	q         *queue.Queue
	stored    queue.Stored
	low, high message.QueueOffset
}

// window looks a queue up; ok is false when there is none.
func (b *Broker) window(topic string, queueID int32) (w window, ok bool) {
	b.shard.RLock()
	defer b.shard.RUnlock()
	t := b.queues.Topic([]byte(topic))
	if t == nil || queueID < 0 || int(queueID) >= len(t.Queues) {
		return w, false
	}
	q := t.Queues[queueID]
	return window{b: b, q: q, stored: q.Stored(), low: q.Min(), high: q.End()}, true
}

// entry reads one index entry, from memory or the store.
func (w *window) entry(off message.QueueOffset) (queue.Entry, error) {
	var e [1]queue.Entry
	w.b.shard.RLock()
	n, err := w.q.Read(off, e[:])
	w.b.shard.RUnlock()
	if errors.Is(err, queue.ErrCold) {
		n, err = w.stored.Read(off, e[:])
	}
	if err == nil && n == 0 {
		err = refuse(NoMessage, "no message at offset %d", off)
	}
	return e[0], err
}

// storeTime is when the message at an offset was stored, in ms.
func (w *window) storeTime(off message.QueueOffset) (int64, error) {
	e, err := w.entry(off)
	if err != nil {
		return 0, err
	}
	r, err := w.b.record(e)
	return r.StoreTime, err
}

// SearchOffset finds a queue's first offset that was stored at or after a time, or
// with upper its last one stored at or before it. A queue that is empty or unknown
// has 0; when all messages are older the answer is the next offset, when all are
// younger (upper) 0.
func (b *Broker) SearchOffset(_ context.Context, topic string, queueID int32, at int64, upper bool) (message.QueueOffset, error) {
	w, ok := b.window(topic, queueID)
	if !ok || w.low >= w.high {
		return 0, nil
	}
	var failed error
	n := sort.Search(int(w.high-w.low), func(i int) bool {
		t, err := w.storeTime(w.low + message.QueueOffset(i))
		if err != nil {
			failed = err
			return true
		}
		return t > at || t == at && !upper
	})
	if failed != nil {
		return 0, failed
	}
	if upper {
		if n == 0 {
			return 0, nil
		}
		n--
	}
	return w.low + message.QueueOffset(n), nil
}

// EarliestTime is when a queue's oldest message was stored, in ms; -1 without one.
func (b *Broker) EarliestTime(_ context.Context, topic string, queueID int32) (int64, error) {
	w, ok := b.window(topic, queueID)
	if !ok || w.low >= w.high {
		return -1, nil
	}
	return w.storeTime(w.low)
}
