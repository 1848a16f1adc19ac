package catalog_test

import (
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/catalog"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/internal/view/group"
	"github.com/metaqio/metaq/internal/view/topic"
)

// table is a view of rows T, with commands that change it.
type table[T any] interface {
	shard.CommandView
	shard.View
	Get(name []byte) *T
	Names() iter.Seq[string]
	Version() catalog.Version
}

// kit is what the tests need of a view.
type kit[T any] struct {
	make   func() table[T]
	put    func(name string, variant int) entry.Command
	remove func(name string) entry.Command
}

var topics = kit[topic.Topic]{
	make: func() table[topic.Topic] { return topic.New() },
	put: func(name string, variant int) entry.Command {
		return &entry.PutTopic{Topic: entry.Topic{
			Name: name, ReadQueues: int32(variant % 3), Perm: int32(variant / 3 % 8), Attributes: map[string]string{"a": fmt.Sprint(variant / 24)},
		}, Actor: "test"}
	},
	remove: func(name string) entry.Command { return &entry.DeleteTopic{Name: name} },
}

var groups = kit[group.Group]{
	make: func() table[group.Group] { return group.New() },
	put: func(name string, variant int) entry.Command {
		return &entry.PutGroup{Group: entry.Group{
			Name: name, RetryQueues: int32(variant % 3), ConsumeEnable: variant/3%2 == 0, Attributes: map[string]string{"a": fmt.Sprint(variant / 6)},
		}, Actor: "test"}
	},
	remove: func(name string) entry.Command { return &entry.DeleteGroup{Name: name} },
}

func fold[T any](t *testing.T, v table[T], time int64, c entry.Command) {
	t.Helper()
	require.NoError(t, v.FoldCommand(shard.At{Time: time}, entry.Raw{Kind: c.Kind(), Body: c.AppendBody(nil)}))
}

func openStore(t *testing.T) *kv.Store {
	t.Helper()
	s, err := kv.Open(vfs.NewMem(), "views", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func commit(t *testing.T, s *kv.Store, write func(*kv.Batch), done func()) {
	t.Helper()
	b := s.NewBatch()
	write(b)
	require.NoError(t, s.Commit(b, kv.Applied{Position: 1, Index: 1, Term: 1}))
	done()
}

func rows[T any](v table[T]) map[string]T {
	all := map[string]T{}
	for name := range v.Names() {
		all[name] = *v.Get([]byte(name))
	}
	return all
}

func (k kit[T]) load(t *testing.T, s *kv.Store) table[T] {
	t.Helper()
	v := k.make()
	require.NoError(t, v.Load(s))
	return v
}

// Random changes with checkpoints in between, loaded after each: the table is the same.
func TestTheTableIsLoadedAsItWasFolded(t *testing.T) {
	t.Run("topics", func(t *testing.T) { loadedAsFolded(t, topics) })
	t.Run("groups", func(t *testing.T) { loadedAsFolded(t, groups) })
}

func loadedAsFolded[T any](t *testing.T, k kit[T]) {
	s := openStore(t)
	v, rng := k.make(), rand.New(rand.NewPCG(3, 5))
	for round := range 30 {
		for range rng.IntN(20) {
			name := fmt.Sprint("N", rng.IntN(12))
			c := k.put(name, rng.IntN(72))
			if rng.IntN(3) == 0 {
				c = k.remove(name)
			}
			fold(t, v, int64(round), c)
		}
		write, done := v.Checkpoint()
		commit(t, s, write, done)
		loaded := k.load(t, s)
		require.Equal(t, rows(v), rows(loaded))
		require.Equal(t, v.Version(), loaded.Version())
		write, done = loaded.Checkpoint() // nothing in it is new: the store stays as it is
		commit(t, s, write, done)
		require.Equal(t, rows(v), rows(k.load(t, s)))
	}
}

// What is folded while a checkpoint is being written belongs to the next one.
func TestACheckpointHoldsWhatWasWhenItBegan(t *testing.T) {
	t.Run("topics", func(t *testing.T) { checkpointHolds(t, topics) })
	t.Run("groups", func(t *testing.T) { checkpointHolds(t, groups) })
}

func checkpointHolds[T any](t *testing.T, k kit[T]) {
	s := openStore(t)
	v := k.make()
	fold(t, v, 1, k.put("A", 1))
	was := *v.Get([]byte("A"))
	write, done := v.Checkpoint()
	fold(t, v, 2, k.put("A", 2))
	fold(t, v, 2, k.put("B", 1))
	commit(t, s, write, done)
	loaded := k.load(t, s)
	require.Equal(t, map[string]T{"A": was}, rows(loaded))
	require.Equal(t, int64(1), loaded.Version().Counter)
	write, done = v.Checkpoint()
	commit(t, s, write, done)
	require.Equal(t, rows(v), rows(k.load(t, s)))
}
