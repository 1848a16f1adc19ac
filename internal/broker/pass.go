package broker

import (
	"bytes"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/internal/view/key"
	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/internal/view/topic"
)

// Pass is how one driver of connections uses the broker. It belongs to that driver.
type Pass struct {
	b     *Broker
	batch *shard.Batch // what this pass changes
	conf  *Config      // of this pass

	// What was looked up lately; void when the table of topics changes.
	known   map[string]*destination
	knownAt int64
	last    *destination

	entries []queue.Entry // picked by the last Pull
	looked  pull          // the request of the last Pull
	scratch []byte
	run     []queue.Entry // whose records are in scratch
	scanned int           // bytes that the filters of this pass have looked at
	commits []pendingCommit
	items   [1]entry.QueueAt
	term    uint64   // see shard.Batch.Term
	endings []ending // of transactions, in the batch
	durable bool     // somebody is told that the commands of this pass are stored
	waits   waitList
}

// destination is a topic as a send or a pull needs it.
type destination struct {
	name   []byte
	topic  *topic.Topic
	queues *queue.Topic
	odd    bool     // sends to it are checked further: see oddDestination
	keys   key.Hash // of its messages' keys
}

// maxKnown bounds the memory of a driver's look-ups.
const maxKnown = 1024

// NewPass makes the pass of a driver; wake makes the driver run a pass soon, from any goroutine.
func (b *Broker) NewPass(wake func()) *Pass {
	p := &Pass{b: b, known: map[string]*destination{}, entries: make([]queue.Entry, 0, 64)}
	p.waits.wake = wake
	p.waits.next.Store(never)
	return p
}

// Begin begins a pass whose changes go into batch. Until End, views are held: do
// not block, and call nothing of the broker but the pass's methods.
func (p *Pass) Begin(batch *shard.Batch) {
	p.term = p.b.shard.LeadingTerm() // before the views
	p.b.shard.RLock()
	p.batch, p.conf, p.scanned = batch, p.b.conf.Load(), 0
	if at := p.b.topics.Changes(); at != p.knownAt {
		clear(p.known)
		p.last, p.knownAt = nil, at
	}
}

// End ends the pass and submits its batch, if there is anything in it; it says
// whether there was. The batch's Done is called in any case that there was.
func (p *Pass) End() (submitted bool) {
	p.flushCommits()
	p.flushEndings()
	b := p.batch
	p.batch = nil
	p.b.shard.RUnlock()
	if b.Empty() {
		return false
	}
	p.b.shard.Submit(b)
	return true
}

// find looks up a topic; nil when there is none.
func (p *Pass) find(name []byte) *destination {
	if p.last != nil && bytes.Equal(p.last.name, name) {
		return p.last
	}
	d := p.known[string(name)]
	if d == nil {
		t := p.b.topics.Get(name)
		if t == nil {
			return nil
		}
		if len(p.known) >= maxKnown {
			clear(p.known)
		}
		d = &destination{name: []byte(t.Name), topic: t, queues: p.b.queues.Topic(name), keys: key.Topic(name)}
		d.odd = t.Name[0] == '%' || sendForbidden(t.Name)
		p.known[t.Name] = d
	}
	p.last = d
	return d
}
