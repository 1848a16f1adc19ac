package broker

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

// benchBroker is a broker in memory with topic T and group G.
func benchBroker(tb testing.TB) *Broker {
	tb.Helper()
	conf := Defaults()
	b, _, err := Open(Options{
		Shard:  shard.Options{FS: vfs.NewMem(), Dir: "shard", Durability: shard.Async, SlowSync: time.Hour, SegmentBytes: 64 << 20, RingBytes: 16 << 20},
		Config: conf,
	})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, b.Close()) })
	require.NoError(tb, b.PutTopic(tb.Context(), entry.Topic{Name: "T", ReadQueues: 4, WriteQueues: 4, Perm: 6}, "bench"))
	require.NoError(tb, b.PutGroup(tb.Context(), entry.DefaultGroup("G"), "bench"))
	return b
}

func benchSend() SendRequest {
	host := netip.MustParseAddrPort("10.0.0.1:5000")
	return SendRequest{
		Topic: []byte("T"), BornTime: 1700000000000, BornHost: host, StoreHost: host, MaxReconsume: -1, Body: make([]byte, 128),
		Properties: []byte("UNIQ_KEY\x01C00002020BB04E0E2F2A93FBE0940000\x02WAIT\x01true\x02TAGS\x01TagA\x02"),
	}
}

// passBatch is a batch as a door uses it again and again.
func passBatch() *shard.Batch {
	batch := &shard.Batch{}
	batch.Done = func(*shard.Batch) {}
	return batch
}

// BenchmarkSend is one message in a pass of its own: checks, encoding, one entry of the log, fold.
func BenchmarkSend(b *testing.B) { benchmarkSend(b, 1) }

// BenchmarkSend64 is a message among 64 of a pass.
func BenchmarkSend64(b *testing.B) { benchmarkSend(b, 64) }

func benchmarkSend(b *testing.B, n int) {
	br := benchBroker(b)
	p, batch, r := br.NewPass(func() {}), passBatch(), benchSend()
	sent := 0
	b.ReportAllocs()
	for b.Loop() {
		if sent%n == 0 {
			batch.Reset()
			p.Begin(batch)
		}
		r.QueueID = int32(sent & 3)
		if _, err := p.Send(&r); err != nil {
			b.Fatal(err)
		}
		if sent++; sent%n == 0 {
			p.End()
		}
	}
	if sent%n != 0 {
		p.End()
	}
}

// BenchmarkEncode is what a message costs in the pass alone: checks, look-ups, encoding.
func BenchmarkEncode(b *testing.B) {
	br := benchBroker(b)
	p, batch, r := br.NewPass(func() {}), passBatch(), benchSend()
	p.Begin(batch)
	b.ReportAllocs()
	for b.Loop() {
		if len(batch.Msgs) == 64 {
			batch.Msgs, batch.Records, batch.Keys = batch.Msgs[:0], batch.Records[:0], batch.Keys[:0]
		}
		if _, err := p.Send(&r); err != nil {
			b.Fatal(err)
		}
	}
	batch.Msgs, batch.Records, batch.Keys = batch.Msgs[:0], batch.Records[:0], batch.Keys[:0]
	p.End()
}

// BenchmarkPull32 is a pull that finds 32 messages in the log's memory, with its commit.
func BenchmarkPull32(b *testing.B) {
	br := benchBroker(b)
	p, batch, r := br.NewPass(func() {}), passBatch(), benchSend()
	p.Begin(batch)
	for range 2048 {
		_, err := p.Send(&r)
		require.NoError(b, err)
	}
	p.End()
	pull := PullRequest{Group: []byte("G"), Topic: []byte("T"), Max: 32, HasExpression: true, Expression: []byte("*"), ExpressionType: []byte("TAG")}
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset()
		p.Begin(batch)
		pull.Commit = pull.Offset
		res, err := p.Pull(&pull)
		if err != nil || res.Count != 32 {
			b.Fatal(res, err)
		}
		if out, err = p.AppendRecords(out[:0]); err != nil {
			b.Fatal(err)
		}
		pull.Offset = res.Next % 2016
		p.End()
	}
	b.SetBytes(int64(len(out)))
}

// BenchmarkPullByTag is the same with a filter that every second message passes.
func BenchmarkPullByTag(b *testing.B) {
	benchmarkFilteredPull(b, Subscription{Topic: "T", Expression: "TagA"}, 32)
}

// BenchmarkPullBySQL is the same with a condition over properties.
func BenchmarkPullBySQL(b *testing.B) {
	benchmarkFilteredPull(b, Subscription{Topic: "T", Type: "SQL92", Expression: "TAGS = 'TagA' AND n >= 0"}, 32)
}

// BenchmarkScanBySQL looks at 800 messages and finds nothing.
func BenchmarkScanBySQL(b *testing.B) {
	benchmarkFilteredPull(b, Subscription{Topic: "T", Type: "SQL92", Expression: "n < 0 OR TAGS = 'TagC'"}, 0)
}

func benchmarkFilteredPull(b *testing.B, s Subscription, want int) {
	br := benchBroker(b)
	p, batch, r := br.NewPass(func() {}), passBatch(), benchSend()
	p.Begin(batch)
	for i := range 2048 {
		r.Properties = fmt.Appendf(nil, "UNIQ_KEY\x01C00002020BB04E0E2F2A93FBE0940000\x02WAIT\x01true\x02n\x01%d\x02TAGS\x01Tag%c\x02", i, 'A'+i%2)
		_, err := p.Send(&r)
		require.NoError(b, err)
	}
	p.End()
	c := &Client{ID: "c", Peer: quiet{}}
	p.Begin(batch)
	p.Beat(c, &Heartbeat{Consumers: []*Consumer{{Group: "G", Model: Broadcasting, Subscriptions: []Subscription{s}}}})
	p.End()
	pull := PullRequest{Group: []byte("G"), Topic: []byte("T"), Max: 32, Commit: -1, Client: c, ExpressionType: []byte(s.Type)}
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset()
		p.Begin(batch)
		res, err := p.Pull(&pull)
		if err != nil || res.Count != want {
			b.Fatal(res, err)
		}
		if out, err = p.AppendRecords(out[:0]); err != nil {
			b.Fatal(err)
		}
		p.End()
	}
}

// BenchmarkTransaction is a half message and its commit, in a pass each.
func BenchmarkTransaction(b *testing.B) {
	br := benchBroker(b)
	p, batch, r := br.NewPass(func() {}), passBatch(), benchSend()
	r.Properties = append(r.Properties, "TRAN_MSG\x01true\x02PGROUP\x01P\x02"...)
	end := EndRequest{Group: "P", Decision: entry.Commit, Actor: "p at 10.0.0.1:5000"}
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset()
		p.Begin(batch)
		if _, err := p.Send(&r); err != nil {
			b.Fatal(err)
		}
		p.End()
		end.Half, end.Offset = batch.Position(0), batch.Msgs[0].Offset
		batch.Reset()
		p.Begin(batch)
		if put, err := p.EndTransaction(&end); err != nil || !put {
			b.Fatal(put, err)
		}
		p.End()
	}
}

// BenchmarkCommit is a commit in a pass of its own.
func BenchmarkCommit(b *testing.B) {
	br := benchBroker(b)
	p, batch, r := br.NewPass(func() {}), passBatch(), benchSend()
	commit := CommitRequest{Group: []byte("G"), Topic: []byte("T"), QueueID: 0}
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset()
		p.Begin(batch)
		if _, err := p.Send(&r); err != nil { // so that there is something to commit
			b.Fatal(err)
		}
		if _, err := p.Commit(&commit); err != nil {
			b.Fatal(err)
		}
		commit.Offset++
		p.End()
	}
}

// BenchmarkParkAndWake is a long poll: parked, woken by a send, answered.
func BenchmarkParkAndWake(b *testing.B) {
	br := benchBroker(b)
	p, batch, r := br.NewPass(func() {}), passBatch(), benchSend()
	pull := PullRequest{Group: []byte("G"), Topic: []byte("T"), Max: 32, Commit: -1, HasExpression: true, Suspend: time.Minute}
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset()
		p.Begin(batch)
		res, err := p.Pull(&pull)
		if err != nil || res.Status != OffsetOverflowOne && res.Status != NoMessageInQueue {
			b.Fatal(res, err)
		}
		if _, ok := p.Park(&pull, res, nil); !ok {
			b.Fatal("not parked")
		}
		if _, err := p.Send(&r); err != nil {
			b.Fatal(err)
		}
		p.End()
		batch.Reset()
		p.Begin(batch)
		p.Woken(func(_ *Waiting, res PullResult, err error) { pull.Offset = res.Next })
		p.End()
	}
	if pull.Offset == message.QueueOffset(0) {
		b.Fatal("never woken")
	}
}
