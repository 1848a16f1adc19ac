package broker

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/message"
)

// asked keeps what a producer is asked.
type asked struct {
	quiet
	checks []*TransactionCheck
}

func (a *asked) CheckTransaction(c *TransactionCheck) { a.checks = append(a.checks, c) }

// keys are the keys of the transactions that were asked about.
func (a *asked) keys() (out []string) {
	for _, c := range a.checks {
		out = append(out, c.Key)
	}
	return out
}

// halfOf sends a half message of group P and returns a commit of it.
func halfOf(t testing.TB, b *Broker, topic, key string) EndRequest {
	t.Helper()
	r := benchSend()
	r.Topic, r.Properties = []byte(topic), []byte("TRAN_MSG\x01true\x02PGROUP\x01P\x02UNIQ_KEY\x01"+key+"\x02")
	sent, batch, err := b.ColdSend(t.Context(), &r)
	require.NoError(t, err)
	return EndRequest{Half: batch.Position(sent.First), Offset: batch.Msgs[sent.First].Offset, Group: "P", Decision: entry.Commit, Actor: "test"}
}

func (b *Broker) produce(peer Peer, id, group string) {
	p := b.coldPass()
	p.Begin(&shard.Batch{})
	p.Beat(&Client{ID: id, Peer: peer}, &Heartbeat{Producers: []string{group}})
	p.End()
}

// end is the number of messages in a queue.
func (b *Broker) end(topic string, id int32) message.QueueOffset {
	b.shard.RLock()
	defer b.shard.RUnlock()
	return b.queues.Topic([]byte(topic)).Queues[id].End()
}

// C093: half messages that cannot be read are passed over, and come again later; the others are asked about.
func TestC093ABadHalfMessageStopsNobody(t *testing.T) {
	b := benchBroker(t)
	c := *b.Config()
	c.TransactionTimeout, c.TransactionInterval, c.TransactionChecks = 0, time.Minute, 2
	b.Configure(c)
	peer := &asked{}
	b.produce(peer, "p", "P")
	first := halfOf(t, b, "T", "first")
	bad := message.AppendRecord(nil, &message.Record{Topic: []byte(message.TopicHalf), Properties: []byte("PGROUP\x01P\x02")})
	for i := range 3 { // positions that are not there; nobody else folds yet
		_, err := b.txns.FoldRecord(shard.At{Position: 1<<40 + message.Position(i)*1000, Time: 1}, bad)
		require.NoError(t, err)
	}
	require.NoError(t, b.tendTransactions(t.Context()))
	require.Equal(t, []string{"first"}, peer.keys())
	o, ok := b.txns.Get(1 << 40)
	require.True(t, ok, "it is kept for an operator")
	require.Zero(t, o.Checks, "nobody was asked")
	require.Greater(t, o.Next, b.now()+15*time.Minute.Milliseconds())
	list := b.Transactions(first.Half, "P", 10)
	require.Equal(t, 4, list.Open)
	require.Len(t, list.Transactions, 3)
	require.NotEmpty(t, list.Transactions[0].Problem)

	require.NoError(t, b.tendTransactions(t.Context()))
	require.Len(t, peer.checks, 1, "a minute later again")
	next, _ := b.txns.Get(first.Half)
	require.InDelta(t, b.now()+time.Minute.Milliseconds(), next.Next, 10_000)
}

// The time between checks doubles, up to 16 times the interval.
func TestChecksBackOff(t *testing.T) {
	c := Defaults()
	var got []time.Duration
	for n := int32(1); n <= 7; n++ {
		got = append(got, time.Duration(c.untilNextCheck(n))*time.Millisecond)
	}
	m := time.Minute
	require.Equal(t, []time.Duration{m / 2, m, 2 * m, 4 * m, 8 * m, 8 * m, 8 * m}, got)
}

// A group is asked about a bounded number of bytes at a time, about one message at least.
func TestProducersAreNotFlooded(t *testing.T) {
	b := benchBroker(t)
	c := *b.Config()
	c.TransactionTimeout = 0
	b.Configure(c)
	peer := &asked{}
	b.produce(peer, "p", "P")
	for i := range 5 {
		r := benchSend()
		r.Body = make([]byte, 600_000)
		r.Properties = []byte("TRAN_MSG\x01true\x02PGROUP\x01P\x02UNIQ_KEY\x01" + strconv.Itoa(i) + "\x02")
		_, _, err := b.ColdSend(t.Context(), &r)
		require.NoError(t, err)
	}
	for i := range 5 {
		require.NoError(t, b.tendTransactions(t.Context()))
		require.Len(t, peer.checks, i+1)
	}
	require.Equal(t, []string{"0", "1", "2", "3", "4"}, peer.keys())

	var keys []string
	for next, page := message.Position(-1), 0; page == 0 || next != 0; page++ {
		list := b.Transactions(next, "P", 2)
		require.LessOrEqual(t, len(list.Transactions), 2)
		for _, one := range list.Transactions {
			keys = append(keys, one.Key)
		}
		next = list.Next
	}
	require.Equal(t, peer.keys(), keys)
	require.Empty(t, b.Transactions(-1, "Q", 2).Transactions)
}

// Segments with open half messages stay, until retention needs them: then those are given up, and nothing is lost.
func TestRetentionGivesUpHalfMessages(t *testing.T) {
	b := benchBroker(t)
	require.NoError(t, b.PutTopic(t.Context(), entry.Topic{Name: "U", ReadQueues: 1, WriteQueues: 1, Perm: 6}, "test"))
	h := halfOf(t, b, "T", "kept")
	require.Equal(t, h.Half, b.txns.Needs())
	require.NoError(t, b.giveUpOld(t.Context()))
	require.Equal(t, 1, b.txns.Len())
	b.givenUp.Store(int64(h.Half)) // up to it
	require.NoError(t, b.giveUpOld(t.Context()))
	require.Equal(t, 1, b.txns.Len())
	b.givenUp.Store(int64(h.Half) + 1)
	young := halfOf(t, b, "U", "young")
	require.NoError(t, b.giveUpOld(t.Context()))
	require.Equal(t, 1, b.txns.Len())
	require.Equal(t, young.Half, b.txns.Needs())
	require.Equal(t, message.QueueOffset(1), b.end(message.TopicTransactionStale, 0))
	require.ErrorContains(t, b.EndTransaction(t.Context(), &h), "was given up")
	require.NoError(t, b.EndTransaction(t.Context(), &young))
}

// Half messages survive the drop of segments that were written while they were open.
func TestOpenHalfMessagesHoldTheLog(t *testing.T) {
	b, _, err := Open(Options{
		Shard: shard.Options{
			FS: vfs.NewMem(), Dir: "shard", Durability: shard.Async, SlowSync: time.Hour, SegmentBytes: 1 << 20, RingBytes: 1 << 20, Manual: true,
		},
		Config: Defaults(),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	require.NoError(t, b.PutTopic(t.Context(), entry.Topic{Name: "T", ReadQueues: 4, WriteQueues: 4, Perm: 6}, "test"))
	h := halfOf(t, b, "T", "K")
	r := benchSend()
	r.Body = make([]byte, 100_000)
	for range 40 {
		_, _, err := b.ColdSend(t.Context(), &r)
		require.NoError(t, err)
	}
	drop := func() {
		require.NoError(t, b.do(t.Context(), &entry.DropLog{Before: b.shard.Log().Segments()[2].Start, Reason: "test"}))
		b.shard.CheckpointNow()
	}
	drop()
	require.LessOrEqual(t, b.shard.Log().Start(), h.Half)
	require.NoError(t, b.EndTransaction(t.Context(), &h), "from the disk")
	drop()
	require.Greater(t, b.shard.Log().Start(), h.Half)
}

// The power fails while transactions are decided from all sides. What was acknowledged is so afterwards; nothing has two
// outcomes; what has no outcome is open and can be decided.
func TestDecisionsSurvivePowerCuts(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { powerCut(t, rand.New(rand.NewPCG(seed, 5))) })
	}
}

func openOn(t *testing.T, fs vfs.FS) *Broker {
	b, _, err := Open(Options{
		Shard:  shard.Options{FS: fs, Dir: "shard", SlowSync: time.Hour, SegmentBytes: 1 << 20, RingBytes: 1 << 20, CheckpointBytes: 20_000},
		Config: Defaults(),
	})
	require.NoError(t, err)
	return b
}

func powerCut(t *testing.T, rng *rand.Rand) {
	fs := vfs.NewCrashableMem()
	b := openOn(t, fs)
	require.NoError(t, b.PutTopic(t.Context(), entry.Topic{Name: "T", ReadQueues: 1, WriteQueues: 1, Perm: 6}, "test"))
	const halves = 60
	var all []EndRequest
	for i := range halves {
		all = append(all, halfOf(t, b, "T", strconv.Itoa(i)))
	}
	var mu sync.Mutex
	acked := map[message.Position]entry.Decision{}
	enough, cut := 1+rng.IntN(halves), make(chan struct{})
	var deciders sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for d := range 3 {
		pick := rand.New(rand.NewPCG(rng.Uint64(), uint64(d)))
		deciders.Go(func() {
			for _, i := range pick.Perm(halves) {
				r := all[i]
				r.Decision = entry.Decision(1 + pick.IntN(2))
				if b.EndTransaction(ctx, &r) != nil {
					continue
				}
				mu.Lock()
				if acked[r.Half] = r.Decision; len(acked) == enough {
					enough = -1
					close(cut)
				}
				mu.Unlock()
			}
		})
	}
	<-cut
	mu.Lock()
	before := maps.Clone(acked)
	crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
	mu.Unlock()
	deciders.Wait()
	stop()
	require.NoError(t, b.Close())

	b = openOn(t, crashed)
	defer func() { require.NoError(t, b.Close()) }()
	for i, h := range all {
		copies := b.copiesOf(t, "T", strconv.Itoa(i))
		_, open := b.txns.Get(h.Half)
		switch d, known := before[h.Half]; {
		case known:
			require.False(t, open)
			require.Equal(t, map[entry.Decision]int{entry.Commit: 1, entry.Rollback: 0}[d], copies, "half message %d was %v", i, d)
		case open:
			require.Zero(t, copies)
			require.NoError(t, b.EndTransaction(t.Context(), &h))
			require.Equal(t, 1, b.copiesOf(t, "T", strconv.Itoa(i)))
		default:
			e, ok := b.txns.Ended(h.Half)
			require.True(t, ok)
			require.Equal(t, map[entry.Decision]int{entry.Commit: 1, entry.Rollback: 0}[e.Decision], copies)
		}
	}
}

// copiesOf counts the messages of a topic with a unique key.
func (b *Broker) copiesOf(t *testing.T, topic, key string) (n int) {
	t.Helper()
	for off := range b.end(topic, 0) {
		var e [1]queue.Entry
		b.shard.RLock()
		q := b.queues.Topic([]byte(topic)).Queues[0]
		found, err := q.Read(off, e[:])
		stored := q.Stored()
		b.shard.RUnlock()
		if err != nil {
			found, err = stored.Read(off, e[:])
		}
		require.NoError(t, err)
		require.Equal(t, 1, found)
		rec, err := b.record(e[0])
		require.NoError(t, err)
		if k, _ := message.Property(rec.Properties, message.PropertyUniqueKey); string(k) == key {
			n++
		}
	}
	return n
}

// A decision that was found possible in one term is void in another.
func TestADecisionBelongsToItsTerm(t *testing.T) {
	b := benchBroker(t)
	h := halfOf(t, b, "T", "K")
	p, batch := b.coldPass(), passBatch()
	p.Begin(batch)
	p.term++ // as if the views were those of another leadership
	put, err := p.EndTransaction(&h)
	require.NoError(t, err)
	require.True(t, put)
	require.True(t, p.End())
	require.ErrorIs(t, batch.Err, shard.ErrNotLeader)
	require.Equal(t, 1, b.txns.Len())
	require.Zero(t, b.end("T", 0))
	require.NoError(t, b.EndTransaction(t.Context(), &h), "it is free again")
	batch.Reset()
	p.Begin(batch)
	p.term = 0
	_, err = p.EndTransaction(&h)
	require.Equal(t, NotLeading, AsError(err).Reason)
	require.False(t, p.End())
}

// Within a pass the second decision of a half message has to wait for the first.
func TestDecisionsOfOnePassWaitForEachOther(t *testing.T) {
	b := benchBroker(t)
	h := halfOf(t, b, "T", "K")
	again := h
	again.Decision = entry.Rollback
	p, batch := b.coldPass(), passBatch()
	p.Begin(batch)
	put, err := p.EndTransaction(&h)
	require.NoError(t, err)
	require.True(t, put)
	_, err = p.EndTransaction(&again)
	require.ErrorIs(t, err, ErrCold)
	waits := make(chan error, 1)
	go func() { waits <- b.EndTransaction(t.Context(), &again) }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.EndTransaction(ctx, &again), context.Canceled)
	require.True(t, p.End())
	require.NoError(t, batch.Err)
	require.Equal(t, IllegalOperation, AsError(<-waits).Reason)
	require.Equal(t, message.QueueOffset(1), b.end("T", 0))
	require.Empty(t, b.deciding.busy)
}
