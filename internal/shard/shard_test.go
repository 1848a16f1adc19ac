package shard_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
)

func TestSendAndReadAndReopen(t *testing.T) {
	fs := vfs.NewMem()
	s := setup{fs: fs}
	r := mustOpen(t, s)
	r.command(t, putTopic("T", 2))
	var want [2][]string
	for i := range 500 {
		b := &shard.Batch{}
		body := fmt.Sprintf("%c message %d", 'a'+i%3, i)
		require.True(t, r.add(b, "T", int32(i%2), body))
		require.NoError(t, r.submit(b).Err)
		require.EqualValues(t, i/2, b.Msgs[0].Offset)
		want[i%2] = append(want[i%2], body)
		if i == 200 {
			r.CheckpointNow()
		}
	}
	r.command(t, &entry.CommitOffsets{Group: "G", Topic: "T", Items: []entry.QueueAt{{Queue: 1, Offset: 7}}})
	check := func() {
		t.Helper()
		for q := range int32(2) {
			got, err := r.bodies("T", q)
			require.NoError(t, err)
			require.Equal(t, want[q], got)
		}
		require.EqualValues(t, 7, r.offsets.Of([]byte("G"), []byte("T")).At(1))
	}
	check()
	require.NoError(t, r.Close())
	r = mustOpen(t, s)
	check()
	b := &shard.Batch{}
	require.True(t, r.add(b, "T", 0, "x after the restart"))
	require.NoError(t, r.submit(b).Err)
	require.EqualValues(t, 250, b.Msgs[0].Offset)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close(), "closing twice is safe")
}

// Who gives up waiting may have been heard all the same: a Done of its own is called when the batch is folded.
func TestDoneIsCalledThoughNobodyWaits(t *testing.T) {
	r := mustOpen(t, setup{fs: vfs.NewMem()})
	for _, gone := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		if gone {
			cancel()
		}
		done := make(chan error, 1)
		b := &shard.Batch{Done: func(b *shard.Batch) { done <- b.Err }}
		b.Command(putTopic("T", 2))
		if err := r.Do(ctx, b); !gone {
			require.NoError(t, err)
			require.Len(t, done, 1, "called before Do returns")
		}
		require.NoError(t, <-done)
		cancel()
	}
	require.NoError(t, r.Close())
}

// reservingDisk keeps blocks for the superuser, as ext4 does.
type reservingDisk struct{ vfs.FS }

func (reservingDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{TotalBytes: 1000 << 30, UsedBytes: 200 << 30, AvailBytes: 200 << 30}, nil
}

// Blocks that nobody uses, but that are not for us either, make a disk no fuller:
// counting them as used once gave up messages on a disk that was 58 % full.
func TestReservedBlocksAreNotInUse(t *testing.T) {
	r := mustOpen(t, setup{fs: reservingDisk{vfs.NewMem()}})
	require.InDelta(t, 0.5, r.DiskUse(), 1e-9)
	require.NoError(t, r.Close())
}
