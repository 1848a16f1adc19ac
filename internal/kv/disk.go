package kv

import (
	"errors"
	"io/fs"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// How long a write waits on a full disk before it tries again.
const (
	firstWait = 10 * time.Millisecond
	maxWait   = 500 * time.Millisecond
)

// disk is where the engine keeps its files. The engine answers a full disk by trying again at once, for ever, and one
// that fills up in the middle of a change to its list of files by ending the process. Here a write that finds the disk
// full waits until there is room, which holds up checkpoints and nothing else.
type disk struct {
	vfs.FS
	state *state
}

// state is what becomes of a store's disk.
type state struct {
	open   atomic.Bool   // the store is open: before that, every error is the opener's
	hurry  chan struct{} // closed when nobody has time any more to wait for room
	failed chan struct{} // closed when the store can't go on
	err    error         // why; set before failed is closed
	ending atomic.Bool   // failed is being closed
	broken atomic.Pointer[error]
}

func newState() *state { return &state{hurry: make(chan struct{}), failed: make(chan struct{})} }

// fail ends the store; the first reason counts.
func (s *state) fail(err error) {
	if s.ending.CompareAndSwap(false, true) {
		s.err = err
		close(s.failed)
	}
}

// failure is why the store can't go on, or nil.
func (s *state) failure() error {
	select {
	case <-s.failed:
		return s.err
	default:
		return nil
	}
}

// admit lets nothing be written any more once the store has failed: its engine would try for ever.
func (s *state) admit() {
	if s.failure() != nil {
		select {} // the process is about to end, or the store has been given up
	}
}

// again says whether something that ended with err is to be tried once more, after a while.
func (s *state) again(err error, wait *time.Duration) bool {
	if err == nil || !s.open.Load() {
		return false
	}
	if !vfs.IsNoSpaceError(err) && !errors.Is(err, syscall.EDQUOT) {
		s.broken.CompareAndSwap(nil, &err)
		return false
	}
	select {
	case <-s.hurry:
		s.fail(ErrFull)
		s.admit()
	default:
	}
	*wait = min(max(2**wait, firstWait), maxWait)
	timer := time.NewTimer(*wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.hurry: // one last time
	case <-s.failed:
	}
	return true
}

// patiently does something until the disk has room for it.
func (s *state) patiently(do func() error) error {
	var wait time.Duration
	for {
		s.admit()
		if err := do(); !s.again(err, &wait) {
			return err
		}
	}
}

// Create implements vfs.FS.
func (d *disk) Create(name string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = d.state.patiently(func() error { f, err = d.FS.Create(name, c); return err })
	return d.file(f, name), err
}

// OpenReadWrite implements vfs.FS.
func (d *disk) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (f vfs.File, err error) {
	err = d.state.patiently(func() error { f, err = d.FS.OpenReadWrite(name, c, o...); return err })
	return d.file(f, name), err
}

// ReuseForWrite implements vfs.FS.
func (d *disk) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = d.state.patiently(func() error { f, err = d.FS.ReuseForWrite(from, to, c); return err })
	return d.file(f, to), err
}

// Link implements vfs.FS.
func (d *disk) Link(from, to string) error {
	return d.state.patiently(func() error { return d.FS.Link(from, to) })
}

// Rename implements vfs.FS.
func (d *disk) Rename(from, to string) error {
	return d.state.patiently(func() error { return d.FS.Rename(from, to) })
}

// OpenDir implements vfs.FS: what is synced through a directory must be heard of too.
func (d *disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	return d.file(f, name), err
}

// Unwrap implements vfs.FS.
func (d *disk) Unwrap() vfs.FS { return d.FS }

func (d *disk) file(f vfs.File, name string) vfs.File {
	if f == nil {
		return nil
	}
	return &diskFile{f, d.state, name}
}

// diskFile is a file that is written.
type diskFile struct {
	vfs.File
	state *state
	name  string
}

// Write implements io.Writer. A full disk may have taken the beginning of p.
func (f *diskFile) Write(p []byte) (n int, err error) {
	err = f.state.patiently(func() error {
		k, err := f.File.Write(p[n:])
		n += k
		return err
	})
	return n, f.named("write", err)
}

// WriteAt implements io.WriterAt.
func (f *diskFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.state.patiently(func() error {
		k, err := f.File.WriteAt(p[n:], off+int64(n))
		n += k
		return err
	})
	return n, f.named("write", err)
}

// Sync implements vfs.File. It is tried once: after a failed one, the kernel may have dropped what it could not write.
func (f *diskFile) Sync() error { return f.synced(f.File.Sync()) }

// SyncData implements vfs.File.
func (f *diskFile) SyncData() error { return f.synced(f.File.SyncData()) }

// SyncTo implements vfs.File.
func (f *diskFile) SyncTo(length int64) (full bool, err error) {
	full, err = f.File.SyncTo(length)
	return full, f.synced(err)
}

func (f *diskFile) synced(err error) error {
	if err != nil && f.state.open.Load() {
		f.state.broken.CompareAndSwap(nil, &err)
	}
	return f.named("sync", err)
}

// named puts the path into an error that does not have it.
func (f *diskFile) named(op string, err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok || err == nil {
		return err
	}
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}
