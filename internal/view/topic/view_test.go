package topic

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
)

func raw(c entry.Command) entry.Raw { return entry.Raw{Kind: c.Kind(), Body: c.AppendBody(nil)} }

func put(t entry.Topic) entry.Command { return &entry.PutTopic{Topic: t, Actor: "test"} }

func openStore(t *testing.T, fs vfs.FS) *kv.Store {
	t.Helper()
	s, err := kv.Open(fs, "views", slog.New(slog.DiscardHandler))
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

func TestATopicIsWhatWasPutLast(t *testing.T) {
	v := New()
	require.Nil(t, v.Get([]byte("T")))
	require.NoError(t, v.FoldCommand(shard.At{Time: 5}, raw(put(entry.Topic{Name: "T", ReadQueues: 1, WriteQueues: 2, Perm: 4}))))
	first := v.Get([]byte("T"))
	require.Equal(t, int32(2), first.WriteQueues)
	require.True(t, first.Readable())
	require.False(t, first.Writable())
	require.False(t, first.Inherits())
	require.Equal(t, Version{Counter: 1, Time: 5}, v.Version())
	require.Equal(t, int64(1), v.Changes())

	require.NoError(t, v.FoldCommand(shard.At{Time: 6}, raw(put(entry.Topic{Name: "T", ReadQueues: 1, WriteQueues: 2, Perm: 4}))))
	require.Same(t, first, v.Get([]byte("T")), "the same again is no change")
	require.Equal(t, int64(1), v.Changes())
	require.NoError(t, v.FoldCommand(shard.At{Time: 7}, raw(put(entry.Topic{Name: "T", ReadQueues: 1, WriteQueues: 2, Perm: 3}))))
	require.True(t, v.Get([]byte("T")).Inherits())
	require.Equal(t, int32(4), first.Perm, "who holds the old one keeps it as it was")

	require.NoError(t, v.FoldCommand(shard.At{Time: 8}, raw(&entry.DeleteTopic{Name: "T"})))
	require.NoError(t, v.FoldCommand(shard.At{Time: 9}, raw(&entry.DeleteTopic{Name: "T"})))
	require.Nil(t, v.Get([]byte("T")))
	require.Zero(t, v.Len())
	require.Equal(t, Version{Counter: 3, Time: 8}, v.Version())
	require.Error(t, v.FoldCommand(shard.At{}, entry.Raw{Kind: entry.KindPutTopic, Body: []byte{0xff}}))
	require.Error(t, v.FoldCommand(shard.At{}, entry.Raw{Kind: entry.KindDeleteTopic, Body: []byte{0xff}}))
}

// Random changes with checkpoints in between, loaded after each: the table is the same.
func TestTheTableIsLoadedAsItWasFolded(t *testing.T) {
	s := openStore(t, vfs.NewMem())
	v, rng := New(), rand.New(rand.NewPCG(3, 5))
	for round := range 30 {
		for range rng.IntN(20) {
			name := fmt.Sprint("T", rng.IntN(12))
			c := put(entry.Topic{Name: name, ReadQueues: int32(rng.IntN(3)), WriteQueues: 1, Perm: 6, Order: rng.IntN(2) == 0, Attributes: map[string]string{"a": fmt.Sprint(rng.IntN(3))}})
			if rng.IntN(3) == 0 {
				c = &entry.DeleteTopic{Name: name}
			}
			require.NoError(t, v.FoldCommand(shard.At{Time: int64(round)}, raw(c)))
		}
		checkpoint(t, s, v)
		loaded := New()
		require.NoError(t, loaded.Load(s))
		require.Equal(t, v.topics, loaded.topics)
		require.Equal(t, v.Version(), loaded.Version())
		require.Empty(t, loaded.dirty)
	}
}

// What is folded while a checkpoint is being written belongs to the next one.
func TestACheckpointHoldsWhatWasWhenItBegan(t *testing.T) {
	s := openStore(t, vfs.NewMem())
	v := New()
	require.NoError(t, v.FoldCommand(shard.At{Time: 1}, raw(put(entry.Topic{Name: "A", Perm: 6}))))
	write, done := v.Checkpoint()
	require.NoError(t, v.FoldCommand(shard.At{Time: 2}, raw(put(entry.Topic{Name: "A", Perm: 4}))))
	require.NoError(t, v.FoldCommand(shard.At{Time: 2}, raw(put(entry.Topic{Name: "B", Perm: 6}))))
	b := s.NewBatch()
	write(b)
	require.NoError(t, s.Commit(b, kv.Applied{Position: 1, Index: 1, Term: 1}))
	done()
	loaded := New()
	require.NoError(t, loaded.Load(s))
	require.Equal(t, int32(6), loaded.Get([]byte("A")).Perm)
	require.Nil(t, loaded.Get([]byte("B")))
	require.Equal(t, int64(1), loaded.Version().Counter)
	checkpoint(t, s, v)
	loaded = New()
	require.NoError(t, loaded.Load(s))
	require.Equal(t, v.topics, loaded.topics)
}

func TestADamagedStoreIsAnError(t *testing.T) {
	for key, value := range map[string]string{"tv": "short", "tcT": "\xff"} {
		s := openStore(t, vfs.NewMem())
		b := s.NewBatch()
		b.Set([]byte(key), []byte(value))
		require.NoError(t, s.Commit(b, kv.Applied{Position: 1, Index: 1, Term: 1}))
		require.ErrorContains(t, New().Load(s), "topic view")
	}
}
