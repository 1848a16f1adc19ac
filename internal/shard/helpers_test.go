package shard_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/commitlog"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/raftlog"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/internal/view/group"
	"github.com/metaqio/metaq/internal/view/offset"
	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/internal/view/timer"
	"github.com/metaqio/metaq/internal/view/topic"
	"github.com/metaqio/metaq/internal/view/txn"
	"github.com/metaqio/metaq/message"
)

// replica is a shard with all its views.
type replica struct {
	*shard.Shard
	rec     commitlog.Recovery
	queues  *queue.View
	topics  *topic.View
	groups  *group.View
	offsets *offset.View
	timers  *timer.View
	txns    *txn.View
	failed  error
}

type setup struct {
	fs         vfs.FS
	id         uint64
	voters     []uint64
	durability shard.Durability
	segment    int64
	checkpoint int64
	send       func(raftlog.Message)
	now        func() int64
}

var logTo io.Writer = io.Discard

func (s setup) open() (*replica, error) {
	r := &replica{queues: queue.New(1 << 20), topics: topic.New(), groups: group.New(), offsets: offset.New(), timers: timer.New(), txns: txn.New()}
	if s.segment == 0 {
		s.segment = 1 << 20
	}
	if s.now == nil {
		s.now = func() int64 { return 1_700_000_000_000 }
	}
	o := shard.Options{
		FS: s.fs, Dir: "shard", ID: s.id, Voters: s.voters, Durability: s.durability, SegmentBytes: s.segment, RingBytes: 1 << 20,
		CheckpointBytes: s.checkpoint, Queues: r.queues, Views: []shard.View{r.topics, r.groups, r.offsets, r.timers, r.txns},
		Manual: true, SlowSync: time.Hour, // a batch is done when Submit returns, however slow the machine is
		Send: s.send, Now: s.now, Log: slog.New(slog.NewTextHandler(logTo, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Failed: func(err error) { r.failed = err },
	}
	var err error
	r.Shard, r.rec, err = shard.Open(o)
	return r, err
}

func mustOpen(t *testing.T, s setup) *replica {
	t.Helper()
	r, err := s.open()
	require.NoError(t, err)
	return r
}

// submit gives a batch to the shard and returns it; with one voter it is done at once.
func (r *replica) submit(b *shard.Batch) *shard.Batch {
	if b.Done == nil {
		b.Done = func(*shard.Batch) {}
	}
	r.Submit(b)
	return b
}

func (r *replica) command(t *testing.T, c entry.Command) {
	t.Helper()
	b := &shard.Batch{}
	b.Command(c)
	require.NoError(t, r.submit(b).Err)
}

func putTopic(name string, queues int32) *entry.PutTopic {
	return &entry.PutTopic{Topic: entry.Topic{Name: name, ReadQueues: queues, WriteQueues: queues, Perm: 6}}
}

// add puts a message into a batch as a door does.
func (r *replica) add(b *shard.Batch, topicName string, queueID int32, body string) bool {
	r.RLock()
	defer r.RUnlock()
	t := r.queues.Topic([]byte(topicName))
	if t == nil || int(queueID) >= len(t.Queues) {
		return false
	}
	start := len(b.Records)
	props := []byte("TAGS\x01" + body[:1] + "\x02")
	b.Records = message.AppendRecord(b.Records, &message.Record{
		Topic: []byte(topicName), Body: []byte(body), Properties: props, QueueID: queueID, BornTime: 1,
		BornHost: netip.MustParseAddrPort("10.0.0.1:1"), StoreHost: netip.MustParseAddrPort("10.0.0.2:2"),
	})
	b.Msgs = append(b.Msgs, shard.Msg{
		Target: t.Queues[queueID], Start: int32(start), Size: int32(len(b.Records) - start), Tag: queue.Tag(props),
		TimeAt: int32(message.StoreTimeAt(b.Records[start:])),
	})
	return true
}

// bodies reads a whole queue.
func (r *replica) bodies(topicName string, queueID int32) (out []string, err error) {
	r.RLock()
	defer r.RUnlock()
	t := r.queues.Topic([]byte(topicName))
	if t == nil {
		return nil, nil
	}
	q := t.Queues[queueID]
	var e [1]queue.Entry
	for off := message.QueueOffset(0); off < q.End(); off++ {
		n, err := q.Read(off, e[:])
		if errors.Is(err, queue.ErrCold) {
			n, err = q.Stored().Read(off, e[:])
		}
		if err != nil || n != 1 {
			return nil, fmt.Errorf("read index %d: %d %w", off, n, err)
		}
		raw, err := r.Log().Read(nil, e[0].Position, int(e[0].Size))
		if err != nil {
			return nil, err
		}
		var rec message.Record
		if _, err := rec.Parse(raw); err != nil {
			return nil, err
		}
		if rec.QueueOffset != off || rec.Position != e[0].Position || rec.QueueID != queueID || rec.CheckBody() != nil || !bytes.Equal(rec.Topic, []byte(topicName)) {
			return nil, fmt.Errorf("record at %d says offset %d position %d queue %d, want %d %d %d", e[0].Position, rec.QueueOffset, rec.Position, rec.QueueID, off, e[0].Position, queueID)
		}
		out = append(out, string(rec.Body))
	}
	return out, nil
}
