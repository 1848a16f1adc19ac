package commitlog

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/message"
)

func TestWalk(t *testing.T) {
	fs := vfs.NewMem()
	all, _ := groups(t, Options{FS: fs, Dir: "log", SegmentBytes: 64 << 10, RingBytes: 256 << 10}, 40)
	require.Greater(t, int64(all[len(all)-1].pos), int64(64<<10), "more than a segment")
	walk := func(from message.Position) (frames []message.Position) {
		require.NoError(t, Walk("log", fs, from, func(file string, f Frame) error {
			require.Equal(t, fs.PathJoin("log", segmentName(f.Position/(64<<10)*(64<<10))), file)
			require.Equal(t, payload(f.Index, len(f.Payload)), f.Payload)
			frames = append(frames, f.Position)
			return nil
		}))
		return frames
	}
	require.Len(t, walk(0), len(all))
	middle := len(all) / 2
	require.Equal(t, all[middle].pos, walk(all[middle].pos)[0])
	require.Equal(t, all[middle].pos, walk(all[middle-1].pos + 1)[0], "the next that begins there")

	flip(t, fs, all[middle].pos+HeaderSize-10, 1)
	require.Len(t, walk(0), len(all)-1)

	stop := errors.New("stop")
	require.ErrorIs(t, Walk("log", fs, 0, func(string, Frame) error { return stop }), stop)
	require.Error(t, Walk("nowhere", fs, 0, nil))
}
