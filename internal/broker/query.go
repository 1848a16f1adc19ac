package broker

import (
	"context"
	"errors"
	"slices"

	"github.com/metaqio/metaq/internal/view/key"
	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/message"
)

// KeyKind says what is asked for by a query.
type KeyKind byte

// The kinds.
const (
	AnyKey    KeyKind = iota // a unique key or a word of KEYS
	UniqueKey                // property UNIQ_KEY
	WordOfKeys
	Tag // property TAGS
)

// Query asks for messages of a topic.
type Query struct {
	Topic, Key string
	Kind       KeyKind
	Begin, End int64 // store times in ms, both included
	Max        int   // of messages, the newest ones
}

// QueryResult is what a query has found.
type QueryResult struct {
	Records []byte // whole records, in the order of the log
	Count   int
	// LastTime and LastPosition say up to where messages are found by keys.
	LastTime     int64
	LastPosition message.Position
}

// Query looks for messages by a key or tag. It reads the disk, within the budget of
// cold reads. Nothing found is no error.
func (b *Broker) Query(ctx context.Context, q *Query) (res QueryResult, err error) {
	leave, err := b.cold.enter(ctx)
	if err != nil {
		return QueryResult{}, err
	}
	defer leave()
	b.shard.RLock()
	search := b.keys.Search()
	res.LastTime, res.LastPosition = b.keys.Last()
	b.shard.RUnlock()
	defer func() { err = errors.Join(err, search.Close()) }()
	var found []message.Position
	if q.Kind == Tag {
		found, err = b.findTag(ctx, q)
	} else {
		found, err = b.findKey(ctx, q, search)
	}
	if err != nil {
		return res, err
	}
	slices.Sort(found)
	var records [][]byte
	size := 0
	for _, pos := range slices.Backward(found) { // an answer that is too large leaves the oldest ones out
		raw, _, err := b.recordAt(pos)
		if err != nil {
			continue // retention has just taken it
		}
		if size += len(raw); size > queryBytes && res.Count > 0 {
			break
		}
		records = append(records, raw)
		res.Count++
	}
	slices.Reverse(records)
	res.Records = slices.Concat(records...)
	return res, nil
}

// queryBytes bounds the answer of a query; at least one message is returned.
const queryBytes = 8 << 20

// findKey gives the positions of the newest messages that have the key. It fails when
// ctx ends before all that may have it were looked at: what is found then is not all.
func (b *Broker) findKey(ctx context.Context, q *Query, s *key.Search) (found []message.Position, err error) {
	var ended error
	err = s.Each(key.Topic([]byte(q.Topic)).Of([]byte(q.Key)), q.Begin, q.End, func(pos message.Position) bool {
		raw, r, err := b.recordAt(pos)
		if err == nil && q.matches(&r) {
			found = append(found, pos)
		}
		ended = b.cold.spend(ctx, len(raw))
		return ended == nil && len(found) < q.Max
	})
	return found, errors.Join(err, ended)
}

// matches says whether a record is what a query asks for.
func (q *Query) matches(r *message.Record) bool {
	if string(r.Topic) != q.Topic || r.StoreTime < q.Begin || r.StoreTime > q.End {
		return false
	}
	has := func(property string, word func(value []byte) bool) bool {
		value, ok := message.Property(r.Properties, property)
		return ok && word(value)
	}
	whole := func(value []byte) bool { return string(value) == q.Key }
	word := func(value []byte) bool {
		for w := range key.Words(value) {
			if whole(w) {
				return true
			}
		}
		return false
	}
	switch q.Kind {
	case UniqueKey:
		return has(message.PropertyUniqueKey, whole)
	case WordOfKeys:
		return has(message.PropertyKeys, word)
	case Tag:
		return has(message.PropertyTags, whole)
	}
	return has(message.PropertyUniqueKey, whole) || has(message.PropertyKeys, word)
}

// tagScan is how many index entries of a queue are looked at for a tag: the newest ones.
const tagScan = 1 << 20

// findTag gives the positions of the newest messages that have the tag. There is no
// index of tags: the index of the topic's queues is read backwards.
func (b *Broker) findTag(ctx context.Context, q *Query) (found []message.Position, err error) {
	b.shard.RLock()
	var ends []message.QueueOffset
	var queues []*queue.Queue
	if t := b.queues.Topic([]byte(q.Topic)); t != nil {
		queues = t.Queues
		for _, one := range queues {
			ends = append(ends, one.End())
		}
	}
	b.shard.RUnlock()
	for i, one := range queues {
		at, err := b.findTagIn(ctx, q, one, ends[i])
		if err != nil {
			return nil, err
		}
		found = append(found, at...)
	}
	slices.Sort(found)
	return found[max(len(found)-q.Max, 0):], nil
}

func (b *Broker) findTagIn(ctx context.Context, q *Query, in *queue.Queue, end message.QueueOffset) (found []message.Position, err error) {
	tag := int64(message.TagHash([]byte(q.Key)))
	least := max(in.Min(), end-tagScan)
	var entries [1024]queue.Entry
	for at := end; at > least; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := min(int64(at-least), int64(len(entries)))
		at -= message.QueueOffset(n)
		block, err := b.entries(in, at, entries[:n])
		if err != nil {
			return nil, err
		}
		for _, e := range slices.Backward(block) {
			if e.Tag != tag {
				continue
			}
			r, err := b.record(e)
			if err != nil {
				return found, nil // older ones are gone, too
			}
			if err := b.cold.spend(ctx, int(e.Size)); err != nil {
				return nil, err
			}
			if r.StoreTime < q.Begin {
				return found, nil
			}
			if q.matches(&r) {
				if found = append(found, e.Position); len(found) == q.Max {
					return found, nil
				}
			}
		}
	}
	return found, nil
}

// entries reads index entries from memory or the store.
func (b *Broker) entries(in *queue.Queue, from message.QueueOffset, dst []queue.Entry) ([]queue.Entry, error) {
	b.shard.RLock()
	n, err := in.Read(from, dst)
	stored := in.Stored()
	b.shard.RUnlock()
	if err != nil {
		n, err = stored.Read(from, dst)
	}
	return dst[:n], err
}
