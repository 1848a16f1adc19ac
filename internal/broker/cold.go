package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/message"
)

// A cold pass is a pass on a goroutine of its own.
func (b *Broker) coldPass() *Pass {
	p := &Pass{b: b, known: map[string]*destination{}}
	p.waits.wake = func() {}
	p.waits.next.Store(never)
	return p
}

// ColdSend is Send for a message whose topic has to be made first. It returns when
// the message is stored; the batch says where.
func (b *Broker) ColdSend(ctx context.Context, r *SendRequest) (Sent, *shard.Batch, error) {
	if err := b.ensureDestination(ctx, r); err != nil {
		return Sent{}, nil, err
	}
	p, batch := b.coldPass(), &shard.Batch{}
	done := make(chan struct{})
	batch.Done = func(*shard.Batch) { close(done) }
	p.Begin(batch)
	sent, err := p.Send(r)
	if !p.End() {
		if err == nil || errors.Is(err, ErrCold) {
			err = refuse(TopicNotFound, "topic[%s] not exist, apply first please!", r.Topic)
		}
		return sent, nil, err
	}
	select {
	case <-done:
	case <-ctx.Done():
		return sent, nil, context.Cause(ctx)
	}
	if err == nil {
		err = batch.Err
	}
	if err == nil && batch.Msgs[sent.First].Gone {
		err = refuse(TopicNotFound, "topic[%s] not exist, it was deleted meanwhile", r.Topic)
	}
	return sent, batch, err
}

// ColdPull is Pull for messages that are not in memory: it reads the disk, within
// the budget of such reads, and appends the records to dst.
func (b *Broker) ColdPull(ctx context.Context, r *PullRequest, dst []byte) ([]byte, PullResult, error) {
	b.Stats.ColdPulls.Add(1)
	leave, err := b.cold.enter(ctx)
	if err != nil {
		return dst, PullResult{}, err
	}
	defer leave()
	if err := b.EnsureGroups(ctx, []string{string(r.Group)}); err != nil {
		return dst, PullResult{}, err
	}
	p := b.coldPass()
	b.shard.RLock()
	p.batch, p.conf = &shard.Batch{}, b.conf.Load()
	q, err := p.checkPull(r)
	var res PullResult
	var stored queue.Stored
	if err == nil {
		stored = q.queue.Stored()
		res, err = p.look(&q)
	}
	b.shard.RUnlock()
	switch {
	case errors.Is(err, ErrCold):
		res = q.bounds()
	case err != nil || res.Status != Found:
		return dst, res, err
	default:
		return b.readCold(ctx, dst, q.offset, p.entries, res)
	}
	if err := p.pickStored(&q, &res, stored); err != nil || res.Status != Found {
		return dst, res, err
	}
	return b.readCold(ctx, dst, q.offset, p.entries, res)
}

// pickStored is pick for entries that are in the store.
func (p *Pass) pickStored(q *pull, res *PullResult, stored queue.Stored) error {
	want := max(p.conf.MaxScan, q.max)
	found := make([]queue.Entry, want)
	n, err := stored.Read(q.offset, found)
	if err != nil {
		return err
	}
	if n == 0 { // retention is taking them away
		res.Status, res.Next = MessageWasRemoving, q.offset+1
		return nil
	}
	p.choose(q, res, found[:n])
	return p.verifyCold(q, res)
}

// verifyCold is verify by reading the disk.
func (p *Pass) verifyCold(q *pull, res *PullResult) error {
	if q.filter.All() {
		return nil
	}
	kept := p.entries[:0]
	for _, e := range p.entries {
		r, err := p.b.record(e)
		if err != nil {
			return err
		}
		if q.filter.MatchProperties(r.Properties) {
			kept = append(kept, e)
		}
	}
	p.entries = kept
	if res.Count = len(kept); res.Count == 0 {
		res.Status = NoMatchedMessage
	}
	return nil
}

func (b *Broker) readCold(ctx context.Context, dst []byte, asked message.QueueOffset, entries []queue.Entry, res PullResult) ([]byte, PullResult, error) {
	if len(entries) > 0 && entries[0].Position < b.shard.Log().Start() { // one after the other until there is one: those between may be left
		res.Status, res.Next, res.Count = MessageWasRemoving, asked+1, 0
		return dst, res, nil
	}
	start := len(dst)
	dst, err := b.appendRecords(dst, entries, false)
	if err != nil {
		return dst, res, fmt.Errorf("cold pull: %w", err)
	}
	return dst, res, b.cold.spend(ctx, len(dst)-start)
}
