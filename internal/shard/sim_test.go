package shard_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/internal/raftlog"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"

	"log/slog"
)

// seeds is how many random histories a run of the tests looks at; METAQ_SEEDS says another number.
func seeds(t *testing.T, usual int) (first, n uint64) {
	if text := os.Getenv("METAQ_SEEDS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return 1, uint64(n)
	}
	return 1, uint64(usual)
}

// TestThreeReplicasAgree runs three replicas of a shard in one process, over a
// network that loses, delays and reorders messages and is cut in parts, and disks
// that forget what was not synced, with crashes and changes of leadership, all from
// a seed. Afterwards every acknowledged message is there, once, at its offset; the
// logs are equal byte for byte up to the commit; the views are equal.
func TestThreeReplicasAgree(t *testing.T) {
	first, n := seeds(t, 25)
	for seed := first; seed < first+n; seed++ {
		w := newWorld(seed)
		if seed%5 == 0 {
			w.steps = longSteps
		}
		if err := w.run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestAcknowledgingBeforeTheCommitIsCaught breaks the rule on purpose: a batch
// counts as acknowledged as soon as the leader has taken it. Some history must show
// that such messages get lost, or the simulation could not find anything.
func TestAcknowledgingBeforeTheCommitIsCaught(t *testing.T) {
	for seed := uint64(1); seed <= 200; seed++ {
		w := newWorld(seed)
		w.ackEarly = true
		if err := w.run(); err != nil {
			t.Logf("seed %d: %v", seed, err)
			return
		}
	}
	t.Fatal("200 seeds without a lost message")
}

const (
	simQueues = 3
	simSteps  = 1500
	longSteps = 6000 // enough to get to further segments
)

// world is three replicas, their disks and the network between them.
type world struct {
	rng      *rand.Rand
	seed     uint64
	nodes    map[uint64]*node
	flying   []raftlog.Message
	cut      uint64 // node that is cut off from the others, or 0
	clock    int64
	sent     int
	acked    map[string]place
	ackEarly bool
	steps    int
	segment  int64
	txns     *simTransactions // nil: none
}

type node struct {
	id   uint64
	fs   *vfs.MemFS
	r    *replica // nil while crashed
	down int      // steps until it is started again
}

type place struct {
	queue  int32
	offset message.QueueOffset
	pos    message.Position
}

func newWorld(seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 7)), seed: seed, nodes: map[uint64]*node{}, acked: map[string]place{}, steps: simSteps, segment: 64 << 10, clock: 1_700_000_000_000}
	for id := uint64(1); id <= 3; id++ {
		w.nodes[id] = &node{id: id, fs: vfs.NewCrashableMem()}
	}
	return w
}

func (w *world) run() error {
	for id := range uint64(3) {
		if err := w.start(w.nodes[id+1]); err != nil {
			return err
		}
	}
	for range w.steps {
		if err := w.step(); err != nil {
			return err
		}
	}
	return w.settle()
}

func (w *world) start(n *node) error {
	r, err := setup{
		fs: n.fs, id: n.id, voters: []uint64{1, 2, 3}, segment: w.segment, checkpoint: 40 << 10,
		send: func(m raftlog.Message) { w.flying = append(w.flying, m) },
		now:  func() int64 { return w.clock },
	}.open()
	if err != nil {
		return fmt.Errorf("start node %d: %w", n.id, err)
	}
	n.r = r
	w.txns.forget(n)
	return nil
}

// crash ends a node; of what it had not synced, the disk keeps a random part.
func (w *world) crash(n *node) error {
	clone := n.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[w.rng.IntN(3)], RNG: w.rng})
	r := n.r
	n.r, n.fs, n.down = nil, clone, 20+w.rng.IntN(100)
	return r.Close()
}

func (w *world) step() error {
	w.clock += int64(w.rng.IntN(5))
	n := w.nodes[1+w.rng.Uint64N(3)]
	w.txns.step(n)
	switch x := w.rng.IntN(1000); {
	case n.r == nil:
		if n.down--; n.down <= 0 {
			return w.start(n)
		}
		return w.deliver()
	case n.r.failed != nil:
		return fmt.Errorf("node %d failed: %w", n.id, n.r.failed)
	case x < 6:
		return w.crash(n)
	case x < 16:
		n.r.Campaign()
	case x < 20:
		w.cut = w.rng.Uint64N(4)
	case x < 120:
		n.r.Tick()
	case x < 400:
		w.propose(n)
	default:
		for range 3 {
			if err := w.deliver(); err != nil {
				return err
			}
		}
	}
	return nil
}

// deliver takes a random message of those that are on their way.
func (w *world) deliver() error {
	if len(w.flying) == 0 {
		return nil
	}
	i := w.rng.IntN(min(len(w.flying), 4)) // a little out of order
	m := w.flying[i]
	w.flying = slices.Delete(w.flying, i, i+1)
	to := w.nodes[m.To()]
	if w.rng.IntN(100) < 3 || to.r == nil || w.cut != 0 && (m.To() == w.cut || m.From() == w.cut) {
		return nil
	}
	to.r.Receive(m)
	if to.r.failed != nil {
		return fmt.Errorf("node %d failed: %w", to.id, to.r.failed)
	}
	return nil
}

// propose sends a batch to a node that believes it leads.
func (w *world) propose(n *node) {
	if !n.r.Leading() {
		return
	}
	b := &shard.Batch{}
	if n.r.queues.Topic([]byte("T")) == nil {
		b.Command(putTopic("T", simQueues))
	}
	var bodies []string
	for range w.rng.IntN(4) {
		q := int32(w.rng.IntN(simQueues))
		w.sent++
		body := fmt.Sprintf("%c%d %s", 'a'+w.sent%5, w.sent, string(make([]byte, w.rng.IntN(300))))
		if n.r.add(b, "T", q, body) {
			bodies = append(bodies, body)
		}
	}
	if w.rng.IntN(3) == 0 {
		b.Command(&entry.CommitOffsets{Group: "G", Topic: "T", Items: []entry.QueueAt{{Queue: int32(w.rng.IntN(simQueues)), Offset: message.QueueOffset(w.sent)}}})
	}
	if b.Empty() {
		return
	}
	ack := func(b *shard.Batch) {
		for i, body := range bodies {
			if !b.Msgs[i].Gone {
				w.acked[body] = place{queue: queueOf(b, i), offset: b.Msgs[i].Offset, pos: b.Position(i)}
			}
		}
	}
	b.Done = func(b *shard.Batch) {
		if b.Err == nil {
			ack(b)
		}
	}
	n.r.Submit(b)
	if w.ackEarly && b.Err == nil {
		ack(b)
	}
}

func queueOf(b *shard.Batch, i int) int32 {
	var r message.Record
	if _, err := r.Parse(b.Records[b.Msgs[i].Start:]); err != nil {
		panic(err)
	}
	return r.QueueID
}

// settle heals everything, waits until all replicas have applied the same, and checks.
func (w *world) settle() error {
	w.cut = 0
	for _, id := range slices.Sorted(maps.Keys(w.nodes)) {
		if n := w.nodes[id]; n.r == nil {
			if err := w.start(n); err != nil {
				return err
			}
		}
	}
	for round := range 2000 {
		if round%100 == 0 {
			w.nodes[1+uint64(round/100)%3].r.Campaign()
		}
		for len(w.flying) > 0 {
			m := w.flying[0]
			w.flying = w.flying[1:]
			w.nodes[m.To()].r.Receive(m)
		}
		if w.settled() {
			return w.check()
		}
		for _, id := range slices.Sorted(maps.Keys(w.nodes)) {
			w.nodes[id].r.Tick()
		}
	}
	return fmt.Errorf("replicas do not settle: %d %d %d", w.nodes[1].r.Applied(), w.nodes[2].r.Applied(), w.nodes[3].r.Applied())
}

func (w *world) settled() bool {
	leaders := 0
	for _, n := range w.nodes {
		if n.r.Applied() != w.nodes[1].r.Applied() || n.r.Applied() != n.r.Log().Tail() {
			return false
		}
		if n.r.Leading() {
			leaders++
		}
	}
	return leaders == 1
}

func (w *world) check() error {
	var logs, views [][]byte
	for id := range uint64(3) {
		n := w.nodes[id+1]
		if err := w.checkAcked(n); err != nil {
			return fmt.Errorf("node %d: %w", n.id, err)
		}
		if err := w.txns.check(n); err != nil {
			return fmt.Errorf("node %d: %w", n.id, err)
		}
		raw, err := n.r.Log().Read(nil, n.r.Log().Start(), int(n.r.Applied()-n.r.Log().Start()))
		if err != nil {
			return fmt.Errorf("node %d: read log: %w", n.id, err)
		}
		logs = append(logs, raw)
		if err := n.r.Close(); err != nil {
			return fmt.Errorf("close node %d: %w", n.id, err)
		}
		dump, err := dumpViews(n.fs)
		if err != nil {
			return fmt.Errorf("node %d: %w", n.id, err)
		}
		views = append(views, dump)
	}
	for i := range logs {
		if !slices.Equal(logs[i], logs[0]) {
			return fmt.Errorf("the log of node %d (%d bytes) differs from that of node 1 (%d bytes) at %d", i+1, len(logs[i]), len(logs[0]), difference(logs[i], logs[0]))
		}
		if !slices.Equal(views[i], views[0]) {
			return fmt.Errorf("the views of node %d differ from those of node 1", i+1)
		}
	}
	return nil
}

func difference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// checkAcked looks for every acknowledged message at its place.
func (w *world) checkAcked(n *node) error {
	var found [simQueues][]string
	for q := range int32(simQueues) {
		var err error
		if found[q], err = n.r.bodies("T", q); err != nil {
			return err
		}
	}
	for body, p := range w.acked {
		if int(p.offset) >= len(found[p.queue]) || found[p.queue][p.offset] != body {
			at := slices.Index(found[p.queue], body)
			return fmt.Errorf("acknowledged message %.8q (at %d) is not at offset %d of queue %d, which has %d messages: it is at %d; dropped %d", body, p.pos, p.offset, p.queue, len(found[p.queue]), at, n.r.Stats.Dropped.Load())
		}
	}
	return nil
}

// dumpViews reads all keys and values of a closed replica's views.
func dumpViews(fs vfs.FS) (dump []byte, err error) {
	s, err := kv.Open(fs, "shard/views", slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	err = s.Scan([]byte{0}, []byte{0xff}, func(k, v []byte) bool {
		dump = fmt.Appendf(dump, "%q=%x\n", k, v)
		return true
	})
	if e := s.Close(); err == nil {
		err = e
	}
	return dump, err
}
