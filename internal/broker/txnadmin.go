package broker

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/internal/view/txn"
	"github.com/metaqio/metaq/message"
)

// ResumeTransaction makes a half message again of a message that was given up, which lies at a position in the topic of
// stale transactions: its producer is asked from the beginning. actor is who wants that.
func (b *Broker) ResumeTransaction(ctx context.Context, stale message.Position, actor string) error {
	return b.decide(ctx, stale, func() (e ending, do bool, err error) {
		b.shard.RLock()
		ended, ok := b.txns.Ended(stale)
		b.shard.RUnlock()
		if ok && ended.Decision == entry.Resume {
			return e, false, refuse(IllegalOperation, "the message at %d was resumed at %s already", stale, time.UnixMilli(ended.Time).UTC().Format(time.RFC3339))
		}
		_, rec, err := b.recordAt(stale)
		if err != nil {
			return e, false, err
		}
		if string(rec.Topic) != message.TopicTransactionStale {
			return e, false, refuse(NoTransaction, "the message at %d lies in topic %s, and only those in %s can be resumed", stale, rec.Topic, message.TopicTransactionStale)
		}
		e.command = entry.EndTransaction{Half: stale, Decision: entry.Resume, Actor: actor}
		e.message = released(&rec, message.AppendWithout(nil, rec.Properties, message.PropertyTransactionChecks))
		e.message.resumed = true
		return e, true, nil
	})
}

// Transaction is an open transaction as an operator sees it.
type Transaction struct {
	txn.Open
	NextCheck int64  // ms
	Online    int    // producers of its group that are connected
	Topic     string // it is for; empty, like the following, when the half message cannot be read
	QueueID   int32
	Key       string // unique key
	Keys      string
	Born      int64  // ms, by the producer's clock
	Problem   string // why the half message cannot be read
}

// MaxTransactions is how many transactions are listed at a time.
const MaxTransactions = 1000

// Transactions lists up to limit open transactions that lie behind a position, the oldest first; of one group of
// producers, unless its name is empty. total is how many there are of all groups.
func (b *Broker) Transactions(behind message.Position, group string, limit int) (list []Transaction, total int) {
	immunity := b.conf.Load().TransactionTimeout.Milliseconds()
	b.shard.RLock()
	open := b.txns.After(nil, behind, group, min(limit, MaxTransactions))
	total = b.txns.Len()
	b.shard.RUnlock()
	for _, o := range open {
		t := Transaction{Open: o, NextCheck: o.Due(immunity), Online: len(b.Producers(o.Group))}
		rec, err := b.record(queue.Entry{Position: o.Position, Size: o.Size})
		if err != nil {
			if b.isOpen(o.Position) { // else its segment may be gone
				t.Problem = fmt.Sprint(err)
				list = append(list, t)
			}
			continue
		}
		property := func(name string) string {
			v, _ := message.Property(rec.Properties, name)
			return string(v)
		}
		id, _ := strconv.ParseInt(property(message.PropertyRealQueueID), 10, 32)
		t.Topic, t.QueueID, t.Born = property(message.PropertyRealTopic), int32(id), rec.BornTime
		t.Key, t.Keys = property(message.PropertyUniqueKey), property(message.PropertyKeys)
		list = append(list, t)
	}
	return list, total
}

func (b *Broker) isOpen(half message.Position) bool {
	b.shard.RLock()
	defer b.shard.RUnlock()
	_, open := b.txns.Get(half)
	return open
}
