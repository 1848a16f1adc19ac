package group

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

func put(g entry.Group) entry.Command { return &entry.PutGroup{Group: g, Actor: "test"} }

func openStore(t *testing.T, fs vfs.FS) *kv.Store {
	t.Helper()
	s, err := kv.Open(fs, "views", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestAGroupIsWhatWasPutLast(t *testing.T) {
	v := New()
	require.Nil(t, v.Get([]byte("G")))
	g := entry.DefaultGroup("G")
	require.NoError(t, v.FoldCommand(shard.At{Time: 5}, raw(put(g))))
	first := v.Get([]byte("G"))
	require.Equal(t, int32(16), first.RetryMaxTimes)
	require.NoError(t, v.FoldCommand(shard.At{Time: 6}, raw(put(g))))
	require.Same(t, first, v.Get([]byte("G")), "the same again is no change")
	require.Equal(t, catalog.Version{Counter: 1, Time: 5}, v.Version())
	g.RetryMaxTimes = 3
	require.NoError(t, v.FoldCommand(shard.At{Time: 7}, raw(put(g))))
	require.Equal(t, int32(3), v.Get([]byte("G")).RetryMaxTimes)
	require.Equal(t, int32(16), first.RetryMaxTimes, "who holds the old one keeps it as it was")

	require.NoError(t, v.FoldCommand(shard.At{Time: 8}, raw(&entry.DeleteGroup{Name: "G"})))
	require.NoError(t, v.FoldCommand(shard.At{Time: 9}, raw(&entry.DeleteGroup{Name: "G"})))
	require.Nil(t, v.Get([]byte("G")))
	require.Zero(t, v.Len())
	require.Equal(t, catalog.Version{Counter: 3, Time: 8}, v.Version())
	require.Equal(t, int64(3), v.Changes())
	require.Error(t, v.FoldCommand(shard.At{}, entry.Raw{Kind: entry.KindPutGroup, Body: []byte{0xff}}))
	require.Error(t, v.FoldCommand(shard.At{}, entry.Raw{Kind: entry.KindDeleteGroup, Body: []byte{0xff}}))
}

func TestADamagedStoreIsAnError(t *testing.T) {
	for key, value := range map[string]string{"gv": "short", "gcG": "\xff"} {
		s := openStore(t, vfs.NewMem())
		b := s.NewBatch()
		b.Set([]byte(key), []byte(value))
		require.NoError(t, s.Commit(b, kv.Applied{Position: 1, Index: 1, Term: 1}))
		require.ErrorContains(t, New().Load(s), "group view")
	}
}
