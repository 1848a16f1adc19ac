package broker

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/internal/view/timer"
	"github.com/metaqio/metaq/message"
)

// Delayed messages are delivered by one entry up to this number, and about this many bytes.
const (
	deliverBatch = 256
	deliverBytes = 1 << 20
)

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
		var err error
		for {
			b.shard.RLock()
			due = b.timers.Due(due[:0], b.now(), deliverBatch)
			b.shard.RUnlock()
			if len(due) == 0 {
				break
			}
			if err = b.deliver(ctx, fewer(due, min(deliverBytes, b.shard.MaxBatch()/2))); err != nil {
				break
			}
		}
		switch {
		case err == nil:
			wait.Reset(b.untilNext())
		case ctx.Err() != nil || b.shard.Failure() != nil:
			return nil
		default:
			b.log.Warn("delayed messages wait", "messages", len(due), "error", err)
			wait.Reset(time.Second)
		}
	}
}

// fewer is as many of the messages as have about so many bytes, one at least.
func fewer(due []timer.Parked, limit int) []timer.Parked {
	bytes := 0
	for i, d := range due {
		if bytes += int(d.Size); bytes > limit && i > 0 {
			return due[:i]
		}
	}
	return due
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
	requests, unread := make([]*SendRequest, len(due)), error(nil)
	for i, d := range due {
		rec, err := b.record(queue.Entry{Position: d.Position, Size: d.Size})
		if err != nil { // it stays pending
			unread = fmt.Errorf("read the delayed message at %d: %w", d.Position, err)
			continue
		}
		requests[i] = b.delivered(&rec)
	}
	p := b.coldPass()
	p.Begin(batch)
	for i, d := range due {
		r := requests[i]
		if r == nil {
			continue
		}
		if _, err := p.Send(r); err != nil {
			b.log.Warn("delayed message cannot be delivered and is given up", "topic", string(r.Topic), "queue", r.QueueID, "error", err)
		}
		batch.Command(&entry.TimerDone{Parked: d.Position})
	}
	if !p.End() {
		return unread
	}
	select {
	case <-done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if batch.Err != nil {
		return batch.Err
	}
	b.Stats.Delivered.Add(int64(len(batch.Msgs)))
	for i, d := range due {
		if requests[i] != nil {
			b.Stats.Late.Observe(time.Duration(batch.Time-d.Due) * time.Millisecond)
		}
	}
	return unread
}

// delivered is the message as it is to be stored for its consumers. Like RocketMQ it
// keeps the technical properties of its parking; those of a delay level do not tell
// the time when it was due, those of a timer say when it came and went.
func (b *Broker) delivered(rec *message.Record) *SendRequest {
	props := append([]byte(nil), rec.Properties...)
	if string(rec.Topic) == message.TopicSchedule {
		props = message.AppendWithout(nil, props, message.PropertyTimerOutMs)
	} else {
		props = message.AppendProperty(props, message.PropertyTimerEnqueueMs, strconv.FormatInt(rec.StoreTime, 10))
		props = message.AppendProperty(props, message.PropertyTimerDequeueMs, strconv.FormatInt(b.now(), 10))
		if len(props) > message.MaxProperties { // it can do without
			props = append(props[:0], rec.Properties...)
		}
	}
	topic, _ := message.Property(rec.Properties, message.PropertyRealTopic)
	id, _ := message.Property(rec.Properties, message.PropertyRealQueueID)
	queueID, _ := strconv.ParseInt(string(id), 10, 32)
	return &SendRequest{
		Topic: topic, QueueID: int32(queueID), SysFlag: rec.SysFlag, Flag: rec.Flag, BornTime: rec.BornTime, BornHost: rec.BornHost,
		StoreHost: rec.StoreHost, Reconsumed: rec.ReconsumeTimes, MaxReconsume: -1, Body: rec.Body, internal: true, arrived: true,
		Properties: props, prepared: message.Position(rec.PreparedOffset),
	}
}
