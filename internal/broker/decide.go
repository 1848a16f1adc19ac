package broker

import (
	"context"
	"sync"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

// How a transaction gets one outcome, whoever decides, and however often:
//
//   - In one process: who is about to decide takes the half message (deciding), looks at the views, and keeps it until
//     its batch is folded or has failed. So the next one sees what became of it.
//   - Across a change of leaders: the batch is bound to the term that was read before the views (shard.Batch.Term). It is
//     refused when another node may have decided meanwhile, and nobody leads before all that was decided earlier is folded.
//   - Across a restart: the decision stands in the entry of the message. Both are there, or neither is.

// deciding is the half messages that are being decided.
type deciding struct {
	mu   sync.Mutex // guards busy
	busy map[message.Position]chan struct{}
}

// take marks a half message as being decided. If it is already, it returns what is closed when that is over.
func (d *deciding) take(half message.Position) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if over := d.busy[half]; over != nil {
		return over
	}
	if d.busy == nil {
		d.busy = map[message.Position]chan struct{}{}
	}
	d.busy[half] = make(chan struct{})
	return nil
}

// await takes a half message as soon as nobody else has it.
func (d *deciding) await(ctx context.Context, half message.Position) error {
	for {
		over := d.take(half)
		if over == nil {
			return nil
		}
		select {
		case <-over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// free ends what take began.
func (d *deciding) free(half message.Position) {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.busy[half])
	delete(d.busy, half)
}

// ending is how a transaction is to end, and what becomes of its message.
type ending struct {
	command entry.EndTransaction
	message *SendRequest // nil: nothing
}

// put puts an ending into the pass's batch. The half message is free when the batch is done. REQUIRES: it is taken.
func (p *Pass) put(e ending) error {
	if e.message != nil {
		if _, err := p.Send(e.message); err != nil {
			return err
		}
	}
	p.batch.Command(&e.command)
	p.batch.Term = p.term
	p.endings = append(p.endings, ending{command: e.command})
	return nil
}

// flushEndings has the half messages of the pass freed, and the endings counted, when its batch is done.
func (p *Pass) flushEndings() {
	if len(p.endings) == 0 {
		return
	}
	b, endings, before := p.b, p.endings, p.batch.Done
	p.endings = nil
	p.batch.Done = func(done *shard.Batch) {
		done.Done = before // the batch is used again
		for i := range endings {
			if done.Err == nil {
				b.Stats.Ended[endings[i].command.Decision].Add(1)
			}
			b.deciding.free(endings[i].command.Half)
		}
		before(done)
	}
}

// decide ends a transaction on the caller's goroutine, when nobody else decides it. how looks at the views and says what
// to do, if anything.
func (b *Broker) decide(ctx context.Context, half message.Position, how func() (e ending, do bool, err error)) error {
	if err := b.deciding.await(ctx, half); err != nil {
		return err
	}
	term := b.shard.LeadingTerm()
	e, do, err := ending{}, false, error(errFollower)
	if term != 0 {
		e, do, err = how()
	}
	if err != nil || !do {
		b.deciding.free(half)
		return err
	}
	p, batch := b.coldPass(), &shard.Batch{}
	done := make(chan struct{})
	batch.Done = func(*shard.Batch) { close(done) }
	p.Begin(batch)
	p.term = term
	err = p.put(e)
	if !p.End() {
		b.deciding.free(half)
		return notMade(err, e.message.Topic)
	}
	select {
	case <-done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if batch.Err == nil && len(batch.Msgs) > 0 && batch.Msgs[0].Gone {
		return refuse(TopicNotFound, "topic[%s] not exist, it was deleted meanwhile", e.message.Topic)
	}
	return batch.Err
}
