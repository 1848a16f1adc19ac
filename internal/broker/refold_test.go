package broker

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/commitlog"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/internal/view/group"
	"github.com/metaqio/metaq/internal/view/key"
	"github.com/metaqio/metaq/internal/view/offset"
	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/internal/view/timer"
	"github.com/metaqio/metaq/internal/view/topic"
	"github.com/metaqio/metaq/internal/view/txn"
	"github.com/metaqio/metaq/message"
)

// A broker does all sorts of things at random. Then the log that it has written is
// folded again: in one go, and with crashes and restarts at random places of folds
// and checkpoints. Both give the keys and values that the broker itself has kept,
// which folded inline what it had at hand.
func TestALogFoldsToTheSameViewsWhateverHappens(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			fs := vfs.NewMem()
			randomWork(t, fs, rand.New(rand.NewPCG(seed, 1)))
			var frames []commitlog.Frame
			require.NoError(t, commitlog.Walk("shard/log", fs, 0, func(_ string, f commitlog.Frame) error {
				if f.Kind == commitlog.KindMessages {
					f.Payload = append([]byte(nil), f.Payload...)
					frames = append(frames, f)
				}
				return nil
			}))
			want := dump(t, fs, "shard/views", frames)
			require.NotEmpty(t, want)
			for name, rng := range map[string]*rand.Rand{"in one go": nil, "interrupted": rand.New(rand.NewPCG(seed, 2))} {
				r := &refold{fs: vfs.NewMem(), frames: frames, rng: rng}
				r.run(t)
				require.Equal(t, want, dump(t, r.fs, "views", frames), name)
			}
		})
	}
}

// randomWork has a broker do things, ends it in order, and leaves its log and views on fs.
func randomWork(t *testing.T, fs vfs.FS, rng *rand.Rand) {
	conf := Defaults()
	conf.TransactionTimeout, conf.TransactionInterval = time.Millisecond, time.Millisecond
	for i := range conf.DelayLevels {
		conf.DelayLevels[i] = time.Duration(1+i%3*20) * time.Millisecond
	}
	b, _, err := Open(Options{
		Shard: shard.Options{
			FS: fs, Dir: "shard", Durability: shard.Async, SlowSync: time.Hour, SegmentBytes: 1 << 20, RingBytes: 1 << 20, CheckpointBytes: 30_000 + rng.Int64N(100_000),
		},
		Config: conf, IndexMemory: 5000,
	})
	require.NoError(t, err)
	ctx, cancel := testContext(t)
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	p := b.NewPass(func() {})
	p.Begin(&shard.Batch{})
	p.Beat(&Client{ID: "p", Peer: quiet{}}, &Heartbeat{Producers: []string{"P0"}})
	p.End()
	x := &randomTransactions{b: b, rng: rng}
	for range 1500 {
		name := fmt.Sprint("T", rng.IntN(5))
		g := fmt.Sprint("G", rng.IntN(4))
		switch rng.IntN(40) {
		case 0:
			require.NoError(t, b.PutTopic(ctx, entry.Topic{Name: name, ReadQueues: 1 + rng.Int32N(4), WriteQueues: 1 + rng.Int32N(4), Perm: 6}, "test"))
		case 1:
			require.NoError(t, b.DeleteTopic(ctx, name, "test"))
		case 2:
			require.NoError(t, b.EnsureGroups(ctx, []string{g}))
		case 3:
			require.NoError(t, b.DeleteGroup(ctx, g, rng.IntN(2) == 0, "test"))
		case 4:
			_, _ = b.ResetGroup(ctx, &ResetRequest{Group: g, Topic: name, QueueID: -1, Offset: -1, Timestamp: -1, Actor: "test"})
		case 5:
			_ = b.SendBack(ctx, &SendBackRequest{Group: g, Position: message.Position(rng.Int64N(int64(b.shard.Applied()))), DelayLevel: rng.Int32N(4) - 1, MaxReconsume: -1})
		case 6:
			_ = b.ColdCommit(ctx, &CommitRequest{Group: []byte(g), Topic: []byte(name), QueueID: rng.Int32N(4), Offset: message.QueueOffset(rng.Int64N(300))}, "test")
		case 7:
			x.cold(t, ctx)
		default:
			randomPass(p, rng, name, g, x)
		}
	}
	require.NotZero(t, b.Stats.Ended[entry.Commit].Load()*b.Stats.Ended[entry.Resume].Load(), "some transactions of each kind")
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, b.Close())
}

// randomPass sends, pulls and commits in one pass.
func randomPass(p *Pass, rng *rand.Rand, name, g string, x *randomTransactions) {
	var halves []Sent
	done := make(chan struct{})
	batch := &shard.Batch{Done: func(*shard.Batch) { close(done) }} // with Run, somebody else may hold the tail
	p.Begin(batch)
	for range rng.IntN(4) {
		r := benchSend()
		r.Topic, r.QueueID, r.Body = []byte(name), rng.Int32N(5)-1, make([]byte, rng.IntN(300))
		switch rng.IntN(8) {
		case 0:
			r.Properties = message.AppendProperty(r.Properties, message.PropertyDelayLevel, fmt.Sprint(1+rng.IntN(18)))
		case 1:
			r.Properties = message.AppendProperty(r.Properties, message.PropertyTimerDelayMs, fmt.Sprint(rng.IntN(5000)))
		case 2:
			r.Topic = []byte(message.TopicTimer) // refused
		case 3:
			r.Properties = message.AppendProperty(r.Properties, message.PropertyTimerOutMs, "1")
		case 4:
			r.Batch, r.Body = true, nil
			for range rng.IntN(5) {
				r.Body = message.AppendBatchMember(r.Body, 0, make([]byte, rng.IntN(50)), []byte("TAGS\x01a\x02TAGS\x01b"))
			}
		case 5, 6:
			r.Properties = message.AppendProperty(message.AppendProperty(r.Properties, message.PropertyHalf, "true"), message.PropertyProducerGroup, fmt.Sprint("P", rng.IntN(2)))
			if sent, err := p.Send(&r); err == nil {
				halves = append(halves, sent)
			}
			continue
		}
		_, _ = p.Send(&r)
	}
	for range rng.IntN(3) {
		if r, ok := x.any(); ok {
			_, _ = p.EndTransaction(&r)
		}
	}
	pull := PullRequest{Group: []byte(g), Topic: []byte(name), QueueID: rng.Int32N(4), Offset: message.QueueOffset(rng.Int64N(100)), Max: 32, Commit: message.QueueOffset(rng.Int64N(100)), HasExpression: true}
	_, _ = p.Pull(&pull)
	_, _ = p.Commit(&CommitRequest{Group: []byte(g), Topic: []byte(name), QueueID: rng.Int32N(4), Offset: message.QueueOffset(rng.Int64N(200))})
	if p.End() {
		<-done
	}
	for _, h := range halves {
		x.sent = append(x.sent, EndRequest{Half: batch.Position(h.First), Offset: batch.Msgs[h.First].Offset})
	}
}

// randomTransactions are half messages that were sent.
type randomTransactions struct {
	b    *Broker
	rng  *rand.Rand
	sent []EndRequest
}

// any is some decision of some half message, which may be decided already.
func (x *randomTransactions) any() (EndRequest, bool) {
	if len(x.sent) == 0 {
		return EndRequest{}, false
	}
	r := x.sent[max(0, len(x.sent)-1-x.rng.IntN(20))]
	r.Decision, r.Group, r.Answer = entry.Decision(1+x.rng.IntN(2)), fmt.Sprint("P", x.rng.IntN(2)), x.rng.IntN(2) == 0
	return r, true
}

// cold decides one, gives up one, and resumes one that was given up.
func (x *randomTransactions) cold(t *testing.T, ctx context.Context) {
	b := x.b
	if r, ok := x.any(); ok {
		_ = b.EndTransaction(ctx, &r)
	}
	b.shard.RLock()
	o, ok := b.txns.Oldest()
	q := b.queues.Topic([]byte(message.TopicTransactionStale)).Queues[0]
	var e [1]queue.Entry
	n, err := q.Read(max(0, q.End()-1), e[:])
	b.shard.RUnlock()
	if ok {
		rec, err := b.record(queue.Entry{Position: o.Position, Size: o.Size})
		require.NoError(t, err)
		require.NoError(t, b.giveUp(ctx, &o, &rec, "test"))
	}
	if err == nil && n == 1 {
		_ = b.ResumeTransaction(ctx, e[0].Position, "test")
	}
}

// dump is all keys and values of a closed store, but for its own.
// The key index keeps the same in runs that depend on when checkpoints were made: of
// it, what it finds for every key in the log.
func dump(t *testing.T, fs vfs.FS, dir string, frames []commitlog.Frame) (out []string) {
	t.Helper()
	s, err := kv.Open(fs, dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, s.Scan([]byte{1}, []byte{0xff}, func(k, v []byte) bool {
		if k[0] != 'k' {
			out = append(out, fmt.Sprintf("%q=%x", k, v))
		}
		return true
	}))
	keys := key.New(slog.New(slog.DiscardHandler))
	require.NoError(t, keys.Load(s))
	search, asked := keys.Search(), map[string]bool{}
	for _, f := range frames {
		eachRecord(f, func(_ shard.At, record []byte) {
			var r message.Record
			_, err := r.Parse(record)
			require.NoError(t, err)
			unique, _ := message.Property(r.Properties, message.PropertyUniqueKey)
			name := fmt.Sprintf("%s %s=", r.Topic, unique)
			if asked[name] {
				return
			}
			asked[name] = true
			require.NoError(t, search.Each(key.Topic(r.Topic).Of(unique), 0, math.MaxInt64, func(pos message.Position) bool {
				out = append(out, name+fmt.Sprint(pos))
				return true
			}))
		})
	}
	require.NoError(t, search.Close())
	require.NoError(t, keys.Close())
	require.NoError(t, s.Close())
	return out
}

// refold folds frames as a shard does after a restart.
type refold struct {
	fs     *vfs.MemFS
	frames []commitlog.Frame
	rng    *rand.Rand // nil: nothing happens

	store  *kv.Store
	queues *queue.View
	views  []shard.View
	at     int // frames that are folded
}

func (r *refold) open(t *testing.T) {
	t.Helper()
	var err error
	r.store, err = kv.Open(r.fs, "views", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	r.queues = queue.New(5000)
	r.views = []shard.View{r.queues, topic.New(), group.New(), offset.New(), timer.New(), txn.New(), key.New(slog.New(slog.DiscardHandler))}
	for _, v := range r.views {
		require.NoError(t, v.Load(r.store))
	}
	r.at = int(r.store.Applied().Index) // the number of frames, here
}

// crash forgets everything that is not in the store.
func (r *refold) crash(t *testing.T) {
	t.Helper()
	require.NoError(t, r.store.Close())
	r.open(t)
}

func (r *refold) run(t *testing.T) {
	r.open(t)
	for r.at < len(r.frames) {
		r.fold(t)
		if r.rng == nil {
			continue
		}
		switch r.rng.IntN(60) {
		case 0:
			r.crash(t)
		case 1, 2, 3:
			r.checkpoint(t, r.rng.IntN(20), r.rng.IntN(4) == 0)
		}
	}
	r.checkpoint(t, 0, false)
	require.NoError(t, r.store.Close())
}

// checkpoint takes one, folds on while it is written, and may crash before it is.
func (r *refold) checkpoint(t *testing.T, meanwhile int, crash bool) {
	t.Helper()
	at := r.at
	var writes []func(*kv.Batch)
	var done []func()
	for _, v := range r.views {
		w, d := v.Checkpoint()
		writes, done = append(writes, w), append(done, d)
	}
	for range min(meanwhile, len(r.frames)-r.at) {
		r.fold(t)
	}
	if crash {
		r.crash(t)
		return
	}
	b := r.store.NewBatch()
	for _, w := range writes {
		w(b)
	}
	require.NoError(t, r.store.Commit(b, kv.Applied{Position: message.Position(at), Index: uint64(at), Term: 1}))
	require.NoError(t, r.store.Flush())
	for _, d := range done {
		d()
	}
}

func (r *refold) fold(t *testing.T) {
	t.Helper()
	f := r.frames[r.at]
	r.at++
	rest := eachRecord(f, func(at shard.At, record []byte) {
		counts, err := r.queues.FoldRecord(at, record)
		require.NoError(t, err)
		for _, v := range r.views[1:] {
			if w, ok := v.(shard.RecordView); ok && counts {
				_, err := w.FoldRecord(at, record)
				require.NoError(t, err)
			}
		}
	})
	at := shard.At{Index: f.Index, Time: f.Time, Position: f.Position}
	commands := entry.NewReader(rest)
	for c, ok := commands.Next(); ok; c, ok = commands.Next() {
		for _, v := range r.views {
			if w, ok := v.(shard.CommandView); ok && wants(w, c.Kind) {
				require.NoError(t, w.FoldCommand(at, c))
			}
		}
	}
	require.NoError(t, commands.Err())
}

// eachRecord calls f for the records of a frame and returns its commands.
func eachRecord(frame commitlog.Frame, f func(at shard.At, record []byte)) (commands []byte) {
	rest := frame.Payload
	at := shard.At{Index: frame.Index, Time: frame.Time}
	for range frame.Count {
		n := binary.BigEndian.Uint32(rest)
		at.Position = frame.Position + message.Position(commitlog.HeaderSize+len(frame.Payload)-len(rest))
		f(at, rest[:n])
		rest = rest[n:]
	}
	return rest
}

func wants(v shard.CommandView, kind entry.Kind) bool {
	return slices.Contains(v.Commands(), kind)
}
