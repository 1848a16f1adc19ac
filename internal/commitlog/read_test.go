package commitlog

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/message"
)

// fill writes entries until the log has n bytes, and returns where they are.
func fill(t testing.TB, l *Log, n message.Position) (all []sealed) {
	for l.Tail() < n {
		e := sealed{term: 1, index: uint64(len(all) + 1), size: 100 + len(all)*791%9000}
		e.pos = add(t, l, 1, e.index, e.size)
		all = append(all, e)
		require.NoError(t, l.Write())
	}
	require.NoError(t, l.Sync())
	return all
}

func TestReadsOfAllAges(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.Default} {
		t.Run(name, func(t *testing.T) {
			o := small(fs, false)
			if name == "disk" {
				o.Dir = t.TempDir()
			}
			l, _ := open(t, o)
			all := fill(t, l, 600_000)
			prefix := []byte("before")
			for _, e := range all {
				l.ReadAhead(e.pos, e.size)
				b, err := l.Read(prefix, e.pos+HeaderSize, e.size)
				require.NoError(t, err)
				require.Equal(t, "before", string(b[:6]))
				requireSame(t, payload(e.index, e.size), b[6:])
				if runtime.GOOS == "linux" || name == "memory" { // it was just read
					require.True(t, l.Resident(e.pos, e.size+HeaderSize))
				}
				f, err := l.FrameAt(e.pos)
				require.NoError(t, err)
				require.Equal(t, e.index, f.Index)
			}
			from, last := all[3].pos, all[len(all)-1]
			b, err := l.Read(nil, from, int(last.pos-from)+HeaderSize+last.size) // across all segments, and the ring
			require.NoError(t, err)
			for _, e := range all[3:] {
				requireSame(t, payload(e.index, e.size), b[e.pos-from+HeaderSize:][:e.size])
			}
			seen := 0
			require.NoError(t, l.Iterate(from, func(Frame) error { seen++; return nil }))
			require.Equal(t, len(all)-3, seen)
			stop := errors.New("stop")
			require.ErrorIs(t, l.Iterate(0, func(Frame) error { return stop }), stop)
		})
	}
}

func TestReadsOutOfTheLog(t *testing.T) {
	l, _ := open(t, small(vfs.NewMem(), false))
	all := fill(t, l, 400_000)
	tail := l.Tail()
	_, err := l.Read(nil, tail, 1)
	require.ErrorIs(t, err, ErrBeyondTail)
	_, err = l.Read(nil, tail-5, 6)
	require.ErrorIs(t, err, ErrBeyondTail)
	_, err = l.FrameAt(tail)
	require.ErrorIs(t, err, ErrBeyondTail)
	require.False(t, l.Resident(tail, 1))
	var damage *CorruptError
	_, err = l.FrameAt(all[1].pos + 1)
	require.ErrorAs(t, err, &damage)
	require.ErrorAs(t, l.Iterate(all[1].pos+1, func(Frame) error { return nil }), &damage)
	n, err := l.Drop(150_000)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	_, err = l.Read(nil, all[0].pos, 1)
	require.ErrorIs(t, err, ErrDropped)
	require.ErrorIs(t, l.Iterate(0, nil), ErrDropped)
	require.ErrorIs(t, l.Truncate(0), ErrDropped)
	require.ErrorIs(t, l.Truncate(tail+1), ErrBeyondTail)
	require.False(t, l.Resident(0, 1))
	require.NoError(t, l.Close())
	_, err = l.Read(nil, tail-1, 1)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, l.Sync(), ErrClosed)
	_, ok := l.Hot(nil, tail-1, 1)
	require.False(t, ok)
}

// TestReadersBesideDropAndTruncate lets segments go away under readers: they get the right bytes or an error.
func TestReadersBesideDropAndTruncate(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.Default} {
		t.Run(name, func(t *testing.T) {
			o := small(fs, true)
			if name == "disk" {
				o.Dir = t.TempDir()
			}
			l, _, _, err := tryOpen(o, 0)
			require.NoError(t, err)
			var all atomic.Pointer[[]sealed]
			list := fill(t, l, 500_000)
			first := list
			all.Store(&first)
			var stop atomic.Bool
			var reads atomic.Int64
			var readers sync.WaitGroup
			for seed := range uint64(3) {
				readers.Go(func() {
					rng := rand.New(rand.NewPCG(seed, 1))
					for !stop.Load() {
						list := *all.Load()
						e := list[rng.IntN(len(list))]
						f, err := l.FrameAt(e.pos)
						var damage *CorruptError
						switch {
						case err == nil:
							requireSame(t, payload(f.Index, len(f.Payload)), f.Payload)
							reads.Add(1)
						case errors.Is(err, ErrDropped), errors.Is(err, ErrBeyondTail), errors.Is(err, ErrClosed):
						case errors.As(err, &damage): // cut while it was read
						default:
							require.NoError(t, err)
						}
						_ = l.Resident(e.pos, 10)
						l.ReadAhead(e.pos, 10)
					}
				})
			}
			for i := range 30 {
				k := len(list) - 1 - i%20
				require.NoError(t, l.Truncate(list[k].pos))
				list = list[:k:k]
				for range 40 {
					e := sealed{term: 1, index: uint64(len(list) + 1), size: 3000}
					e.pos = add(t, l, 1, e.index, e.size)
					require.NoError(t, l.Write())
					list = append(list, e)
				}
				require.NoError(t, l.Sync())
				now := list
				all.Store(&now)
				_, err := l.Drop(l.Tail() - 400_000)
				require.NoError(t, err)
			}
			for reads.Load() < 100 {
				runtime.Gosched()
			}
			require.NoError(t, l.Close())
			stop.Store(true)
			readers.Wait()
		})
	}
}

func TestSegmentsTellTimes(t *testing.T) {
	fs := vfs.NewMem()
	o := small(fs, false)
	l, _, _, err := tryOpen(o, 0)
	require.NoError(t, err)
	all := fill(t, l, 300_000)
	infos := l.Segments()
	require.Len(t, infos, 5)
	firstOf := func(start message.Position) sealed {
		for _, e := range all {
			if e.pos >= start {
				return e
			}
		}
		return sealed{}
	}
	for i, s := range infos {
		first := firstOf(s.Start)
		require.Equal(t, first.index, s.FirstIndex)
		require.EqualValues(t, 1000+first.index, s.FirstTime)
		want := 1000 + all[len(all)-1].index
		if i+1 < len(infos) {
			want = 1000 + firstOf(infos[i+1].Start).index - 1
			require.Equal(t, s.Size, s.Used)
		}
		require.EqualValues(t, want, s.LastTime, "the active one, too")
	}
	require.NoError(t, l.Close())
	l, _, _, err = tryOpen(o, firstOf(200_000).pos)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	for i, s := range l.Segments() {
		require.Equal(t, infos[i].FirstIndex, s.FirstIndex)
		if i < 3 { // not scanned: the first time of the next segment
			require.GreaterOrEqual(t, s.LastTime, infos[i].LastTime)
			require.LessOrEqual(t, s.LastTime, infos[i+1].FirstTime)
			continue
		}
		require.Equal(t, infos[i].LastTime, s.LastTime)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{
		{}, {Dir: "log", SegmentBytes: 1000}, {Dir: "log", SegmentBytes: 65537}, {Dir: "log", SegmentBytes: 1 << 32}, {Dir: "log", RingBytes: 3 << 20},
		{Dir: "log", RingBytes: 4096},
	} {
		o.FS = vfs.NewMem()
		_, err := Open(o)
		require.Error(t, err)
	}
	_, err := Open(Options{FS: vfs.NewMem(), SegmentBytes: 5, RingBytes: 7})
	require.ErrorContains(t, err, "segment size 5")
	require.ErrorContains(t, err, "ring size 7")
	require.ErrorContains(t, err, "directory is not set")
}

func TestOtherSegmentSizeIsNoticed(t *testing.T) {
	fs := vfs.NewMem()
	l, _, _, err := tryOpen(small(fs, false), 0)
	require.NoError(t, err)
	fill(t, l, 100_000)
	require.NoError(t, l.Close())
	o := small(fs, false)
	o.SegmentBytes = 128 << 10
	_, err = Open(o)
	require.ErrorContains(t, err, "segment size")
	_, err = Open(small(fs, false))
	require.NoError(t, err)
	_, err = Open(small(fs, false))
	require.ErrorContains(t, err, "another process")
}

func TestWriteBackIsHarmless(t *testing.T) {
	o := small(vfs.Default, false)
	o.Dir = t.TempDir()
	l, _ := open(t, o)
	for i := uint64(1); i < 60; i++ {
		add(t, l, 1, i, 5000)
		require.NoError(t, l.Write())
		l.WriteBack()
	}
	require.NoError(t, l.Sync())
	l.WriteBack()
}

func TestGatherTakesWhatIsInMemoryAndNothingElse(t *testing.T) {
	for _, real := range []bool{false, true} {
		o := Options{FS: vfs.NewMem(), Dir: "log", SegmentBytes: 64 << 10, RingBytes: 64 << 10}
		if real {
			o.FS, o.Dir = vfs.Default, t.TempDir()
		}
		l, _ := open(t, o)
		for i := uint64(1); i <= 60; i++ {
			add(t, l, 1, i, 5000)
			require.NoError(t, l.Write())
		}
		type part struct {
			pos  message.Position
			size int
		}
		var parts []part
		var want []byte
		require.NoError(t, l.Iterate(0, func(f Frame) error {
			if f.Kind != KindPad && f.Index%3 != 0 {
				parts = append(parts, part{f.Position + HeaderSize, len(f.Payload)})
				want = append(want, f.Payload...)
			}
			return nil
		}))
		at := func(i int) (message.Position, int) { return parts[i].pos, parts[i].size }
		got, ok := l.Gather([]byte("before"), len(parts), at)
		require.True(t, ok)
		require.Equal(t, append([]byte("before"), want...), got, "real disk %v", real)
		parts = append(parts, part{l.Tail() - 10, 20})
		got, ok = l.Gather([]byte("before"), len(parts), at)
		require.False(t, ok, "behind the tail")
		require.Equal(t, "before", string(got))
	}
}
