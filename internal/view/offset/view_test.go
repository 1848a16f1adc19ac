package offset

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

func fold(t testing.TB, v *View, c entry.Command) {
	t.Helper()
	require.NoError(t, v.FoldCommand(shard.At{}, entry.Raw{Kind: c.Kind(), Body: c.AppendBody(nil)}))
}

func at(queue int32, off int64) []entry.QueueAt {
	return []entry.QueueAt{{Queue: queue, Offset: message.QueueOffset(off)}}
}

func commit(group, topic string, queue int32, off int64) entry.Command {
	return &entry.CommitOffsets{Group: group, Topic: topic, Items: at(queue, off)}
}

func reset(group, topic string, queue int32, off int64, pending bool) entry.Command {
	return &entry.ResetOffsets{Group: group, Topic: topic, Items: at(queue, off), Pending: pending, Actor: "a"}
}

func openStore(t *testing.T) *kv.Store {
	t.Helper()
	s, err := kv.Open(vfs.NewMem(), "views", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func checkpoint(t *testing.T, s *kv.Store, v *View) {
	t.Helper()
	write, done := v.Checkpoint()
	b := s.NewBatch()
	write(b)
	require.NoError(t, s.Commit(b, kv.Applied{Position: 1, Index: 1, Term: 1}))
	done()
}

func load(t *testing.T, s *kv.Store) *View {
	t.Helper()
	v := New()
	require.NoError(t, v.Load(s))
	require.Empty(t, v.dirty)
	return v
}

func (v *View) of(group, topic string, queue int32) int64 {
	return int64(v.Of([]byte(group), []byte(topic)).At(queue))
}

func TestACommitNeverTakesAnOffsetBack(t *testing.T) {
	v := New()
	require.Equal(t, int64(None), v.of("G", "T", 0))
	fold(t, v, commit("G", "T", 3, 5))
	require.Equal(t, int64(5), v.of("G", "T", 3))
	require.Equal(t, int64(None), v.of("G", "T", 0), "queues before it have none")
	require.Equal(t, int64(None), v.of("G", "T", 4))
	require.Equal(t, int64(None), v.of("G", "T", -1))
	fold(t, v, commit("G", "T", 3, 4))
	require.Equal(t, int64(5), v.of("G", "T", 3))
	fold(t, v, commit("G", "T", 3, 6))
	require.Equal(t, int64(6), v.of("G", "T", 3))
	require.Equal(t, int32(4), v.Of([]byte("G"), []byte("T")).Queues())
	fold(t, v, commit("G", "T", -1, 6))
	fold(t, v, commit("G", "T", maxQueues, 6))
	require.Equal(t, int32(4), v.Of([]byte("G"), []byte("T")).Queues(), "queue numbers are bounded")
}

func TestAPendingResetVoidsCommits(t *testing.T) {
	v := New()
	fold(t, v, commit("G", "T", 0, 9))
	fold(t, v, reset("G", "T", 0, 2, false))
	require.Equal(t, int64(2), v.of("G", "T", 0))
	fold(t, v, commit("G", "T", 0, 3))
	require.Equal(t, int64(3), v.of("G", "T", 0))
	fold(t, v, reset("G", "T", 0, 1, true))
	table := v.Of([]byte("G"), []byte("T"))
	require.True(t, table.Pending(0))
	require.False(t, table.Pending(1))
	require.False(t, table.Pending(-1))
	fold(t, v, commit("G", "T", 0, 8))
	require.Equal(t, int64(1), v.of("G", "T", 0))
	fold(t, v, reset("G", "T", 0, 1, false)) // the group was told
	require.False(t, table.Pending(0))
	fold(t, v, commit("G", "T", 0, 8))
	require.Equal(t, int64(8), v.of("G", "T", 0))
}

func TestOffsetsGoWithTopicsAndGroups(t *testing.T) {
	v := New()
	for _, g := range []string{"G", "H"} {
		for _, topic := range []string{"T", "U"} {
			fold(t, v, commit(g, topic, 0, 1))
		}
	}
	require.Equal(t, []string{"G", "H"}, v.GroupsOf("T"))
	require.Equal(t, []string{"T", "U"}, v.TopicsOf("G"))
	require.Equal(t, []string{"G", "H"}, v.Groups())
	fold(t, v, &entry.DeleteTopic{Name: "T"})
	require.Empty(t, v.GroupsOf("T"))
	require.Equal(t, []string{"U"}, v.TopicsOf("G"))
	fold(t, v, &entry.DeleteGroup{Name: "G"})
	require.Equal(t, int64(1), v.of("G", "U", 0), "unless it is asked for, they stay")
	fold(t, v, &entry.DeleteGroup{Name: "G", CleanOffsets: true})
	require.Equal(t, []string{"H"}, v.Groups())
	for _, k := range v.Commands() {
		require.Error(t, v.FoldCommand(shard.At{}, entry.Raw{Kind: k, Body: []byte{0xff}}))
	}
}

// Random changes with checkpoints in between, loaded after each: the offsets are the same.
func TestOffsetsAreLoadedAsTheyWereFolded(t *testing.T) {
	s := openStore(t)
	v, rng := New(), rand.New(rand.NewPCG(3, 5))
	for range 60 {
		for range rng.IntN(25) {
			g, topic := fmt.Sprint("G", rng.IntN(4)), fmt.Sprint("T", rng.IntN(4))
			queue, off := int32(rng.IntN(4)), int64(rng.IntN(50))
			switch rng.IntN(8) {
			case 0:
				fold(t, v, &entry.DeleteTopic{Name: topic})
			case 1:
				fold(t, v, &entry.DeleteGroup{Name: g, CleanOffsets: rng.IntN(2) == 0})
			case 2:
				fold(t, v, reset(g, topic, queue, off, rng.IntN(2) == 0))
			default:
				fold(t, v, commit(g, topic, queue, off))
			}
		}
		checkpoint(t, s, v)
		require.Equal(t, v.groups, load(t, s).groups)
	}
}

// What is deleted and made again between two checkpoints, or during one, is there as it was made last.
func TestOffsetsThatAreMadeAgain(t *testing.T) {
	s := openStore(t)
	v := New()
	fold(t, v, commit("G", "T", 2, 9))
	checkpoint(t, s, v)
	fold(t, v, &entry.DeleteTopic{Name: "T"})
	fold(t, v, commit("G", "T", 0, 1))
	write, done := v.Checkpoint()
	fold(t, v, &entry.DeleteTopic{Name: "T"})
	b := s.NewBatch()
	write(b)
	require.NoError(t, s.Commit(b, kv.Applied{Position: 1, Index: 1, Term: 1}))
	done()
	require.Equal(t, int64(1), load(t, s).of("G", "T", 0))
	require.Equal(t, int64(None), load(t, s).of("G", "T", 2))
	checkpoint(t, s, v)
	require.Empty(t, load(t, s).groups)
}

func TestADamagedStoreIsAnError(t *testing.T) {
	for key, value := range map[string]string{"oGT": "", "oG\x00T": "short"} {
		s := openStore(t)
		b := s.NewBatch()
		b.Set([]byte(key), []byte(value))
		require.NoError(t, s.Commit(b, kv.Applied{Position: 1, Index: 1, Term: 1}))
		require.ErrorContains(t, New().Load(s), "offset view")
	}
}

func BenchmarkFoldCommit(b *testing.B) {
	v := New()
	c := &entry.CommitOffsets{Group: "some-group", Topic: "some-topic", Items: at(3, 0)}
	var body []byte
	b.ReportAllocs()
	for b.Loop() {
		c.Items[0].Offset++
		body = c.AppendBody(body[:0])
		if err := v.FoldCommand(shard.At{}, entry.Raw{Kind: c.Kind(), Body: body}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAt(b *testing.B) {
	v := New()
	fold(b, v, commit("some-group", "some-topic", 3, 5))
	g, topic := []byte("some-group"), []byte("some-topic")
	b.ReportAllocs()
	for b.Loop() {
		if v.Of(g, topic).At(3) != 5 {
			b.Fatal("wrong")
		}
	}
}
