package queue

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/internal/waiters"
	"github.com/metaqio/metaq/message"
)

func openStore(t testing.TB) *kv.Store {
	t.Helper()
	s, err := kv.Open(vfs.NewMem(), "views", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// loaded is a view of what the store has, with room for so many chunks.
func loaded(t testing.TB, s *kv.Store, chunks int) *View {
	t.Helper()
	v := New(chunks * chunkBytes)
	require.NoError(t, v.Load(s))
	return v
}

func fold(t testing.TB, v *View, c entry.Command) {
	t.Helper()
	require.NoError(t, v.FoldCommand(shard.At{}, entry.Raw{Kind: c.Kind(), Body: c.AppendBody(nil)}))
}

func putTopic(name string, read, write int32) entry.Command {
	return &entry.PutTopic{Topic: entry.Topic{Name: name, ReadQueues: read, WriteQueues: write, Perm: 6}}
}

func write(t testing.TB, s *kv.Store, w func(*kv.Batch)) {
	t.Helper()
	b := s.NewBatch()
	w(b)
	require.NoError(t, s.Commit(b, kv.Applied{Position: 1, Index: 1, Term: 1}))
}

func checkpoint(t testing.TB, s *kv.Store, v *View) {
	t.Helper()
	w, done := v.Checkpoint()
	write(t, s, w)
	done()
}

// entryAt is what a test appends at an offset.
func entryAt(q *Queue, off message.QueueOffset) Entry {
	return Entry{Position: message.Position(int64(off)*1000 + int64(q.id)), Size: int32(100 + off), Tag: int64(off) * 7}
}

func appendTo(t testing.TB, q *Queue, n int) {
	t.Helper()
	for range n {
		off := q.Assign(1)
		e := entryAt(q, off)
		require.True(t, q.Append(off, e.Position, e.Size, e.Tag))
	}
}

// read reads entries from wherever they are, as the broker does.
func read(t testing.TB, q *Queue, from message.QueueOffset, dst []Entry) (n int, cold bool) {
	t.Helper()
	n, err := q.Read(from, dst)
	if errors.Is(err, ErrCold) {
		n, err = q.Stored().Read(from, dst)
		cold = true
	}
	require.NoError(t, err)
	return n, cold
}

// requireAll looks at every offset of a queue from low on, in steps of all sorts.
func requireAll(t testing.TB, q *Queue, low message.QueueOffset) {
	t.Helper()
	for _, step := range []int{1, 7, 64, 1000} {
		dst := make([]Entry, step)
		for from := low; from < q.End(); {
			n, _ := read(t, q, from, dst)
			require.Positive(t, n, "offset %d of %d", from, q.End())
			for i := range n {
				require.Equal(t, entryAt(q, from+message.QueueOffset(i)), dst[i])
			}
			from += message.QueueOffset(n)
		}
	}
	n, err := q.Read(q.End(), make([]Entry, 5))
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestQueuesAreMadeAndOnlyGrow(t *testing.T) {
	v := loaded(t, openStore(t), 10)
	require.Nil(t, v.Topic([]byte("T")))
	fold(t, v, putTopic("T", 2, 3))
	topic := v.Topic([]byte("T"))
	require.Len(t, topic.Queues, 3)
	fold(t, v, putTopic("T", 1, 1))
	require.Len(t, topic.Queues, 3)
	fold(t, v, putTopic("T", 5, 1))
	require.Same(t, topic, v.Topic([]byte("T")))
	require.Len(t, topic.Queues, 5)
	require.Equal(t, int32(4), topic.Queues[4].ID())
	require.Same(t, topic, topic.Queues[4].topic)
	for _, k := range v.Commands() {
		require.Error(t, v.FoldCommand(shard.At{}, entry.Raw{Kind: k, Body: []byte{0xff}}))
	}
}

func TestEntriesAreReadAsTheyWereAppended(t *testing.T) {
	v := loaded(t, openStore(t), 1000)
	fold(t, v, putTopic("T", 2, 2))
	for _, q := range v.Topic([]byte("T")).Queues {
		n, err := q.Read(0, make([]Entry, 5))
		require.NoError(t, err)
		require.Zero(t, n)
		appendTo(t, q, 500)
		requireAll(t, q, 0)
		n, err = q.Read(-1, make([]Entry, 5))
		require.NoError(t, err)
		require.Zero(t, n)
		n, err = q.Read(1<<62, make([]Entry, 5))
		require.NoError(t, err)
		require.Zero(t, n)
	}
}

// The sequencer: the newest assignment can be taken back, and a new term begins at what is folded.
func TestOffsetsAreAssigned(t *testing.T) {
	v := loaded(t, openStore(t), 10)
	fold(t, v, putTopic("T", 1, 1))
	q := v.Topic([]byte("T")).Queues[0]
	require.Equal(t, message.QueueOffset(0), q.Assign(1))
	require.Equal(t, message.QueueOffset(1), q.Assign(1))
	q.Rewind(1)
	q.Rewind(0)
	require.Equal(t, message.QueueOffset(0), q.Assign(1))
	require.True(t, q.Append(0, 1, 1, 0))
	require.Equal(t, message.QueueOffset(1), q.Assign(1))
	require.Equal(t, message.QueueOffset(2), q.Assign(1))
	require.Equal(t, message.QueueOffset(1), q.Assign(2), "what another leader never committed is void")
	require.False(t, q.Append(3, 1, 1, 0), "not the next one")
	require.False(t, q.Append(0, 1, 1, 0))
	require.Equal(t, message.QueueOffset(1), q.End())
}

// Entries leave the memory when the store has them, and are read from there.
func TestColdEntriesAreReadFromTheStore(t *testing.T) {
	s := openStore(t)
	v := loaded(t, s, 3)
	fold(t, v, putTopic("T", 2, 2))
	a, b := v.Topic([]byte("T")).Queues[0], v.Topic([]byte("T")).Queues[1]
	appendTo(t, a, 1000)
	require.Len(t, a.mem, 16, "what is not in the store stays, whatever the limit says")
	requireAll(t, a, 0)
	checkpoint(t, s, v)
	require.LessOrEqual(t, v.mem.used, 3)
	n, cold := read(t, a, 0, make([]Entry, 10))
	require.True(t, cold)
	require.Equal(t, 10, n)
	requireAll(t, a, 0)
	appendTo(t, b, 1000)
	appendTo(t, a, 10)
	requireAll(t, a, 0)
	requireAll(t, b, 0)
	checkpoint(t, s, v)
	requireAll(t, a, 0)
	requireAll(t, b, 0)
	require.LessOrEqual(t, v.mem.used, 3)
}

// A chunk that is being filled is in the store in part; a restart, or its leaving the memory, goes on in it.
func TestPartialChunksGoOn(t *testing.T) {
	for _, first := range []int{1, 63, 64, 65, 100, 128} {
		s := openStore(t)
		v := loaded(t, s, 2)
		fold(t, v, putTopic("T", 1, 1))
		q := v.Topic([]byte("T")).Queues[0]
		appendTo(t, q, first)
		for range 5 {
			checkpoint(t, s, v)
			v = loaded(t, s, 2)
			q = v.Topic([]byte("T")).Queues[0]
			require.Empty(t, q.mem)
			requireAll(t, q, 0)
			appendTo(t, q, 1)
			requireAll(t, q, 0)
			appendTo(t, q, 30)
			requireAll(t, q, 0)
		}
	}
}

// Many queues with little in each: most of what is being filled leaves the memory, too.
func TestManyQueuesShareLittleMemory(t *testing.T) {
	s := openStore(t)
	v := loaded(t, s, 8)
	fold(t, v, putTopic("T", 200, 200))
	queues := v.Topic([]byte("T")).Queues
	for range 12 {
		for _, q := range queues {
			appendTo(t, q, 11)
		}
		checkpoint(t, s, v)
		require.LessOrEqual(t, v.mem.used, 8)
	}
	for _, q := range queues {
		requireAll(t, q, 0)
	}
	v = loaded(t, s, 8)
	for _, q := range v.Topic([]byte("T")).Queues {
		require.Equal(t, message.QueueOffset(132), q.End())
		requireAll(t, q, 0)
	}
}

func TestADamagedIndexIsAnError(t *testing.T) {
	s := openStore(t)
	v := loaded(t, s, 2)
	fold(t, v, putTopic("T", 1, 1))
	appendTo(t, v.Topic([]byte("T")).Queues[0], 10)
	checkpoint(t, s, v)
	write(t, s, func(b *kv.Batch) { b.Set(indexKey(nil, 1, 0, 0), []byte("short")) })
	v = loaded(t, s, 2)
	q := v.Topic([]byte("T")).Queues[0]
	require.False(t, q.Append(10, 1, 1, 0))
	rec := message.AppendRecord(nil, &message.Record{Topic: []byte("T"), QueueOffset: 10})
	_, err := v.FoldRecord(shard.At{Position: 1}, rec)
	require.ErrorContains(t, err, "chunk 0 has 2 entries instead of 10")
	write(t, s, func(b *kv.Batch) { b.Set([]byte{prefix, kindNext}, []byte("short")) })
	require.ErrorContains(t, New(1).Load(s), "queue view")
}

// Deleting, and making again under the same name: the queues are new ones, in memory and in the store.
func TestADeletedTopicLeavesNothing(t *testing.T) {
	for _, between := range []bool{false, true} {
		s := openStore(t)
		v := loaded(t, s, 4)
		fold(t, v, putTopic("T", 2, 2))
		old := v.Topic([]byte("T"))
		appendTo(t, old.Queues[1], 300)
		checkpoint(t, s, v)
		appendTo(t, old.Queues[1], 300)
		fold(t, v, &entry.DeleteTopic{Name: "T"})
		fold(t, v, &entry.DeleteTopic{Name: "T"})
		require.True(t, old.Gone())
		require.Nil(t, v.Topic([]byte("T")))
		require.False(t, old.Queues[1].Append(600, 1, 1, 0), "who kept a pointer is told")
		if between {
			checkpoint(t, s, v)
			require.Nil(t, loaded(t, s, 4).Topic([]byte("T")))
		}
		fold(t, v, putTopic("T", 1, 1))
		q := v.Topic([]byte("T")).Queues[0]
		appendTo(t, q, 5)
		checkpoint(t, s, v)
		v = loaded(t, s, 4)
		require.Len(t, v.Topic([]byte("T")).Queues, 1)
		require.Equal(t, message.QueueOffset(5), v.Topic([]byte("T")).Queues[0].End())
		requireAll(t, v.Topic([]byte("T")).Queues[0], 0)
		left := 0
		require.NoError(t, s.Scan([]byte{prefix, kindIndex}, []byte{prefix, kindIndex + 1}, func(_, _ []byte) bool { left++; return true }))
		require.Equal(t, 1, left, "index chunks of the old one are gone")
	}
}

// A topic may be deleted while a checkpoint that has it is being written: its chunks are not used for others before.
func TestATopicThatIsDeletedDuringACheckpoint(t *testing.T) {
	s := openStore(t)
	v := loaded(t, s, 4)
	fold(t, v, putTopic("T", 1, 1))
	appendTo(t, v.Topic([]byte("T")).Queues[0], 640)
	w, done := v.Checkpoint()
	fold(t, v, &entry.DeleteTopic{Name: "T"})
	fold(t, v, putTopic("U", 1, 1))
	finished := make(chan error)
	go func() { // beside further folds, as the shard does
		b := s.NewBatch()
		w(b)
		finished <- s.Commit(b, kv.Applied{Position: 1, Index: 1, Term: 1})
	}()
	u := v.Topic([]byte("U")).Queues[0]
	appendTo(t, u, 640)
	require.NoError(t, <-finished)
	inStore := loaded(t, s, 4)
	requireAll(t, inStore.Topic([]byte("T")).Queues[0], 0)
	done()
	checkpoint(t, s, v)
	v = loaded(t, s, 4)
	require.Nil(t, v.Topic([]byte("T")))
	requireAll(t, v.Topic([]byte("U")).Queues[0], 0)
}

func TestWhoWaitsIsToldOnce(t *testing.T) {
	v := loaded(t, openStore(t), 4)
	fold(t, v, putTopic("T", 2, 2))
	queues := v.Topic([]byte("T")).Queues
	arrived := func() (ids []int32) {
		v.Arrived(func(q *Queue) { ids = append(ids, q.ID()) })
		return ids
	}
	appendTo(t, queues[0], 1)
	require.Empty(t, arrived(), "nobody waits")
	var w waiters.Waiter
	queues[1].Waiters.Park(&w)
	appendTo(t, queues[0], 1)
	appendTo(t, queues[1], 3)
	require.Equal(t, []int32{1}, arrived())
	require.Empty(t, arrived())
	appendTo(t, queues[1], 1)
	fold(t, v, &entry.DeleteTopic{Name: "T"})
	require.Equal(t, []int32{1}, arrived())
}

// Retention: the smallest offsets are found again, are kept, and what is before them leaves the store.
func TestRetentionTrimsQueues(t *testing.T) {
	s := openStore(t)
	v := loaded(t, s, 4)
	fold(t, v, putTopic("T", 3, 3))
	queues := v.Topic([]byte("T")).Queues
	appendTo(t, queues[0], 1000)
	appendTo(t, queues[1], 10)
	checkpoint(t, s, v)
	require.Empty(t, v.Bounds())
	trim := func(before message.Position) {
		fold(t, v, &entry.DropLog{Before: before})
		for _, b := range v.Bounds() {
			done, err := b.Trim()
			require.NoError(t, err)
			require.True(t, done)
		}
		require.Empty(t, v.Bounds())
	}
	for _, before := range []message.Position{1, 500, 63_000, 64_000, 64_001, 500_500, 999_000} {
		trim(before)
		want := message.QueueOffset((before + 999) / 1000)
		require.Equal(t, want, queues[0].Min())
		require.Equal(t, min(message.QueueOffset((before+998)/1000), 10), queues[1].Min())
		require.Zero(t, queues[2].Min())
		checkpoint(t, s, v)
		requireAll(t, queues[0], queues[0].Min())
		v = loaded(t, s, 4)
		queues = v.Topic([]byte("T")).Queues
		require.Equal(t, want, queues[0].Min(), "kept")
		require.Equal(t, before, v.start)
		requireAll(t, queues[0], queues[0].Min())
	}
	trim(5_000_000) // everything
	require.Equal(t, message.QueueOffset(1000), queues[0].Min())
	require.Equal(t, message.QueueOffset(10), queues[1].Min())
	checkpoint(t, s, v)
	v = loaded(t, s, 4)
	queues = v.Topic([]byte("T")).Queues
	require.Equal(t, message.QueueOffset(1000), queues[0].Min())
	require.Equal(t, message.QueueOffset(1000), queues[0].End(), "offsets go on")
	appendTo(t, queues[0], 1)
	require.Equal(t, message.QueueOffset(1001), queues[0].End())
	fold(t, v, &entry.DropLog{Before: 7})
	require.Equal(t, message.Position(5_000_000), v.start, "never back")
}

// What is not in the store yet cannot be trimmed exactly: it is to be tried again.
func TestTrimmingGoesOnWhenTheStoreHasMore(t *testing.T) {
	s := openStore(t)
	v := loaded(t, s, 4)
	fold(t, v, putTopic("T", 1, 1))
	q := v.Topic([]byte("T")).Queues[0]
	appendTo(t, q, 100)
	checkpoint(t, s, v)
	appendTo(t, q, 100)
	fold(t, v, &entry.DropLog{Before: 150_000})
	done, err := v.Bounds()[0].Trim()
	require.NoError(t, err)
	require.False(t, done)
	require.Equal(t, message.QueueOffset(100), q.Min())
	checkpoint(t, s, v)
	done, err = v.Bounds()[0].Trim()
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, message.QueueOffset(150), q.Min())
	requireAll(t, q, 150)
}

func TestRecordsAreFoldedByName(t *testing.T) {
	v := loaded(t, openStore(t), 4)
	fold(t, v, putTopic("T", 2, 2))
	rec := func(topic string, queue int32, off message.QueueOffset, props string) []byte {
		return message.AppendRecord(nil, &message.Record{Topic: []byte(topic), QueueID: queue, QueueOffset: off, Properties: []byte(props)})
	}
	for _, test := range []struct {
		record []byte
		counts bool
	}{
		{rec("T", 1, 0, "TAGS\x01TagA\x02"), true},
		{rec("T", 1, 0, ""), false},
		{rec("T", 1, 2, ""), false},
		{rec("T", 1, 1, ""), true},
		{rec("T", 2, 0, ""), false},
		{rec("T", -1, 0, ""), false},
		{rec("U", 0, 0, ""), false},
	} {
		counts, err := v.FoldRecord(shard.At{Position: 77}, test.record)
		require.NoError(t, err)
		require.Equal(t, test.counts, counts)
	}
	var got [2]Entry
	n, err := v.Topic([]byte("T")).Queues[1].Read(0, got[:])
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, Entry{Position: 77, Size: int32(len(rec("T", 1, 0, "TAGS\x01TagA\x02"))), Tag: 2598919}, got[0])
	require.Zero(t, got[1].Tag)
	_, err = v.FoldRecord(shard.At{}, []byte("no record"))
	require.Error(t, err)
}

func TestTagsKeepTheSignOfTheirHash(t *testing.T) {
	require.Equal(t, int64(2598919), Tag([]byte("TAGS\x01TagA\x02")))
	require.Zero(t, Tag([]byte("KEYS\x01TagA\x02")))
	require.Negative(t, Tag([]byte("TAGS\x01polygenelubricants\x02")), fmt.Sprint("Java: ", int32(-1<<31)))
}
