package shard_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

// TestThreeReplicasDecideOnce has three replicas whose clients commit and roll back the same half messages again and
// again, at whichever node leads, with anything happening between the look at the views and the batch. Afterwards no half
// message has two copies, those whose commit was acknowledged have one, and those whose rollback was have none.
func TestThreeReplicasDecideOnce(t *testing.T) {
	first, n := seeds(t, 25)
	decided := 0
	for seed := first; seed < first+n; seed++ {
		w := newWorld(seed)
		w.txns = newSimTransactions(w)
		if err := w.run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		decided += len(w.txns.acked)
	}
	if decided < int(n) {
		t.Fatalf("only %d decisions in %d histories", decided, n)
	}
}

// TestDecidingByOldViewsIsCaught breaks the rule on purpose: a decision that was found possible is submitted whoever led
// meanwhile. Some history must show two outcomes, or the simulation could not find anything.
func TestDecidingByOldViewsIsCaught(t *testing.T) {
	for seed := uint64(1); seed <= 400; seed++ {
		w := newWorld(seed)
		w.txns = newSimTransactions(w)
		w.txns.anyTerm = true
		if err := w.run(); err != nil {
			require.ErrorIs(t, err, errOutcomes, "seed %d", seed)
			t.Logf("seed %d: %v", seed, err)
			return
		}
	}
	t.Fatal("400 seeds without a half message that has two outcomes")
}

var errOutcomes = errors.New("a half message has another outcome than its producer was told, or several")

// simTransactions are the clients of transactions in a world.
type simTransactions struct {
	w       *world
	anyTerm bool
	halves  []message.Position
	pending map[uint64][]*simDecision // by node: found possible, not submitted yet
	busy    map[uint64]map[message.Position]bool
	acked   map[message.Position]entry.Decision
}

// simDecision is a decision that the views of a node allowed when it was asked.
type simDecision struct {
	half message.Position
	term uint64
	what entry.Decision
	busy map[message.Position]bool
}

func newSimTransactions(w *world) *simTransactions {
	w.steps, w.segment = 4*simSteps, 1<<20 // leadership has to go and come back
	x := &simTransactions{w: w, pending: map[uint64][]*simDecision{}, busy: map[uint64]map[message.Position]bool{}, acked: map[message.Position]entry.Decision{}}
	for id := range w.nodes {
		x.forget(w.nodes[id])
	}
	return x
}

// forget is what a crash does to those who are about to decide.
func (x *simTransactions) forget(n *node) {
	if x != nil {
		x.pending[n.id], x.busy[n.id] = nil, map[message.Position]bool{}
	}
}

// step sends a half message, looks whether one may be decided, or submits a decision that was found possible.
func (x *simTransactions) step(n *node) {
	if x == nil || n.r == nil || n.r.failed != nil {
		return
	}
	switch r := x.w.rng.IntN(100); {
	case r < 2:
		x.sendHalf(n)
	case r < 30:
		x.look(n)
	case r < 36:
		x.submit(n)
	case r < 38: // leaders change more often than elsewhere
		if other := x.w.nodes[1+x.w.rng.Uint64N(3)]; other.r != nil {
			other.r.Campaign()
		}
	}
}

func (x *simTransactions) sendHalf(n *node) {
	b := &shard.Batch{}
	if n.r.queues.Topic([]byte(message.TopicHalf)) == nil {
		b.Command(putTopic(message.TopicHalf, 1))
	} else if !n.r.addRecord(b, 0, &message.Record{Topic: []byte(message.TopicHalf), Body: []byte("half"), Properties: []byte("PGROUP\x01P\x02")}) {
		return
	}
	b.Done = func(b *shard.Batch) {
		if b.Err == nil && len(b.Msgs) > 0 {
			x.halves = append(x.halves, b.Position(0))
		}
	}
	n.r.Submit(b)
}

// look asks the views of a node, as a broker does: the term first.
func (x *simTransactions) look(n *node) {
	if len(x.halves) == 0 {
		return
	}
	half := x.halves[max(0, len(x.halves)-1-x.w.rng.IntN(2))]
	term := n.r.LeadingTerm()
	if term == 0 || x.busy[n.id][half] {
		return
	}
	if _, open := n.r.txns.Get(half); !open {
		return
	}
	d := &simDecision{half: half, term: term, what: entry.Decision(1 + x.w.rng.IntN(2)), busy: x.busy[n.id]}
	d.busy[half] = true
	x.pending[n.id] = append(x.pending[n.id], d)
}

func (x *simTransactions) submit(n *node) {
	list := x.pending[n.id]
	if len(list) == 0 {
		return
	}
	i := x.w.rng.IntN(len(list)) // some wait for long, as for a disk
	d := list[i]
	x.pending[n.id] = slices.Delete(list, i, i+1)
	b := &shard.Batch{Term: d.term}
	if x.anyTerm {
		b.Term = 0
	}
	if d.what == entry.Commit {
		body := fmt.Sprintf("x%d", d.half)
		if !n.r.addRecord(b, 0, &message.Record{Topic: []byte("T"), Body: []byte(body), PreparedOffset: int64(d.half)}) {
			delete(d.busy, d.half)
			return
		}
	}
	b.Command(&entry.EndTransaction{Half: d.half, Decision: d.what})
	b.Done = func(b *shard.Batch) {
		delete(d.busy, d.half)
		if b.Err == nil {
			x.acked[d.half] = d.what
		}
	}
	n.r.Submit(b)
}

// check counts the copies of each half message.
func (x *simTransactions) check(n *node) error {
	if x == nil {
		return nil
	}
	bodies, err := n.r.bodies("T", 0)
	if err != nil {
		return err
	}
	copies := map[message.Position]int{}
	for _, b := range bodies {
		if text, ok := strings.CutPrefix(b, "x"); ok {
			var half message.Position
			if _, err := fmt.Sscan(text, &half); err != nil {
				return err
			}
			copies[half]++
		}
	}
	for half, n := range copies {
		if n > 1 || x.acked[half] == entry.Rollback {
			return fmt.Errorf("%w: that at %d has %d copies, acknowledged: %v", errOutcomes, half, n, x.acked[half])
		}
	}
	for half, what := range x.acked {
		if what == entry.Commit && copies[half] == 0 {
			return fmt.Errorf("%w: that at %d was committed and has no copy", errOutcomes, half)
		}
	}
	return nil
}

// addRecord puts a record into a batch that all views want.
func (r *replica) addRecord(b *shard.Batch, queueID int32, rec *message.Record) bool {
	r.RLock()
	defer r.RUnlock()
	t := r.queues.Topic(rec.Topic)
	if t == nil || int(queueID) >= len(t.Queues) {
		return false
	}
	rec.QueueID, rec.BornHost, rec.StoreHost = queueID, netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:2")
	start := len(b.Records)
	b.Records = message.AppendRecord(b.Records, rec)
	b.Msgs = append(b.Msgs, shard.Msg{
		Target: t.Queues[queueID], Start: int32(start), Size: int32(len(b.Records) - start), TimeAt: int32(message.StoreTimeAt(b.Records[start:])), Watched: true,
	})
	return true
}
