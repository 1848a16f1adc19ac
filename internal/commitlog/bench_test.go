package commitlog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkAppend lays frames of 8 KiB into the ring and writes them, without a sync.
func BenchmarkAppend(b *testing.B) { benchAppend(b, 8<<10-HeaderSize, 0, false) }

// BenchmarkAppend64K writes frames of 64 KiB.
func BenchmarkAppend64K(b *testing.B) { benchAppend(b, 64<<10-HeaderSize, 0, false) }

// BenchmarkAppendSync syncs each frame of 4 KiB; with Prewrite it meets blocks that were written before.
func BenchmarkAppendSync(b *testing.B) {
	b.Run("allocated", func(b *testing.B) { benchAppend(b, 4<<10-HeaderSize, 1, false) })
	b.Run("written", func(b *testing.B) { benchAppend(b, 4<<10-HeaderSize, 1, true) })
}

func benchAppend(b *testing.B, size, syncEach int, prewrite bool) {
	l, _ := open(b, Options{Dir: b.TempDir(), SegmentBytes: 256 << 20, Prewrite: prewrite})
	if prewrite { // begin when zeros are ahead
		add(b, l, 1, 1, 100)
		require.NoError(b, l.Write())
		idle(l)
	}
	index := l.hold.last.index
	b.SetBytes(int64(size + HeaderSize))
	b.ReportAllocs()
	for b.Loop() {
		buf, _, err := l.Reserve(size)
		if err != nil {
			b.Fatal(err)
		}
		index++
		l.Seal(buf, Header{Kind: KindMessages, Term: 1, Index: index})
		if err := l.Write(); err != nil {
			b.Fatal(err)
		}
		if syncEach > 0 {
			if err := l.Sync(); err != nil {
				b.Fatal(err)
			}
		}
		if l.Tail()-l.Start() > 1<<30 { // keep the disk free
			b.StopTimer()
			require.NoError(b, l.Sync())
			_, err := l.Drop(l.Tail())
			require.NoError(b, err)
			b.StartTimer()
		}
	}
}

// BenchmarkHot copies 9 KB, as a pull of 32 small messages does.
func BenchmarkHot(b *testing.B) {
	l, _ := open(b, Options{Dir: b.TempDir(), SegmentBytes: 64 << 20})
	pos := add(b, l, 1, 1, 1<<20)
	dst := make([]byte, 0, 16<<10)
	b.SetBytes(9 << 10)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		if _, ok := l.Hot(dst, pos+HeaderSize, 9<<10); !ok {
			b.Fatal("not hot")
		}
	}
}

// BenchmarkReadOld copies 9 KB that have left the ring and are in the page cache.
func BenchmarkReadOld(b *testing.B) {
	l, _ := open(b, Options{Dir: b.TempDir(), SegmentBytes: 64 << 20, RingBytes: 1 << 20})
	pos := add(b, l, 1, 1, 100<<10)
	require.NoError(b, l.Write())
	fillMore(b, l, 4<<20)
	dst := make([]byte, 0, 16<<10)
	b.SetBytes(9 << 10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Read(dst, pos+HeaderSize, 9<<10); err != nil {
			b.Fatal(err)
		}
	}
}

// fillMore writes entries until the log has n more bytes.
func fillMore(b *testing.B, l *Log, n int64) {
	for end := int64(l.Tail()) + n; int64(l.Tail()) < end; {
		add(b, l, 1, l.hold.last.index+1, 100<<10)
		require.NoError(b, l.Write())
	}
}

// BenchmarkRecover verifies 64 MiB of frames of 16 KiB.
func BenchmarkRecover(b *testing.B) {
	o := Options{Dir: b.TempDir(), SegmentBytes: 128 << 20}
	l, _, _, err := tryOpen(o, 0)
	require.NoError(b, err)
	for l.Tail() < 64<<20 {
		add(b, l, 1, l.hold.last.index+1, 16<<10)
		require.NoError(b, l.Write())
	}
	require.NoError(b, l.Close())
	b.SetBytes(64 << 20)
	b.ReportAllocs()
	for b.Loop() {
		l, err := Open(o)
		require.NoError(b, err)
		_, err = l.Recover(0, func(Frame) error { return nil })
		require.NoError(b, err)
		require.NoError(b, l.Close())
	}
}
