package commitlog

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/message"
)

// gate stops the background's writes of zeros: each waits until the test lets it go.
type gate struct {
	mu      sync.Mutex
	writes  int // of steps of zeros that began
	closed  bool
	changed sync.Cond
}

func newGate() *gate {
	g := &gate{}
	g.changed.L = &g.mu
	return g
}

// wrap puts the gate in front of a disk. Zeros are known by the handle: only the tail's and the background's write at the same time, and the
// background's steps begin at page boundaries and are as long as a step.
func (g *gate) wrap(fs vfs.FS) vfs.FS { return &gateFS{FS: fs, gate: g} }

type gateFS struct {
	vfs.FS
	gate *gate
}

type gateFile struct {
	vfs.File
	gate *gate
}

func (fs *gateFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(name, c, o...)
	return &gateFile{f, fs.gate}, err
}

func (f *gateFile) WriteAt(p []byte, off int64) (int, error) {
	if len(p) > 0 && &p[0] == &zeros[0] {
		f.gate.pass()
	}
	return f.File.WriteAt(p, off)
}

func (g *gate) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes++
	g.changed.Broadcast()
	for g.closed {
		g.changed.Wait()
	}
}

func (g *gate) set(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = closed
	g.changed.Broadcast()
}

// await waits until the n-th step of zeros has begun.
func (g *gate) await(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.writes < n {
		g.changed.Wait()
	}
}

// idle waits until the background has nothing to do, and returns how far zeros go.
func idle(l *Log) message.Position {
	p := l.ahead
	for ; ; runtime.Gosched() {
		p.mu.Lock()
		_, _, n := p.nextZeros()
		done := !p.making && !p.wantsNext() && p.busy < 0 && (n <= 0 || !p.prewrite)
		zeroed := p.zeroed
		p.mu.Unlock()
		if done {
			return zeroed
		}
		select {
		case p.kick <- struct{}{}:
		default:
		}
	}
}

func TestZerosAreWrittenAheadIntoTheNextSegment(t *testing.T) {
	fs := vfs.NewCrashableMem()
	const segment = 128 << 10
	l, _ := open(t, Options{FS: fs, Dir: "log", SegmentBytes: segment, RingBytes: 64 << 10, Prewrite: true})
	add(t, l, 1, 1, 100)
	require.NoError(t, l.Write())
	require.EqualValues(t, 2*segment, idle(l), "both segments, since that is less than the distance")
	left := fs.CrashClone(vfs.CrashCloneCfg{})
	for _, start := range []message.Position{0, segment} {
		info, err := left.Stat("log/" + segmentName(start))
		require.NoError(t, err)
		require.EqualValues(t, segment, info.Size(), "synced")
	}
	for i := uint64(2); l.Tail() < 5*segment/2; i++ {
		add(t, l, 1, i, 10000)
		require.NoError(t, l.Write())
		idle(l) // the tail shall not overtake
	}
	require.EqualValues(t, 4*segment, idle(l))
	require.NoError(t, l.Iterate(0, func(f Frame) error {
		requireSame(t, payload(f.Index, len(f.Payload)), f.Payload)
		return nil
	}))
}

func TestTailWaitsForAStepOfZerosInItsWay(t *testing.T) {
	g := newGate()
	g.closed = true
	l, _ := open(t, Options{FS: g.wrap(vfs.NewMem()), Dir: "log", SegmentBytes: 256 << 10, RingBytes: 64 << 10, Prewrite: true})
	defer g.set(false)
	add(t, l, 1, 1, 100)
	require.NoError(t, l.Write())
	g.await(1) // zeros are about to be written right behind the first frame
	add(t, l, 1, 2, 10000)
	wrote := make(chan error)
	go func() { wrote <- l.Write() }() // received below
	p := l.ahead
	for range 100 {
		runtime.Gosched()
	}
	select {
	case <-wrote:
		require.Fail(t, "wrote where zeros were on their way")
	default:
	}
	p.mu.Lock()
	require.EqualValues(t, pageBytes, p.busy)
	p.mu.Unlock()
	g.set(false)
	require.NoError(t, <-wrote)
	idle(l)
	b, err := l.segments()[0].readFor(t, 0, int(l.Tail()))
	require.NoError(t, err)
	hot, ok := l.Hot(nil, 0, int(l.Tail()))
	require.True(t, ok)
	require.Equal(t, hot, b, "the frame, not the zeros, is on the disk")
}

// readFor reads a segment's file.
func (s *segment) readFor(_ *testing.T, off int64, n int) ([]byte, error) {
	b := make([]byte, n)
	return b, s.readAt(b, off)
}

func TestZerosJumpAheadWhenTheTailHasOvertaken(t *testing.T) {
	fs := vfs.NewMem()
	p := &preparer{active: newSegment(fs, "log", 0, 1<<30), claimed: 20*pageBytes + 1}
	s, from, n := p.nextZeros()
	require.Equal(t, p.active, s)
	require.EqualValues(t, 21*pageBytes, from, "at first right behind the tail")
	require.EqualValues(t, prewriteStep, n)
	p.zeroed = 10 * pageBytes // the background was slow
	_, from, _ = p.nextZeros()
	require.EqualValues(t, 21*pageBytes+prewriteJump, from)
	p.zeroed = p.claimed + p.distance() - 100
	_, from, n = p.nextZeros()
	require.Equal(t, p.zeroed, from)
	require.EqualValues(t, 100, n, "no further than that")
	p.zeroed = 1 << 30
	p.claimed = 1<<30 - 10
	_, _, n = p.nextZeros()
	require.Zero(t, n, "there is no next segment yet")
	p.next = newSegment(fs, "log", 1<<30, 1<<30)
	s, from, _ = p.nextZeros()
	require.Equal(t, p.next, s)
	require.EqualValues(t, 1<<30, from)
}

func TestErrorOfZerosEndsOnlyTheZeros(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWriteAt && op.Offset >= pageBytes && op.Offset%pageBytes == 0 {
			return errors.New("no")
		}
		return nil
	}))
	l, _ := open(t, Options{FS: fs, Dir: "log", SegmentBytes: 128 << 10, RingBytes: 64 << 10, Prewrite: true})
	for i := uint64(1); i < 50; i++ {
		add(t, l, 1, i, 1000)
		require.NoError(t, l.Write())
	}
	idle(l)
	require.NoError(t, l.Sync())
	l.ahead.mu.Lock()
	defer l.ahead.mu.Unlock()
	require.False(t, l.ahead.prewrite)
}
