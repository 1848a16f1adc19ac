package commitlog

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// seedLog is the beginning of a real segment.
func seedLog(f *testing.F, frames int, flags uint32) []byte {
	fs := vfs.NewMem()
	l, _, _, err := tryOpen(small(fs, false), 0)
	require.NoError(f, err)
	for i := uint64(1); i <= uint64(frames); i++ {
		buf, _, err := l.Reserve(int(i * 13 % 100))
		require.NoError(f, err)
		l.Seal(buf, Header{Kind: KindMessages, Term: 1 + i/4, Index: i, Count: 1, Flags: flags})
		require.NoError(f, l.Write())
		if i%3 == 0 {
			require.NoError(f, l.Sync())
		}
	}
	require.NoError(f, l.Close())
	return []byte(contents(f, fs)[segmentName(0)])
}

func FuzzParseFrame(f *testing.F) {
	log := seedLog(f, 1, 0)
	f.Add(log)
	pad := make([]byte, HeaderSize)
	putPad(pad, 100, 1000)
	f.Add(pad)
	f.Add(log[:20])
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := ParseFrame(b)
		if err != nil {
			return
		}
		again := bytes.Clone(b)
		if frame.Kind == KindPad {
			again = again[:HeaderSize]
		}
		frame.put(again)
		require.Equal(t, b[:len(again)], again, "what is taken is exactly what would be written")
		if frame.Kind != KindPad {
			require.Len(t, frame.Payload, frame.Size-HeaderSize)
		}
	})
}

// FuzzRecover opens a log whose only segment begins with arbitrary bytes.
func FuzzRecover(f *testing.F) {
	f.Add([]byte{})
	f.Add(seedLog(f, 1, 0))
	f.Add(seedLog(f, 12, 0))
	torn := seedLog(f, 12, FlagAsync)
	torn[300] ^= 1
	f.Add(torn)
	f.Add(bytes.Repeat(frameMark, 500))
	f.Fuzz(func(t *testing.T, b []byte) {
		const segment = 64 << 10
		fs := vfs.NewMem()
		require.NoError(t, fs.MkdirAll("log", 0o755))
		w, err := fs.Create("log/"+segmentName(0), vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		_, err = w.Write(b[:min(len(b), segment)])
		require.NoError(t, err)
		require.NoError(t, w.Close())
		before := contents(t, fs)
		report, err := Verify("log", fs, nil)
		require.NoError(t, err)
		require.Equal(t, before, contents(t, fs))
		o := small(fs, true)
		l, frames, r, err := tryOpen(o, 0)
		if err != nil {
			var damage *CorruptError
			require.ErrorAs(t, err, &damage)
			require.NotEmpty(t, report.Problems)
			delete(before, lockName)
			after := contents(t, fs)
			delete(after, lockName)
			require.Equal(t, before, after, "nothing is changed")
			return
		}
		require.Equal(t, r.Torn, report.Behind > 0 || len(report.Problems) > 0)
		next, term := uint64(1), uint64(1)
		if n := len(frames); n > 0 {
			next, term = frames[n-1].Index+1, frames[n-1].Term
		}
		if next == 0 {
			return // the last index there is
		}
		add(t, l, term, next, 100)
		require.NoError(t, l.Write())
		require.NoError(t, l.Close())
		l, again, r, err := tryOpen(o, 0)
		require.NoError(t, err)
		require.False(t, r.Torn)
		require.Len(t, again, len(frames)+1)
		for i, frame := range frames {
			require.Equal(t, frame, again[i])
		}
		require.NoError(t, l.Close())
		report, err = Verify("log", fs, nil)
		require.NoError(t, err)
		require.Empty(t, report.Problems)
		require.Equal(t, r.Tail, report.Tail)
	})
}

func FuzzParseCut(f *testing.F) {
	f.Add([]byte(cutMagic + "\x00\x00\x00\x00\x00\x00\x00\x05abcd"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if to, ok := parseCut(b); ok {
			require.Len(t, b, cutBytes)
			require.GreaterOrEqual(t, int64(to), int64(0))
		}
	})
}
