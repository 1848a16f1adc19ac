package commitlog

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

func TestEnsureRoomMakesTheNextSegmentOrSaysThatTheDiskIsFull(t *testing.T) {
	disk := &fullDisk{FS: vfs.NewMem()}
	l, _ := open(t, small(disk, false))
	add(t, l, 1, 1, 1000)
	require.NoError(t, l.Write())
	left := int64(l.hold.active.end() - l.Tail())
	disk.set(true, 0)
	require.NoError(t, l.EnsureRoom(left), "it fits as it is")
	require.ErrorIs(t, l.EnsureRoom(left+1), ErrFull)
	require.NoError(t, l.Err())
	disk.set(false, 0)
	require.NoError(t, l.EnsureRoom(left+1))
	disk.set(true, 0)
	require.NoError(t, l.EnsureRoom(left+1), "it is there already")
	disk.set(false, 0)
	for i := uint64(2); int64(l.Tail()) < 3*l.opts.SegmentBytes; i++ {
		require.NoError(t, l.EnsureRoom(5000))
		add(t, l, 1, i, 4000)
		require.NoError(t, l.Write())
	}
}

// tinyDisk says how much of it is free.
type tinyDisk struct {
	vfs.FS
	free uint64
}

func (d *tinyDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free, TotalBytes: 1 << 30, UsedBytes: 1<<30 - d.free}, nil
}

func TestSegmentsAreNotBegunWhereTheyDoNotFit(t *testing.T) {
	disk := &tinyDisk{FS: vfs.NewMem(), free: 1 << 29}
	l, _ := open(t, small(disk, false))
	add(t, l, 1, 1, 1000)
	require.NoError(t, l.Write())
	disk.free = uint64(l.opts.SegmentBytes) - 1
	err := l.EnsureRoom(l.opts.SegmentBytes)
	require.ErrorIs(t, err, ErrFull)
	require.ErrorContains(t, err, "bytes are free")
	disk.free++
	require.NoError(t, l.EnsureRoom(l.opts.SegmentBytes))
}
