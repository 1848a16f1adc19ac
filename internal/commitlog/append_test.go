package commitlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/message"
)

// large is small with a ring that takes many frames before a Write.
func large(fs vfs.FS, plain bool) Options {
	o := small(fs, plain)
	o.RingBytes = 1 << 20
	return o
}

// TestEveryRestOfASegment ends a segment with each number of bytes left that matters, in front of frames that just fit and just do not.
func TestEveryRestOfASegment(t *testing.T) {
	const segment = 64 << 10
	for rest := int64(0); rest <= 130; rest++ {
		for _, size := range []int{0, int(max(0, rest-HeaderSize)), int(max(0, rest-HeaderSize)) + 1, 500} {
			fs := vfs.NewCrashableMem()
			o := large(fs, rest%2 == 0)
			l, _, _, err := tryOpen(o, 0)
			require.NoError(t, err)
			add(t, l, 1, 1, int(segment-rest)-HeaderSize)
			if size%2 == 0 {
				require.NoError(t, l.Write())
			}
			want := message.Position(segment - rest)
			if int64(size)+HeaderSize > rest {
				want = segment
			}
			require.Equal(t, want, add(t, l, 1, 2, size), "rest %d, size %d", rest, size)
			third := add(t, l, 1, 3, 10)
			require.NoError(t, l.Write())
			require.NoError(t, l.Sync())
			seen := 0
			require.NoError(t, l.Iterate(0, func(Frame) error { seen++; return nil }))
			require.Equal(t, 3, seen)
			require.NoError(t, l.Close())
			o.FS = fs.CrashClone(vfs.CrashCloneCfg{})
			l, frames, r, err := tryOpen(o, 0)
			require.NoError(t, err)
			require.Len(t, frames, 3, "rest %d, size %d", rest, size)
			require.Equal(t, third, frames[2].Position)
			require.False(t, r.Torn)
			require.NoError(t, l.Close())
			report, err := Verify("log", o.FS, nil)
			require.NoError(t, err)
			require.Empty(t, report.Problems)
			require.Zero(t, report.Behind)
		}
	}
}

// raw are the bytes of a log's entries, each with its position.
func raw(t *testing.T, l *Log) []byte {
	var all []byte
	require.NoError(t, l.Iterate(l.Start(), func(f Frame) error {
		b, err := l.Read(nil, f.Position, f.Size)
		require.NoError(t, err)
		all = binary.BigEndian.AppendUint64(all, uint64(f.Position))
		all = append(all, b...)
		return nil
	}))
	return all
}

func TestFollowersHaveTheSameLog(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			leader, _ := open(t, large(vfs.NewMem(), false))
			disk := vfs.NewMem()
			o := large(disk, true)
			follower, _, _, err := tryOpen(o, 0)
			require.NoError(t, err)
			for index := uint64(1); index <= 200; index++ {
				buf, pos, err := leader.Reserve(rng.IntN(6000))
				require.NoError(t, err)
				if rng.IntN(5) == 0 { // less than was reserved: it may have fit into the rest
					buf = buf[:HeaderSize+rng.IntN(len(buf)-HeaderSize+1)]
				}
				copy(buf[HeaderSize:], payload(index, len(buf)-HeaderSize))
				leader.Seal(buf, Header{Kind: KindMessages, Term: 1, Index: index, Flags: uint32(seed % 2)})
				frame, ok := leader.Hot(nil, pos, len(buf))
				require.True(t, ok)
				require.NoError(t, follower.AppendFrame(frame))
				if rng.IntN(3) == 0 {
					require.NoError(t, leader.Write())
					if rng.IntN(3) == 0 {
						require.NoError(t, leader.Sync())
					}
				}
				if rng.IntN(7) == 0 {
					require.NoError(t, follower.Write())
					if rng.IntN(5) == 0 {
						require.NoError(t, follower.Sync())
					}
				}
				if rng.IntN(50) == 0 {
					require.NoError(t, follower.Write())
					require.NoError(t, follower.Close())
					follower, _, _, err = tryOpen(o, 0)
					require.NoError(t, err)
				}
			}
			require.NoError(t, leader.Write())
			require.NoError(t, follower.Write())
			require.Equal(t, leader.Tail(), follower.Tail())
			require.True(t, bytes.Equal(raw(t, leader), raw(t, follower)))
			require.NoError(t, follower.Close())
		})
	}
}

func TestAPromiseIsNeverMoreThanWhatWasSyncedHere(t *testing.T) {
	for _, async := range []uint32{0, FlagAsync} {
		leader, _ := open(t, large(vfs.NewMem(), false))
		follower, _ := open(t, large(vfs.NewMem(), false))
		for i := uint64(1); i <= 9; i++ {
			buf, pos, err := leader.Reserve(100)
			require.NoError(t, err)
			synced := leader.Synced()
			leader.Seal(buf, Header{Kind: KindCommands, Term: 1, Index: i, Flags: async}) // says that everything before it was synced
			require.NoError(t, leader.Write())
			if i%3 == 0 {
				require.NoError(t, leader.Sync())
			}
			frame, err := leader.Read(nil, pos, len(buf))
			require.NoError(t, err)
			f, err := ParseFrame(frame)
			require.NoError(t, err)
			require.NoError(t, follower.AppendFrame(frame))
			if async != 0 {
				require.Zero(t, f.synced())
				require.Zero(t, follower.Synced(), "no reason to sync")
				continue
			}
			require.Equal(t, synced, f.synced(), "the leader promises what is true")
			require.GreaterOrEqual(t, follower.Synced(), f.synced(), "and the follower makes it true")
		}
		require.True(t, bytes.Equal(raw(t, leader), raw(t, follower)))
	}
}

func TestAppendFrameRefusesWhatDoesNotBelong(t *testing.T) {
	leader, _ := open(t, large(vfs.NewMem(), false))
	var frames [][]byte
	for i := uint64(1); i <= 4; i++ {
		buf, pos, err := leader.Reserve(100)
		require.NoError(t, err)
		leader.Seal(buf, Header{Kind: KindMessages, Term: 2, Index: i})
		frame, _ := leader.Hot(nil, pos, len(buf))
		frames = append(frames, frame)
	}
	l, _ := open(t, large(vfs.NewMem(), false))
	require.ErrorIs(t, l.AppendFrame(frames[1]), ErrPosition)
	require.NoError(t, l.AppendFrame(frames[0]))
	require.ErrorIs(t, l.AppendFrame(frames[0]), ErrPosition)
	require.ErrorIs(t, l.AppendFrame(frames[2]), ErrPosition)
	require.Error(t, l.AppendFrame(nil))
	require.Error(t, l.AppendFrame(frames[1][:80]))
	broken := bytes.Clone(frames[1])
	broken[70] ^= 1
	require.Error(t, l.AppendFrame(broken))
	older := bytes.Clone(frames[1])
	h := readHeader(older)
	h.Term = 1
	h.put(older)
	require.ErrorIs(t, l.AppendFrame(older), ErrPosition)
	newer := bytes.Clone(frames[1])
	newer[atVersion] = version + 1
	binary.BigEndian.PutUint32(newer[atCRC:], checksum(newer))
	require.ErrorContains(t, l.AppendFrame(newer), "version")
	require.NoError(t, l.AppendFrame(frames[1]))
	require.EqualValues(t, len(frames[0])+len(frames[1]), l.Tail())
}

func TestReserveRefuses(t *testing.T) {
	l, _ := open(t, small(vfs.NewMem(), false))
	largest := int(l.limit) - HeaderSize
	_, _, err := l.Reserve(largest + 1)
	require.ErrorIs(t, err, ErrTooLarge)
	require.ErrorContains(t, err, "limit 16384")
	_, _, err = l.Reserve(-1)
	require.ErrorIs(t, err, ErrTooLarge)
	add(t, l, 1, 1, largest)
	add(t, l, 1, 2, largest)
	_, _, err = l.Reserve(0)
	require.ErrorIs(t, err, ErrUnwritten)
	require.NoError(t, l.Write())
	_, _, err = l.Reserve(0)
	require.NoError(t, err)
	unrecovered, err := Open(Options{FS: vfs.NewMem(), Dir: "log", SegmentBytes: 64 << 10, RingBytes: 64 << 10})
	require.NoError(t, err)
	_, _, err = unrecovered.Reserve(1)
	require.ErrorContains(t, err, "not recovered")
	require.NoError(t, unrecovered.Close())
	require.ErrorIs(t, unrecovered.Write(), ErrClosed)
}

func TestSealPanicsOnABrokenOrder(t *testing.T) {
	l, _ := open(t, small(vfs.NewMem(), false))
	add(t, l, 3, 7, 10)
	for name, h := range map[string]Header{
		"gap": {Kind: KindMessages, Term: 3, Index: 9}, "again": {Kind: KindMessages, Term: 3, Index: 7}, "older term": {Kind: KindMessages, Term: 2, Index: 8},
		"no index": {Kind: KindMessages, Term: 3}, "no kind": {Term: 3, Index: 8}, "pad": {Kind: KindPad, Term: 3, Index: 8},
	} {
		buf, _, err := l.Reserve(10)
		require.NoError(t, err)
		require.Panics(t, func() { l.Seal(buf, h) }, name)
	}
	buf, _, err := l.Reserve(10)
	require.NoError(t, err)
	require.Panics(t, func() { l.Seal(make([]byte, len(buf)), Header{Kind: KindMessages, Term: 3, Index: 8}) })
	l.Seal(buf, Header{Kind: KindMessages, Term: 3, Index: 8})
	require.Panics(t, func() { l.Seal(buf, Header{Kind: KindMessages, Term: 3, Index: 9}) })
}

func TestAppendingDoesNotAllocate(t *testing.T) {
	for _, prewrite := range []bool{false, true} {
		o := Options{Dir: t.TempDir(), RingBytes: 1 << 20, SegmentBytes: 64 << 20, Prewrite: prewrite}
		l, _ := open(t, o)
		index := uint64(0)
		var buf []byte
		require.Zero(t, testing.AllocsPerRun(200, func() {
			index++
			b, pos, err := l.Reserve(8000)
			if err == nil {
				l.Seal(b, Header{Kind: KindMessages, Term: 1, Index: index})
				err = l.Write()
			}
			if err == nil && index%20 == 0 {
				err = l.Sync()
			}
			var ok bool
			if buf, ok = l.Hot(buf[:0], pos, 8000); !ok || err != nil {
				panic("not written")
			}
		}))
	}
}
