package broker

import (
	"context"
	"strconv"
	"time"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/internal/view/timer"
	"github.com/metaqio/metaq/message"
)

// deliverBatch is how many delayed messages are delivered by one entry.
const deliverBatch = 256

// runTimers delivers delayed messages when they are due, until ctx ends.
func (b *Broker) runTimers(ctx context.Context) error {
	wait := time.NewTimer(0)
	defer wait.Stop()
	var due []timer.Parked
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.timerWake:
		case <-wait.C:
		}
		for {
			b.shard.RLock()
			due = b.timers.Due(due[:0], b.now(), deliverBatch)
			b.shard.RUnlock()
			if len(due) == 0 {
				break
			}
			if err := b.deliver(ctx, due); err != nil {
				if ctx.Err() != nil || b.shard.Failure() != nil {
					return nil
				}
				b.log.Warn("delayed messages wait", "messages", len(due), "error", err)
				break
			}
		}
		wait.Reset(b.untilNext())
	}
}

// untilNext is how long nothing is due, a second at the most: the clock may be set meanwhile.
func (b *Broker) untilNext() time.Duration {
	b.shard.RLock()
	defer b.shard.RUnlock()
	next, ok := b.timers.Next()
	if !ok {
		return time.Second
	}
	return min(max(time.Duration(next-b.now())*time.Millisecond, 10*time.Millisecond), time.Second)
}

// deliver stores the delivered copies of parked messages, together with the word
// that they are delivered. A message whose topic is gone is given up.
func (b *Broker) deliver(ctx context.Context, due []timer.Parked) error {
	batch := &shard.Batch{}
	done := make(chan struct{})
	batch.Done = func(*shard.Batch) { close(done) }
	requests := make([]*SendRequest, len(due))
	for i, d := range due {
		rec, err := b.record(queue.Entry{Position: d.Position, Size: d.Size})
		if err != nil {
			b.log.Error("delayed message cannot be read and is given up", "position", int64(d.Position), "error", err)
			continue
		}
		requests[i] = b.delivered(&rec)
		b.Stats.Late.Observe(time.Duration(b.now()-d.Due) * time.Millisecond)
	}
	p := b.coldPass()
	p.Begin(batch)
	for i, d := range due {
		if r := requests[i]; r != nil {
			if _, err := p.Send(r); err != nil {
				b.log.Warn("delayed message cannot be delivered and is given up", "topic", string(r.Topic), "queue", r.QueueID, "error", err)
			} else {
				b.Stats.Delivered.Add(1)
			}
		}
		batch.Command(&entry.TimerDone{Parked: d.Position})
	}
	p.End()
	select {
	case <-done:
		return batch.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// delivered is the message as it is to be stored for its consumers. Like RocketMQ
// it keeps the technical properties of its parking, but for the time it was due.
func (b *Broker) delivered(rec *message.Record) *SendRequest {
	topic, _ := message.Property(rec.Properties, message.PropertyRealTopic)
	id, _ := message.Property(rec.Properties, message.PropertyRealQueueID)
	queueID, _ := strconv.ParseInt(string(id), 10, 32)
	return &SendRequest{
		Topic: topic, QueueID: int32(queueID), SysFlag: rec.SysFlag, Flag: rec.Flag, BornTime: rec.BornTime, BornHost: rec.BornHost,
		StoreHost: rec.StoreHost, Reconsumed: rec.ReconsumeTimes, MaxReconsume: -1, Body: rec.Body, internal: true, arrived: true,
		Properties: message.AppendWithout(nil, rec.Properties, message.PropertyTimerOutMs),
	}
}
