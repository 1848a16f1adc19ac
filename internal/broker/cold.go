package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/metaqio/metaq/internal/commitlog"
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
	look, err := p.lookCold(r)
	if err != nil || !look.more {
		return dst, look.res, err
	}
	q, res := &look.pull, look.res
	found := look.found
	if look.cold {
		n, err := look.stored.Read(q.offset, found[:cap(found)])
		if err != nil {
			return dst, res, err
		}
		found = found[:n]
	}
	if len(found) == 0 { // retention is taking them away
		res.Status, res.Next = MessageWasRemoving, q.offset+1
		return dst, res, nil
	}
	if err := p.choose(q, &res, found, false); errors.Is(err, commitlog.ErrDropped) {
		res.Status, res.Next = MessageWasRemoving, q.offset+1
		return dst, res, nil
	} else if err != nil {
		return dst, res, fmt.Errorf("filter messages: %w", err)
	}
	if err := b.cold.spend(ctx, p.scanned); err != nil || res.Status != Found {
		return dst, res, err
	}
	return b.readCold(ctx, dst, q.offset, p.entries, res)
}

// coldLook is what a cold pull takes down while it holds the views.
type coldLook struct {
	pull   pull
	res    PullResult
	more   bool          // there are messages
	found  []queue.Entry // their index entries, as far as they are in memory
	cold   bool          // they are not
	stored queue.Stored
}

// lookCold checks a cold pull and finds its index entries, or where they are.
func (p *Pass) lookCold(r *PullRequest) (l coldLook, err error) {
	p.b.shard.RLock()
	defer p.b.shard.RUnlock()
	p.batch, p.conf = &shard.Batch{}, p.b.conf.Load()
	if l.pull, err = p.checkPull(r); err != nil {
		return l, err
	}
	q := &l.pull
	l.res = q.bounds()
	if q.stale {
		l.res.Status = OffsetOverflowOne
		return l, nil
	}
	if !q.within(&l.res) {
		return l, nil
	}
	l.more, l.stored, l.found = true, q.queue.Stored(), make([]queue.Entry, q.want(p.conf))
	n, err := q.queue.Read(q.offset, l.found)
	l.found, l.cold = l.found[:n], err != nil
	return l, nil
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
