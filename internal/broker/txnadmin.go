package broker

import (
	"context"
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

// TransactionList is some of the open transactions.
type TransactionList struct {
	Open         int              // so many are there, of all groups
	Transactions []Transaction    // the oldest first
	Next         message.Position // to go on behind; 0 when there are no more
}

// Limits of a list: the messages themselves have to be read for it.
const (
	MaxTransactions      = 1000
	maxTransactionsBytes = 16 << 20
)

// Transactions lists open transactions that lie behind a position: up to limit, or fewer when their messages are large; of
// one group of producers, unless its name is empty.
func (b *Broker) Transactions(behind message.Position, group string, limit int) (l TransactionList) {
	immunity := b.conf.Load().TransactionTimeout.Milliseconds()
	b.shard.RLock()
	open := b.txns.After(nil, behind, group, min(limit, MaxTransactions)+1)
	l.Open = b.txns.Len()
	b.shard.RUnlock()
	bytes := 0
	for i := range open {
		o := &open[i]
		if bytes += int(o.Size); i > 0 && (i >= limit || i >= MaxTransactions || bytes > maxTransactionsBytes) {
			l.Next = open[i-1].Position
			break
		}
		t := Transaction{Open: *o, NextCheck: o.Due(immunity), Online: len(b.Producers(o.Group))}
		rec, err := b.record(queue.Entry{Position: o.Position, Size: o.Size})
		switch {
		case err == nil:
			t.describe(&rec)
		case b.isOpen(o.Position):
			t.Problem = err.Error()
		default: // it was decided meanwhile, and its segment may be gone
			continue
		}
		l.Transactions = append(l.Transactions, t)
	}
	return l
}

// describe adds what the half message says.
func (t *Transaction) describe(rec *message.Record) {
	property := func(name string) string {
		v, _ := message.Property(rec.Properties, name)
		return string(v)
	}
	id, _ := strconv.ParseInt(property(message.PropertyRealQueueID), 10, 32)
	t.Topic, t.QueueID, t.Born = property(message.PropertyRealTopic), int32(id), rec.BornTime
	t.Key, t.Keys = property(message.PropertyUniqueKey), property(message.PropertyKeys)
}

func (b *Broker) isOpen(half message.Position) bool {
	b.shard.RLock()
	defer b.shard.RUnlock()
	_, open := b.txns.Get(half)
	return open
}
