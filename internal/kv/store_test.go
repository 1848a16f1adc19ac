package kv

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

func open(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open(fs, "views", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return s
}

func TestBatchesAndTheirPlaceInTheLogAreAtomicOverCrashes(t *testing.T) {
	for seed := range uint64(20) {
		fs := vfs.NewCrashableMem()
		s := open(t, fs)
		require.Zero(t, s.Applied())
		flushed := 0
		for i := 1; i <= 30; i++ {
			b := s.NewBatch()
			for k := range 10 {
				b.Set(fmt.Appendf(nil, "k%02d", k), fmt.Appendf(nil, "%d", i))
			}
			require.NoError(t, s.Commit(b, Applied{Position: 100, Index: uint64(i), Term: 2}))
			if i%7 == 0 {
				require.NoError(t, s.Flush())
				flushed = i
			}
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(seed, 1))})
		require.NoError(t, s.Close())
		s = open(t, crashed)
		at := s.Applied().Index
		require.GreaterOrEqual(t, at, uint64(flushed), "seed %d", seed)
		n := 0
		require.NoError(t, s.Scan([]byte("k"), PrefixEnd([]byte("k")), func(k, v []byte) bool {
			require.Equal(t, fmt.Sprint(at), string(v), "seed %d key %s", seed, k)
			n++
			return true
		}))
		require.Equal(t, 10, n)
		require.NoError(t, s.Close())
	}
}

func TestGetScanAndDelete(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.Close()
	b := s.NewBatch()
	for _, k := range []string{"a1", "a2", "a3", "b1"} {
		b.Set([]byte(k), []byte("v"+k))
	}
	b.Delete([]byte("a2"))
	require.NoError(t, s.Commit(b, Applied{Index: 1}))
	called := false
	require.NoError(t, s.Get([]byte("a2"), func([]byte) error { called = true; return nil }))
	require.False(t, called)
	require.NoError(t, s.Get([]byte("a3"), func(v []byte) error { called = bytes.Equal(v, []byte("va3")); return nil }))
	require.True(t, called)
	var keys []string
	require.NoError(t, s.Scan([]byte("a"), PrefixEnd([]byte("a")), func(k, _ []byte) bool { keys = append(keys, string(k)); return true }))
	require.Equal(t, []string{"a1", "a3"}, keys)
	b = s.NewBatch()
	b.DeleteRange([]byte("a"), []byte("b"))
	require.NoError(t, s.Commit(b, Applied{Index: 2}))
	keys = nil
	require.NoError(t, s.Scan([]byte("a"), []byte("z"), func(k, _ []byte) bool { keys = append(keys, string(k)); return true }))
	require.Equal(t, []string{"b1"}, keys)
}

func TestPrefixEnd(t *testing.T) {
	require.Equal(t, []byte("b"), PrefixEnd([]byte("a")))
	require.Equal(t, []byte{2}, PrefixEnd([]byte{1, 0xff}))
	require.Nil(t, PrefixEnd([]byte{0xff, 0xff}))
}
