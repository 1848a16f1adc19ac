package commitlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/message"
)

// rings are both kinds of ring, for tests that should not care.
var rings = map[string]bool{"mapped ring": false, "plain ring": true}

func eachRing(t *testing.T, test func(t *testing.T, plain bool)) {
	for name, plain := range rings {
		t.Run(name, func(t *testing.T) { test(t, plain) })
	}
}

func small(fs vfs.FS, plain bool) Options {
	return Options{FS: fs, Dir: "log", SegmentBytes: 64 << 10, RingBytes: 64 << 10, PlainRing: plain}
}

// open opens and recovers a log, and closes it at the end of the test. The payloads of the entries come back in order.
func open(t testing.TB, o Options) (*Log, []Frame) {
	l, frames, _, err := tryOpen(o, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l, frames
}

func tryOpen(o Options, from message.Position) (*Log, []Frame, Recovery, error) {
	l, err := Open(o)
	if err != nil {
		return nil, nil, Recovery{}, err
	}
	var frames []Frame
	r, err := l.Recover(from, func(f Frame) error {
		f.Payload = bytes.Clone(f.Payload)
		frames = append(frames, f)
		return nil
	})
	if err != nil {
		_ = l.Close()
		return nil, nil, r, err
	}
	return l, frames, r, nil
}

// settle waits until the background has made the next segment, if it is time for one.
func settle(l *Log) {
	p := l.ahead
	for due := true; due; runtime.Gosched() {
		p.mu.Lock()
		due = p.making || p.wantsNext()
		p.mu.Unlock()
	}
}

// payload makes n bytes that belong to an entry.
func payload(index uint64, n int) []byte {
	b := make([]byte, n)
	rng := rand.New(rand.NewPCG(index, uint64(n)))
	for i := 0; i+8 <= n; i += 8 {
		binary.BigEndian.PutUint64(b[i:], rng.Uint64())
	}
	return b
}

// add seals the next entry, with a payload of n bytes.
func add(t testing.TB, l *Log, term, index uint64, n int) message.Position {
	pos, err := tryAdd(l, term, index, n)
	require.NoError(t, err)
	return pos
}

func tryAdd(l *Log, term, index uint64, n int) (message.Position, error) {
	buf, pos, err := l.Reserve(n)
	if err != nil {
		return 0, err
	}
	copy(buf[HeaderSize:], payload(index, n))
	l.Seal(buf, Header{Kind: KindMessages, Count: 1, Term: term, Index: index, Time: int64(1000 + index)})
	return pos, nil
}

// check compares recovered entries with what add wrote: consecutive from first on.
func check(t testing.TB, frames []Frame, first uint64) {
	for i, f := range frames {
		require.Equal(t, first+uint64(i), f.Index)
		require.True(t, bytes.Equal(payload(f.Index, len(f.Payload)), f.Payload), "payload of entry %d", f.Index)
	}
}

func TestEntriesComeBackAfterRestart(t *testing.T) {
	eachRing(t, func(t *testing.T, plain bool) {
		fs := vfs.NewMem()
		l, frames, _, err := tryOpen(small(fs, plain), 0)
		require.NoError(t, err)
		require.Empty(t, frames)
		where := map[uint64]message.Position{}
		sizes := map[uint64]int{}
		for i := uint64(1); i <= 300; i++ {
			sizes[i] = int(i * 37 % 5000)
			where[i] = add(t, l, 1, i, sizes[i])
			if i%5 == 0 {
				require.NoError(t, l.Write())
			}
			if i%15 == 0 {
				require.NoError(t, l.Sync())
			}
		}
		require.NoError(t, l.Write())
		tail := l.Tail()
		require.Equal(t, tail, l.Written())
		for i := uint64(1); i <= 300; i++ {
			f, err := l.FrameAt(where[i])
			require.NoError(t, err, "entry %d", i)
			require.Equal(t, payload(i, sizes[i]), f.Payload)
		}
		require.NoError(t, l.Close())

		l, frames = open(t, small(fs, plain))
		require.Len(t, frames, 300)
		check(t, frames, 1)
		require.Equal(t, tail, l.Tail())
		for _, f := range frames {
			require.Equal(t, where[f.Index], f.Position)
		}
		last := frames[299]
		hot, ok := l.Hot(nil, last.Position+HeaderSize, last.Size-HeaderSize)
		require.True(t, ok, "the newest part is in the ring after a restart")
		require.Equal(t, last.Payload, hot)
		require.Equal(t, tail, add(t, l, 2, 301, 10))
		var seen []Frame
		require.NoError(t, l.Iterate(0, func(f Frame) error {
			f.Payload = bytes.Clone(f.Payload)
			seen = append(seen, f)
			return nil
		}))
		require.Len(t, seen, 301)
		check(t, seen, 1)
	})
}

func TestRollbackForgetsWhatWasNotWritten(t *testing.T) {
	eachRing(t, func(t *testing.T, plain bool) {
		fs := vfs.NewMem()
		l, _ := open(t, small(fs, plain))
		add(t, l, 1, 1, 100)
		require.NoError(t, l.Write())
		at := add(t, l, 1, 2, 100)
		add(t, l, 1, 3, 100)
		require.NoError(t, l.Rollback(at))
		require.Equal(t, at, l.Tail())
		_, ok := l.Hot(nil, at, 10)
		require.False(t, ok)
		require.Equal(t, at, add(t, l, 1, 2, 50))
		require.NoError(t, l.Write())
		require.NoError(t, l.Rollback(at), "written entries can go too")
		require.Equal(t, at, l.Written())
		require.Equal(t, at, add(t, l, 2, 2, 70))
		require.NoError(t, l.Write())
		require.NoError(t, l.Sync())
		require.NoError(t, l.Close())
		l, frames, _, err := tryOpen(small(fs, plain), 0)
		require.NoError(t, err)
		require.Len(t, frames, 2)
		require.Equal(t, payload(2, 70), frames[1].Payload)
		require.NoError(t, l.Close())
	})
}

func TestRealDisk(t *testing.T) {
	for _, prewrite := range []bool{false, true} {
		t.Run(fmt.Sprint("prewrite ", prewrite), func(t *testing.T) {
			o := small(vfs.Default, false)
			o.Dir, o.Prewrite = t.TempDir(), prewrite
			l, _, _, err := tryOpen(o, 0)
			require.NoError(t, err)
			for i := uint64(1); i <= 500; i++ {
				add(t, l, 1, i, 2000)
				require.NoError(t, l.Write())
				if i%10 == 0 {
					require.NoError(t, l.Sync())
				}
			}
			require.NoError(t, l.Sync())
			require.NoError(t, l.Close())
			_, frames := open(t, o)
			require.Len(t, frames, 500)
			check(t, frames, 1)
		})
	}
}
