package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/internal/view/txn"
	"github.com/metaqio/metaq/message"
)

// Producers of a group are asked about so many transactions at a time, with about this many bytes of messages, and ten
// times a second at the most: they answer one after the other, and there is a limit to what waits to be sent to one.
const (
	checkBatch = 256
	checkBytes = 1 << 20
	checkPause = 100 * time.Millisecond
)

// checkDoublings is how often the time between two checks of a transaction doubles.
const checkDoublings = 4

// TransactionCheck asks a producer what became of its transaction.
type TransactionCheck struct {
	Broker string
	Half   message.Position
	Offset message.QueueOffset // in the queue of half messages
	Key    string              // unique key of the message
	ID     string              // offset id of the half message
	Record []byte              // the half message, with the topic and the queue that it is for
}

// runTransactions asks producers about transactions that they have not decided, and gives up those that nobody decides,
// until ctx ends.
func (b *Broker) runTransactions(ctx context.Context) error {
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wait.C:
		}
		pause := time.Second
		if b.shard.Leads() {
			switch err := b.tendTransactions(ctx); {
			case err == nil:
				pause = b.untilCheck()
			case ctx.Err() != nil || b.shard.Failure() != nil:
				return nil
			default:
				b.log.Warn("transactions wait", "error", err)
			}
		}
		wait.Reset(pause)
	}
}

// untilCheck is how long nobody is to be asked, a second at the most: producers may come, and the clock may be set.
func (b *Broker) untilCheck() time.Duration {
	next, now := int64(1<<62), b.now()
	for _, g := range b.groupsToAsk(now + time.Second.Milliseconds()) {
		if b.clients.produces(g.name) {
			next = min(next, g.next)
		}
	}
	return min(max(time.Duration(next-now)*time.Millisecond, checkPause), time.Second)
}

// groupToAsk is a group of producers with transactions to be asked about from a time on.
type groupToAsk struct {
	name string
	next int64 // ms
}

// groupsToAsk lists the groups with transactions that are to be asked about at a time (ms).
func (b *Broker) groupsToAsk(at int64) (list []groupToAsk) {
	immunity := b.conf.Load().TransactionTimeout.Milliseconds()
	b.shard.RLock()
	defer b.shard.RUnlock()
	b.txns.Groups(immunity, func(name string, next int64) {
		if next <= at {
			list = append(list, groupToAsk{name, next})
		}
	})
	return list
}

// tendTransactions looks after all transactions once. What goes wrong with one of them is no reason to leave the others.
func (b *Broker) tendTransactions(ctx context.Context) error {
	problems := b.giveUpOld(ctx)
	for _, g := range b.groupsToAsk(b.now()) {
		clients := b.Producers(g.name)
		if len(clients) == 0 {
			continue // it is not their fault: nothing is counted
		}
		problems = errors.Join(problems, b.askGroup(ctx, g.name, clients))
	}
	return problems
}

// giveUpOld gives up what has been open for longer than messages are kept, and what stands in the way of retention.
func (b *Broker) giveUpOld(ctx context.Context) error {
	for range checkBatch {
		b.shard.RLock()
		o, ok := b.txns.Oldest()
		b.shard.RUnlock()
		if !ok {
			return nil
		}
		why, keep := "its segment is dropped (retention-bytes, disk-max-use)", b.conf.Load().RetentionTime
		if keep > 0 && o.Stored < b.now()-keep.Milliseconds() {
			why = "older than retention-time"
		} else if int64(o.Position) >= b.givenUp.Load() {
			return nil
		}
		rec, err := b.record(queue.Entry{Position: o.Position, Size: o.Size})
		if err != nil {
			b.log.Error("a half message cannot be read, and is lost", "position", int64(o.Position), "group", o.Group, "error", err)
			err = b.giveUp(ctx, &o, nil, why)
		} else {
			err = b.giveUp(ctx, &o, &rec, why)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// giveUp ends a transaction that nobody decides. Its message goes to the topic of stale transactions.
func (b *Broker) giveUp(ctx context.Context, o *txn.Open, rec *message.Record, why string) error {
	open := false
	err := b.decide(ctx, o.Position, func() (e ending, do bool, err error) {
		open = b.isOpen(o.Position)
		e.command = entry.EndTransaction{Half: o.Position, Decision: entry.GiveUp, Actor: why}
		if rec != nil {
			e.message = likeRecord(rec, message.TopicTransactionStale, 0)
			e.message.Properties, e.message.arrived = withChecks(rec.Properties, o.Checks), true
		}
		return e, open, nil
	})
	if err != nil {
		return fmt.Errorf("give up the transaction at %d: %w", o.Position, err)
	}
	if open { // else it was decided just now
		b.log.Info("a transaction is given up", "position", int64(o.Position), "group", o.Group, "checks", o.Checks, "why", why)
	}
	return nil
}

// askGroup asks the producers of a group, in turns, about transactions that are due, and gives up those that were asked
// about often enough.
func (b *Broker) askGroup(ctx context.Context, group string, clients []*Client) error {
	conf, now := b.conf.Load(), b.now()
	b.shard.RLock()
	due := b.txns.Due(nil, group, now, conf.TransactionTimeout.Milliseconds(), checkBatch)
	b.shard.RUnlock()
	var problems error
	var batch shard.Batch
	var asks []ask
	bytes := 0
	for i := range due {
		o := &due[i]
		if bytes += int(o.Size); bytes > checkBytes && i > 0 {
			break
		}
		rec, err := b.record(queue.Entry{Position: o.Position, Size: o.Size})
		switch {
		case err != nil: // later again; the others are not to wait for it
			b.log.Error("a half message cannot be read", "position", int64(o.Position), "group", group, "error", err)
			batch.Command(&entry.CheckTransaction{Half: o.Position, Checks: o.Checks, Next: now + conf.untilNextCheck(checkDoublings+1)})
		case int(o.Checks) >= conf.TransactionChecks:
			problems = errors.Join(problems, b.giveUp(ctx, o, &rec, fmt.Sprintf("asked %d times (transaction-check-max)", o.Checks)))
		default:
			o.Checks++
			batch.Command(&entry.CheckTransaction{Half: o.Position, Checks: o.Checks, Next: now + conf.untilNextCheck(o.Checks)})
			asks = append(asks, ask{*o, rec})
		}
	}
	if batch.Empty() {
		return problems
	}
	batch.Lazy = true // a check that is not counted after a power cut is made once more
	if err := b.shard.Do(ctx, &batch); err != nil {
		return errors.Join(problems, err)
	}
	for _, a := range asks {
		b.ask(clients, a)
	}
	return problems
}

// untilNextCheck is how long to wait after so many checks, in ms.
func (c *Config) untilNextCheck(checks int32) int64 {
	return c.TransactionInterval.Milliseconds() << min(max(checks-1, 0), checkDoublings)
}

// ask is a transaction to be asked about, and its half message.
type ask struct {
	txn.Open
	rec message.Record
}

// ask asks the producer whose turn it is, unless the transaction was decided meanwhile.
func (b *Broker) ask(clients []*Client, a ask) {
	if !b.isOpen(a.Position) {
		return
	}
	key, _ := message.Property(a.rec.Properties, message.PropertyUniqueKey)
	id := message.AppendOffsetID(nil, a.rec.StoreHost, a.Position)
	topic, _ := message.Property(a.rec.Properties, message.PropertyRealTopic)
	queueID, _ := message.Property(a.rec.Properties, message.PropertyRealQueueID)
	number, _ := strconv.ParseInt(string(queueID), 10, 32)
	rec := a.rec
	rec.Topic, rec.QueueID, rec.Properties = topic, int32(number), withChecks(a.rec.Properties, a.Checks)
	b.asked++
	clients[b.asked%uint64(len(clients))].Peer.CheckTransaction(&TransactionCheck{
		Broker: b.conf.Load().Name, Half: a.Position, Offset: a.Offset, Key: string(key), ID: string(id), Record: message.AppendRecord(nil, &rec),
	})
	b.Stats.Checks.Add(1)
}
