package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/metaqio/metaq/internal/commitlog"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/filter"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/internal/stats"
	"github.com/metaqio/metaq/internal/view/group"
	"github.com/metaqio/metaq/internal/view/key"
	"github.com/metaqio/metaq/internal/view/offset"
	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/internal/view/timer"
	"github.com/metaqio/metaq/internal/view/topic"
	"github.com/metaqio/metaq/internal/view/txn"
	"github.com/metaqio/metaq/message"
)

// Options say how a broker is opened.
type Options struct {
	// Shard says where the data are and how safe they are. Views and callbacks are set here.
	Shard  shard.Options
	Config Config
	// IndexMemory is how many bytes of queue index stay in memory; 64 MiB when zero.
	IndexMemory int
	// YoungBytes is how far back in the log a message counts as young: a new group starts at the beginning of a young queue.
	YoungBytes int64
	// PoolSize is the number of goroutines for work that may block; PoolQueue how much may wait for them.
	PoolSize, PoolQueue int
	Log                 *slog.Logger
}

// Stats are what the broker counts, besides its shard.
type Stats struct {
	Sends, SendBytes       stats.Counter // messages accepted
	Pulled, PulledBytes    stats.Counter // messages handed out
	Pulls, EmptyPulls      stats.Counter
	ColdPulls              stats.Counter
	PullTime               stats.Histogram        // from reading a pull to its answer, without waiting for messages
	Refused                stats.Counter          // sends
	RefusedFor             [Reasons]stats.Counter // requests of all kinds
	Delivered              stats.Counter          // delayed messages
	Late                   stats.Histogram
	SendBacks, DeadLetters stats.Counter
	Checks                 stats.Counter                   // of transactions, sent to producers
	Ended                  [entry.Resume + 1]stats.Counter // transactions by decision
	Replies                stats.Counter                   // given to who asked
}

// Broker is one shard with its use cases.
type Broker struct {
	opts  Options
	log   *slog.Logger
	shard *shard.Shard

	topics  *topic.View
	groups  *group.View
	queues  *queue.View
	offsets *offset.View
	timers  *timer.View
	keys    *key.View
	txns    *txn.View

	conf          atomic.Pointer[Config]
	ownProperties atomic.Pointer[[]byte] // what the broker adds to each message
	young         int64
	refusing      atomic.Pointer[Error] // why sends are refused at the moment
	started       time.Time

	clients    *clients
	filters    filter.Parser
	locks      *locks
	committers committers
	pool       *pool
	replies    replies
	cold       coldBudget
	waiting    atomic.Int64 // parked pulls
	history    history
	deciding   deciding
	asked      uint64       // producers so far, for their turns; belongs to runTransactions
	givenUp    atomic.Int64 // retention wants to drop the log up to here

	mu     sync.Mutex         // guards the following
	passes map[*Pass]struct{} // that have waiting pulls

	// changing is held by who changes topics or groups, because that means looking first.
	changing sync.Mutex

	timerWake chan struct{}
	onTopics  atomic.Pointer[func([]string)] // called when topics changed
	Stats     Stats
}

// Open opens a broker on its data.
func Open(o Options) (*Broker, commitlog.Recovery, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.IndexMemory == 0 {
		o.IndexMemory = queue.DefaultMemory
	}
	if o.YoungBytes == 0 {
		o.YoungBytes = 4 << 30
	}
	b := &Broker{
		opts: o, log: o.Log, young: o.YoungBytes, started: time.Now(),
		topics: topic.New(), groups: group.New(), queues: queue.New(o.IndexMemory), offsets: offset.New(), timers: timer.New(), keys: key.New(o.Log), txns: txn.New(),
		clients: newClients(), timerWake: make(chan struct{}, 1), passes: map[*Pass]struct{}{},
	}
	b.locks = newLocks(func() time.Duration { return b.conf.Load().LockLease })
	b.pool = newPool(o.PoolSize, o.PoolQueue)
	b.Configure(o.Config)
	so := o.Shard
	so.Queues = b.queues
	so.Views = []shard.View{b.topics, b.groups, b.offsets, b.timers, b.txns}
	so.Keys = b.keys
	so.Folded = b.folded
	so.Log = o.Log
	s, rec, err := shard.Open(so)
	if err != nil {
		return nil, rec, err
	}
	b.shard = s
	if err := b.ensureSystem(context.Background()); err != nil {
		return nil, rec, errors.Join(fmt.Errorf("make system topics: %w", err), s.Close())
	}
	return b, rec, nil
}

// Configure puts a configuration into force.
func (b *Broker) Configure(c Config) {
	b.conf.Store(&c)
	var own []byte
	own = message.AppendProperty(own, message.PropertyRegion, c.Region)
	own = message.AppendProperty(own, message.PropertyTraceOn, fmt.Sprint(c.TraceOn))
	own = message.AppendProperty(own, message.PropertyCluster, c.Cluster)
	b.ownProperties.Store(&own)
	b.cold.set(c.ColdReads, c.ColdBytesPerSec)
}

// Config is the configuration in force. It must not be changed.
func (b *Broker) Config() *Config { return b.conf.Load() }

// Shard is the broker's shard, for its statistics and tools.
func (b *Broker) Shard() *shard.Shard { return b.shard }

// OnTopics sets what is called with the names of topics that were made, changed or deleted: in the order of the log, before who asked for it
// gets an answer, and also when that one has stopped waiting. f may read the broker's tables; it must not change them, nor wait for anything.
func (b *Broker) OnTopics(f func(names []string)) { b.onTopics.Store(&f) }

func (b *Broker) now() int64 { return time.Now().UnixMilli() }

// folded runs after entries were folded, on the goroutine that holds the tail.
func (b *Broker) folded() {
	b.queues.Arrived(func(q *queue.Queue) { q.Waiters.NotifyAll() })
	if b.timers.NextChanged() {
		select {
		case b.timerWake <- struct{}{}:
		default:
		}
	}
}

// do makes commands true and waits for it. Who shows topics to clients is told of those that changed.
func (b *Broker) do(ctx context.Context, commands ...entry.Command) error {
	var batch shard.Batch
	var topics []string
	for _, c := range commands {
		batch.Command(c)
		switch c := c.(type) {
		case *entry.PutTopic:
			topics = append(topics, c.Topic.Name)
		case *entry.DeleteTopic:
			topics = append(topics, c.Name)
		}
	}
	if f := b.onTopics.Load(); f != nil && topics != nil {
		batch.Done = func(done *shard.Batch) {
			if done.Err == nil {
				(*f)(topics)
			}
		}
	}
	return b.shard.Do(ctx, &batch)
}

// Run does what happens by itself until ctx ends.
func (b *Broker) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return b.shard.Run(ctx) })
	g.Go(func() error { return b.runDeadlines(ctx) })
	g.Go(func() error { return b.runTimers(ctx) })
	g.Go(func() error { return b.runTransactions(ctx) })
	g.Go(func() error { return b.runRetention(ctx) })
	g.Go(func() error { return b.runExpiry(ctx) })
	return g.Wait()
}

// runDeadlines wakes the passes whose waiting pulls are due.
func (b *Broker) runDeadlines(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if b.waiting.Load() == 0 {
			continue
		}
		now := int64(time.Since(epoch))
		b.mu.Lock()
		for p := range b.passes {
			if p.waits.next.Load() <= now {
				p.waits.wake()
			}
		}
		b.mu.Unlock()
	}
}

// runExpiry drops clients that have been silent for too long, and locks that are over.
func (b *Broker) runExpiry(ctx context.Context) error {
	tick := time.NewTicker(samplePeriod)
	defer tick.Stop()
	b.sample()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			b.sample()
			b.ExpireClients(time.Now().Add(-b.conf.Load().ClientExpiry))
			b.locks.expire()
		}
	}
}

// Close ends the broker in order; Run must have ended.
func (b *Broker) Close() error {
	b.pool.close()
	b.replies.close()
	return errors.Join(b.shard.Close(), b.keys.Close())
}
