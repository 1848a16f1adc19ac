package kv

import (
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

// badDisk fails writes, or syncs, from the moment it is told to.
type badDisk struct {
	err   atomic.Pointer[error]
	kinds []errorfs.OpKind // that fail; none: every one that takes room
	seen  atomic.Int64     // operations that failed
	first chan struct{}    // closed by the first of them
}

func newBadDisk(kinds ...errorfs.OpKind) *badDisk {
	return &badDisk{kinds: kinds, first: make(chan struct{})}
}

func (d *badDisk) String() string { return "(badDisk)" }

func (d *badDisk) MaybeError(op errorfs.Op) error {
	err := d.err.Load()
	if err == nil || !d.hits(op.Kind) {
		return nil
	}
	if d.seen.Add(1) == 1 {
		close(d.first)
	}
	return *err
}

func (d *badDisk) hits(kind errorfs.OpKind) bool {
	if len(d.kinds) == 0 {
		return kind == errorfs.OpCreate || kind == errorfs.OpFileWrite || kind == errorfs.OpFileWriteAt || kind == errorfs.OpLink || kind == errorfs.OpRename
	}
	return slices.Contains(d.kinds, kind)
}

func (d *badDisk) fail(err error) { d.err.Store(&err) }
func (d *badDisk) heal()          { d.err.Store(nil) }

func put(t *testing.T, s *Store, i int) {
	t.Helper()
	b := s.NewBatch()
	b.Set([]byte("k"), fmt.Append(nil, i))
	require.NoError(t, s.Commit(b, Applied{Index: uint64(i)}))
}

func value(t *testing.T, s *Store) (v string) {
	t.Helper()
	require.NoError(t, s.Get([]byte("k"), func(b []byte) error { v = string(b); return nil }))
	return v
}

func TestCheckpointWaitsForRoomOnTheDisk(t *testing.T) {
	mem, disk := vfs.NewMem(), newBadDisk()
	s := open(t, errorfs.Wrap(mem, disk))
	put(t, s, 1)
	require.NoError(t, s.Flush())
	for i := 2; i < 12; i++ {
		disk.fail(&fullError{})
		put(t, s, i)
		done := make(chan error, 1)
		go func() { done <- s.Flush() }()
		if i == 2 {
			<-disk.first
		}
		require.Equal(t, fmt.Sprint(i), value(t, s), "reads go on")
		disk.heal()
		require.NoError(t, <-done)
	}
	require.NoError(t, s.Close())
	s = open(t, mem)
	require.Equal(t, "11", value(t, s))
	require.NoError(t, s.Close())
}

// once lets the n-th operation that takes room find a full disk, once.
type once struct {
	badDisk
	left atomic.Int64
}

func (o *once) MaybeError(op errorfs.Op) error {
	if o.hits(op.Kind) && o.left.Add(-1) == -1 {
		return &fullError{}
	}
	return nil
}

func TestEachOperationMayFindTheDiskFull(t *testing.T) {
	for n := int64(0); ; n++ {
		require.Less(t, n, int64(100))
		mem, disk := vfs.NewCrashableMem(), &once{}
		disk.left.Store(1000)
		s := open(t, errorfs.Wrap(mem, disk))
		disk.left.Store(n)
		put(t, s, 1)
		require.NoError(t, s.Flush())
		put(t, s, 2)
		require.NoError(t, s.Flush())
		fired := disk.left.Load() < 0
		require.NoError(t, s.Close())
		s = open(t, mem.CrashClone(vfs.CrashCloneCfg{}))
		require.Equal(t, "2", value(t, s))
		require.NoError(t, s.Close())
		if !fired {
			return
		}
	}
}

// fullError is how the operating system says that there is no room.
type fullError struct{}

func (*fullError) Error() string { return "no space left on device" }
func (*fullError) Unwrap() error { return syscall.ENOSPC }

func TestCheckpointIsGivenUpWhenThereIsNoTimeToWait(t *testing.T) {
	mem, disk := vfs.NewCrashableMem(), newBadDisk()
	s := open(t, errorfs.Wrap(mem, disk))
	put(t, s, 1)
	require.NoError(t, s.Flush())
	disk.fail(&fullError{})
	put(t, s, 2)
	done := make(chan error, 1)
	go func() { done <- s.Flush() }()
	<-disk.first
	s.Hurry()
	require.ErrorIs(t, <-done, ErrFull)
	require.Equal(t, "2", value(t, s), "reads go on")
	require.ErrorIs(t, s.Flush(), ErrFull)
	require.NoError(t, s.Close())
	s = open(t, mem.CrashClone(vfs.CrashCloneCfg{}))
	require.Equal(t, "1", value(t, s))
	require.EqualValues(t, 1, s.Applied().Index)
	require.NoError(t, s.Close())
}

func TestBadDiskEndsTheStoreWithThePath(t *testing.T) {
	for _, kind := range []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileWrite, errorfs.OpCreate} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			mem, disk := vfs.NewCrashableMem(), newBadDisk(kind)
			s := open(t, errorfs.Wrap(mem, disk))
			put(t, s, 1)
			require.NoError(t, s.Flush())
			put(t, s, 2)
			disk.fail(syscall.EIO)
			err := s.Flush()
			if kind == errorfs.OpFileSyncData && err == nil {
				require.Zero(t, disk.seen.Load(), "the engine does not sync that way")
				return
			}
			require.ErrorIs(t, err, syscall.EIO)
			if kind != errorfs.OpCreate {
				require.ErrorContains(t, err, "views")
			}
			disk.heal()
			require.ErrorIs(t, s.Flush(), syscall.EIO, "it is final")
			b := s.NewBatch()
			require.ErrorIs(t, s.Commit(b, Applied{Index: 3}), syscall.EIO)
			require.Equal(t, "2", value(t, s), "reads go on")
			require.NoError(t, s.Close())
			s = open(t, mem.CrashClone(vfs.CrashCloneCfg{}))
			require.Equal(t, "1", value(t, s))
			require.NoError(t, s.Close())
		})
	}
}

func TestOpenOnABadDiskFails(t *testing.T) {
	for _, err := range []error{&fullError{}, syscall.EIO} {
		disk := newBadDisk()
		fs := errorfs.Wrap(vfs.NewMem(), disk)
		disk.fail(err)
		_, e := Open(fs, "views", nil)
		require.ErrorIs(t, e, err)
	}
}
