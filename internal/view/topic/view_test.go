package topic

import (
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/catalog"
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

func TestATopicIsWhatWasPutLast(t *testing.T) {
	v := New()
	require.Nil(t, v.Get([]byte("T")))
	require.NoError(t, v.FoldCommand(shard.At{Time: 5}, raw(put(entry.Topic{Name: "T", ReadQueues: 1, WriteQueues: 2, Perm: 4}))))
	first := v.Get([]byte("T"))
	require.Equal(t, int32(2), first.WriteQueues)
	require.True(t, first.Readable())
	require.Equal(t, catalog.Version{Counter: 1, Time: 5}, v.Version())
	require.Equal(t, int64(1), v.Changes())

	require.NoError(t, v.FoldCommand(shard.At{Time: 6}, raw(put(entry.Topic{Name: "T", ReadQueues: 1, WriteQueues: 2, Perm: 4}))))
	require.Same(t, first, v.Get([]byte("T")), "the same again is no change")
	require.Equal(t, int64(1), v.Changes())
	require.NoError(t, v.FoldCommand(shard.At{Time: 7}, raw(put(entry.Topic{Name: "T", ReadQueues: 1, WriteQueues: 2, Perm: 3}))))
	require.False(t, v.Get([]byte("T")).Readable())
	require.Equal(t, int32(4), first.Perm, "who holds the old one keeps it as it was")

	require.NoError(t, v.FoldCommand(shard.At{Time: 8}, raw(&entry.DeleteTopic{Name: "T"})))
	require.NoError(t, v.FoldCommand(shard.At{Time: 9}, raw(&entry.DeleteTopic{Name: "T"})))
	require.Nil(t, v.Get([]byte("T")))
	require.Zero(t, v.Len())
	require.Equal(t, catalog.Version{Counter: 3, Time: 8}, v.Version())
	require.Error(t, v.FoldCommand(shard.At{}, entry.Raw{Kind: entry.KindPutTopic, Body: []byte{0xff}}))
	require.Error(t, v.FoldCommand(shard.At{}, entry.Raw{Kind: entry.KindDeleteTopic, Body: []byte{0xff}}))
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
