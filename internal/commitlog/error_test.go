package commitlog

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/message"
)

// failOnce lets the n-th operation of a kind fail, once: the second attempt would succeed, which is what makes failed syncs dangerous.
type failOnce struct {
	kind  errorfs.OpKind
	left  atomic.Int64
	err   error
	fired atomic.Bool
}

func (f *failOnce) String() string { return "(failOnce)" }

func (f *failOnce) MaybeError(op errorfs.Op) error {
	if op.Kind == f.kind && f.left.Add(-1) == -1 {
		f.fired.Store(true)
		return f.err
	}
	return nil
}

// errorScript is a run with everything in it; it stops at the first error.
func (p *player) errorScript() (err error) {
	var from message.Position
	if p.log, _, _, err = tryOpen(p.opts, from); err != nil {
		return err
	}
	for i := range 30 {
		next, err := p.tryAdd(p.now, 3)
		if err != nil {
			return err
		}
		p.begin(next, len(next))
		if err := p.log.Write(); err != nil {
			return err
		}
		p.end(0)
		settle(p.log)
		if i%2 == 0 {
			if err := p.log.Sync(); err != nil {
				return err
			}
			p.end(len(p.now))
		}
		if i == 10 || i == 20 {
			k := len(p.now) - 16
			p.begin(p.now[:k], k)
			if err := p.log.Truncate(p.now[k].pos); err != nil {
				return err
			}
			p.end(0)
			p.term++
		}
	}
	_, err = p.log.Drop(p.log.Synced())
	return err
}

// requireFailed checks that a log that failed stays failed, whoever asks.
func requireFailed(t *testing.T, l *Log, err error) {
	var failed *FailedError
	require.ErrorAs(t, err, &failed)
	require.NotEmpty(t, failed.Path)
	require.NotEmpty(t, failed.Op)
	_, _, e := l.Reserve(1)
	require.ErrorIs(t, e, ErrFailed)
	_, e2 := l.Drop(1 << 40)
	for _, e := range []error{l.Write(), l.Sync(), l.Truncate(l.Start()), l.Rollback(l.Start()), l.AppendFrame(nil), e2, l.Err()} {
		require.ErrorIs(t, e, ErrFailed)
	}
}

func TestEachErrorOfTheDiskEndsTheLogOrIsAnswered(t *testing.T) {
	kinds := map[string]errorfs.OpKind{
		"create": errorfs.OpCreate, "open": errorfs.OpOpen, "preallocate": errorfs.OpFilePreallocate, "write": errorfs.OpFileWriteAt, "append": errorfs.OpFileWrite,
		"sync": errorfs.OpFileSync, "sync data": errorfs.OpFileSyncData, "remove": errorfs.OpRemove, "open dir": errorfs.OpOpenDir, "list": errorfs.OpList,
		"stat": errorfs.OpStat, "file stat": errorfs.OpFileStat, "mkdir": errorfs.OpMkdirAll, "lock": errorfs.OpLock, "read": errorfs.OpFileReadAt,
	}
	for name, kind := range kinds {
		for _, prewrite := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " prewrite ", prewrite), func(t *testing.T) {
				t.Parallel()
				for n := int64(0); errorRun(t, kind, n, prewrite); n++ {
					require.Less(t, n, int64(1000))
				}
			})
		}
	}
}

// errorRun plays the script with one error and says whether that error came.
func errorRun(t *testing.T, kind errorfs.OpKind, n int64, prewrite bool) bool {
	mem := vfs.NewCrashableMem()
	fail := &failOnce{kind: kind, err: syscall.EIO}
	fail.left.Store(n)
	p := &player{t: t, rng: rand.New(rand.NewPCG(uint64(n), 7)), term: 1}
	p.opts = small(errorfs.Wrap(mem, fail), n%2 == 0)
	p.opts.Prewrite = prewrite
	err := p.errorScript()
	failed := err
	if p.log != nil {
		if f := p.log.failed.Load(); f != nil { // it may have failed in the background, at the end
			failed = f
			requireFailed(t, p.log, f)
		}
		require.NoError(t, p.log.Close())
		if f := p.log.failed.Load(); f != nil && failed == nil { // or even later
			failed = f
		}
	}
	if failed != nil {
		require.True(t, fail.fired.Load(), "%v", failed)
		require.ErrorIs(t, failed, syscall.EIO)
		require.NotErrorIs(t, failed, ErrFull)
	}
	if kind == errorfs.OpFileSync || kind == errorfs.OpFileSyncData {
		require.Equal(t, fail.fired.Load(), failed != nil, "no failed sync goes unheard")
	}
	for _, keep := range []int{0, 50} {
		again := p.opts
		again.FS = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: keep, RNG: p.rng})
		log, frames, _, err := tryOpen(again, firstStart(t, again))
		require.NoError(t, err, "after %v", failed)
		p.compare(frames, p.now, p.next, p.synced)
		require.NoError(t, log.Close())
	}
	return fail.fired.Load()
}

// fullDisk is a disk that is full while room is less than what is asked for. A write may write a part before it finds out.
type fullDisk struct {
	vfs.FS
	mu   sync.Mutex
	full bool
	part int64 // bytes that a write on a full disk writes before it fails
}

type fullFile struct {
	vfs.File
	disk *fullDisk
}

func (d *fullDisk) set(full bool, part int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full, d.part = full, part
}

func (d *fullDisk) state() (bool, int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.full, d.part
}

func (d *fullDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if full, part := d.state(); full && part == 0 {
		return nil, &fullError{}
	}
	f, err := d.FS.Create(name, c)
	return &fullFile{f, d}, err
}

func (d *fullDisk) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.OpenReadWrite(name, c, o...)
	return &fullFile{f, d}, err
}

func (f *fullFile) Preallocate(off, n int64) error {
	if full, _ := f.disk.state(); full {
		return &fullError{}
	}
	return f.File.Preallocate(off, n)
}

func (f *fullFile) WriteAt(p []byte, off int64) (int, error) {
	full, part := f.disk.state()
	if !full || strings.Trim(string(p), "\x00") == "" { // zeros go over bytes that are there
		return f.File.WriteAt(p, off)
	}
	n, err := f.File.WriteAt(p[:min(int64(len(p)), part)], off)
	if err == nil && n < len(p) {
		err = &fullError{}
	}
	return n, err
}

// fullError is how the operating system says it, wrapped.
type fullError struct{}

func (*fullError) Error() string { return "write: no space left on device" }
func (*fullError) Unwrap() error { return syscall.ENOSPC }

func TestFullDiskLosesNothing(t *testing.T) {
	eachRing(t, func(t *testing.T, plain bool) {
		for seed := range uint64(30) {
			fullRun(t, seed, plain)
		}
	})
}

// fullRun lets the disk be full every now and then; the tail's holder tries again, or drops what it could not write.
func fullRun(t *testing.T, seed uint64, plain bool) {
	mem := vfs.NewCrashableMem()
	disk := &fullDisk{FS: mem}
	p := &player{t: t, rng: rand.New(rand.NewPCG(seed, 8)), term: 1}
	p.opts = small(disk, plain)
	p.open()
	for range 40 {
		if p.rng.IntN(3) == 0 {
			disk.set(true, int64(p.rng.IntN(12000)))
		}
		before := p.now
		next := p.add(before, 1+p.rng.IntN(3))
		p.begin(next, len(next))
		for try := 0; ; try++ {
			err := p.log.Write()
			if err == nil {
				p.end(0)
				break
			}
			require.ErrorIs(t, err, ErrFull)
			require.NotErrorIs(t, err, ErrFailed)
			require.NoError(t, p.log.Err())
			if p.rng.IntN(2) == 0 || try > 0 {
				require.NoError(t, p.log.Rollback(p.log.Written()))
				p.begin(before, len(next))
				p.end(0)
				break
			}
			disk.set(false, 0)
		}
		disk.set(p.rng.IntN(4) == 0, 0)
		if p.rng.IntN(2) == 0 {
			require.NoError(t, p.log.Sync())
			p.end(len(p.now))
		}
	}
	require.NoError(t, p.log.Close())
	for _, keep := range []int{0, 40, 100} {
		again := p.opts
		again.FS = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: keep, RNG: p.rng})
		log, frames, _, err := tryOpen(again, 0)
		require.NoError(t, err)
		p.compare(frames, p.now, p.now, p.synced)
		require.NoError(t, log.Close())
	}
}

func TestRolledBackFramesNeverComeBack(t *testing.T) {
	mem := vfs.NewMem()
	disk := &fullDisk{FS: mem}
	l, _ := open(t, small(disk, false))
	add(t, l, 1, 1, 1000)
	require.NoError(t, l.Write())
	for i := uint64(2); i < 5; i++ {
		add(t, l, 1, i, 1000)
	}
	disk.set(true, 2*(1000+HeaderSize)) // two of the three get to the disk, whole
	require.ErrorIs(t, l.Write(), ErrFull)
	require.NoError(t, l.Rollback(l.Written()))
	disk.set(false, 0)
	add(t, l, 1, 2, 1000) // what follows it on the disk has the right place, term and index
	require.NoError(t, l.Write())
	require.NoError(t, l.Close())
	_, frames := open(t, small(mem, false))
	require.Len(t, frames, 2)
}

func TestSegmentThatCouldNotBeMadeAheadIsMadeWhenNeeded(t *testing.T) {
	fail := &failOnce{kind: errorfs.OpCreate, err: syscall.EMFILE}
	fail.left.Store(1) // not the first segment, but the next, made in the background
	l, _ := open(t, small(errorfs.Wrap(vfs.NewMem(), fail), false))
	for i := uint64(1); i < 20; i++ {
		add(t, l, 1, i, 10000)
		require.NoError(t, l.Write())
		settle(l)
	}
	require.True(t, fail.fired.Load())
	require.NoError(t, l.Sync())
}
