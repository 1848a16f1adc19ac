package commitlog

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/message"
)

// at is the byte that ring tests put at a position.
func at(pos int64) byte { return byte(pos>>16 ^ pos>>8*7 ^ pos) }

// fillRing publishes n bytes at a position.
func fillRing(r *ring, pos message.Position, n int) {
	b := r.space(pos, n)
	for i := range b {
		b[i] = at(int64(pos) + int64(i))
	}
	r.publish(pos, n)
}

func requireBytes(t *testing.T, b []byte, pos message.Position) {
	for i := range b {
		if b[i] != at(int64(pos)+int64(i)) {
			require.FailNow(t, "wrong byte", "at %d: %d", int64(pos)+int64(i), b[i])
		}
	}
}

func TestRingServesItsNewestPart(t *testing.T) {
	eachRing(t, func(t *testing.T, plain bool) {
		r, err := newRing(minRingBytes, plain)
		require.NoError(t, err)
		r.start(1000)
		rng := rand.New(rand.NewPCG(1, 1))
		pos := message.Position(1000)
		for range 2000 {
			n := rng.IntN(int(r.maxFrame()) + 1)
			fillRing(r, pos, n)
			pos += message.Position(n)
			oldest := max(1000, int64(pos)-r.size*5/8)
			from := oldest + rng.Int64N(int64(pos)-oldest+1)
			b, ok := r.copyOut([]byte("prefix"), message.Position(from), int(int64(pos)-from))
			require.True(t, ok)
			require.Equal(t, "prefix", string(b[:6]))
			requireBytes(t, b[6:], message.Position(from))
			for _, bad := range [][2]int64{{int64(pos), 1}, {int64(pos) - r.size - 1, 1}, {999, 1}, {-1, 1}, {int64(pos), -1}} {
				_, ok := r.copyOut(nil, message.Position(bad[0]), int(bad[1]))
				require.False(t, ok, "%v of %d", bad, pos)
			}
		}
		require.NoError(t, r.close())
		_, ok := r.copyOut(nil, pos-1, 1)
		require.False(t, ok)
	})
}

func TestRingReadersNeverSeeBytesOfAnotherPlace(t *testing.T) {
	eachRing(t, func(t *testing.T, plain bool) {
		r, err := newRing(minRingBytes, plain)
		require.NoError(t, err)
		r.start(0)
		var stop atomic.Bool
		var hits atomic.Int64
		var readers sync.WaitGroup
		for seed := range uint64(3) {
			readers.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 2))
				var buf []byte
				for !stop.Load() {
					pos := max(0, r.limit.Load()-rng.Int64N(r.size)) // often what is about to be overwritten
					b, ok := r.copyOut(buf[:0], message.Position(pos), rng.IntN(2000))
					if buf = b; ok {
						requireBytes(t, b, message.Position(pos))
						hits.Add(1)
					}
				}
			})
		}
		rng := rand.New(rand.NewPCG(9, 9))
		pos := message.Position(0)
		for pos < 8<<20 || hits.Load() < 1000 {
			n := 1 + rng.IntN(int(r.maxFrame()))
			fillRing(r, pos, n)
			pos += message.Position(n)
			if rng.IntN(20) == 0 { // a rollback, and other bytes at the same place
				to := max(message.Position(r.low.Load()), pos-message.Position(rng.Int64N(r.size/4)))
				if to < pos {
					r.retract(to)
					b := r.space(to, 1)
					b[0] = ^at(int64(to)) // not published: nobody may see it
					pos = to
				}
			}
			if hits.Load() < 1000 {
				runtime.Gosched()
			}
		}
		stop.Store(true)
		readers.Wait()
		require.NoError(t, r.close())
	})
}

func TestRingWaitsForAReaderBeforeItOverwrites(t *testing.T) {
	r, err := newRing(minRingBytes, true)
	require.NoError(t, err)
	r.start(0)
	pos := message.Position(0)
	for ; pos < message.Position(r.size)-8192; pos += 4096 {
		fillRing(r, pos, 4096)
	}
	r.pins[0].n.Add(1) // somebody reads in the oldest chunk
	done := make(chan struct{})
	go func() { // waited for below
		defer close(done)
		for range 8 {
			fillRing(r, pos, 4096)
			pos += 4096
		}
	}()
	for r.low.Load() == 0 { // the chunk is closed to new readers first
		runtime.Gosched()
	}
	_, ok := r.copyOut(nil, 100, 1)
	require.False(t, ok)
	select {
	case <-done:
		require.Fail(t, "overwrote what is being read")
	default:
	}
	r.pins[0].n.Add(-1)
	<-done
}

// TestHotBesideWrites lets readers read frames of a log while it is written, rolled back and cut.
func TestHotBesideWrites(t *testing.T) {
	eachRing(t, func(t *testing.T, plain bool) {
		l, _ := open(t, small(vfs.NewMem(), plain))
		var newest atomic.Int64 // position of a frame
		var stop atomic.Bool
		var hits atomic.Int64
		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				var buf []byte
				for !stop.Load() {
					pos := message.Position(newest.Load())
					b, ok := l.Hot(buf[:0], pos, HeaderSize)
					if !ok {
						runtime.Gosched()
						continue
					}
					h, err := ParseHeader(b)
					if err != nil { // cut, and nothing there yet or a pad's inside
						continue
					}
					if b, ok = l.Hot(b[:0], pos, h.Size); ok && h.Kind != KindPad {
						if f, err := ParseFrame(b); err == nil {
							requireSame(t, payload(f.Index, len(f.Payload)), f.Payload)
							hits.Add(1)
						}
					}
					buf = b
				}
			})
		}
		rng := rand.New(rand.NewPCG(5, 5))
		index := uint64(1)
		for i := 0; i < 1000 || hits.Load() < 100; i++ {
			pos := add(t, l, 1, index, rng.IntN(4000))
			newest.Store(int64(pos))
			switch rng.IntN(10) {
			case 0:
				require.NoError(t, l.Rollback(pos))
				l.hold.last = mark{1, index - 1}
				continue
			case 1, 2, 3, 4:
				require.NoError(t, l.Write())
			case 5:
				require.NoError(t, l.Write())
				require.NoError(t, l.Sync())
			default:
				if l.Tail()-l.Written() > 20000 {
					require.NoError(t, l.Write())
				}
			}
			index++
		}
		stop.Store(true)
		readers.Wait()
	})
}

func requireSame(t *testing.T, want, got []byte) {
	if string(want) != string(got) {
		require.FailNow(t, "wrong payload")
	}
}

func TestHotDoesNotAllocate(t *testing.T) {
	l, _ := open(t, small(vfs.NewMem(), false))
	pos := add(t, l, 1, 1, 9000)
	dst := make([]byte, 0, 16<<10)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if b, ok := l.Hot(dst, pos, 9000); !ok || len(b) != 9000 {
			panic("not hot")
		}
	}))
}
