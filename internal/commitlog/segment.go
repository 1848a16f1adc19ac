package commitlog

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/metaqio/metaq/message"
)

const suffix = ".log"

// segment is one file of the log.
//
// It lives as long as somebody refers to it: the table of segments holds one reference, each reader one while it reads. The last to let go closes
// the file and the map, so that Drop, Truncate and Close never pull a file away from under a reader.
type segment struct {
	fs    vfs.FS
	path  string
	start message.Position
	size  int64

	refs       atomic.Int64
	firstIndex atomic.Uint64 // of the first entry; 0 when there is none yet
	firstTime  atomic.Int64  // ms; of the first entry
	lastTime   atomic.Int64  // ms; of the newest entry; 0 when unknown

	mu   sync.Mutex // guards opening the file and the map
	file atomic.Pointer[openFile]
	view atomic.Pointer[fileMap]
	// unmappable says that no map could be made, and that trying again is no use.
	unmappable atomic.Bool
}

// openFile wraps the interface for an atomic pointer.
type openFile struct{ vfs.File }

func newSegment(fs vfs.FS, dir string, start message.Position, size int64) *segment {
	s := &segment{fs: fs, path: fs.PathJoin(dir, segmentName(start)), start: start, size: size}
	s.refs.Store(1)
	return s
}

// segmentName is the file name of the segment that starts at a position.
func segmentName(start message.Position) string { return fmt.Sprintf("%020d%s", int64(start), suffix) }

// parseSegmentName is the inverse of segmentName.
func parseSegmentName(name string) (start message.Position, ok bool) {
	if len(name) != 20+len(suffix) || name[20:] != suffix {
		return 0, false
	}
	n, err := strconv.ParseInt(name[:20], 10, 64)
	if err != nil || n < 0 || segmentName(message.Position(n)) != name {
		return 0, false
	}
	return message.Position(n), true
}

func (s *segment) end() message.Position { return s.start + message.Position(s.size) }

// acquire keeps the segment's file open until release; false when the segment is gone.
func (s *segment) acquire() bool {
	for {
		n := s.refs.Load()
		if n == 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release lets go of the segment; the last one closes it.
func (s *segment) release() error {
	if s.refs.Add(-1) > 0 {
		return nil
	}
	var errs []error
	if m := s.view.Swap(nil); m != nil {
		errs = append(errs, m.close())
	}
	if f := s.file.Swap(nil); f != nil {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// open opens the file for reading unless it is open. REQUIRES: acquired.
func (s *segment) open() (vfs.File, error) {
	if f := s.file.Load(); f != nil {
		return f, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.file.Load(); f != nil {
		return f, nil
	}
	f, err := s.fs.Open(s.path)
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	s.file.Store(&openFile{f})
	return f, nil
}

// openForWriting opens the file to write into it, and makes it when it is missing. REQUIRES: nobody reads yet.
func (s *segment) openForWriting() error {
	f, err := s.fs.OpenReadWrite(s.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return &FailedError{Path: s.path, Op: "open", Err: err}
	}
	if old := s.file.Swap(&openFile{f}); old != nil { // recovery read with it
		if err := old.Close(); err != nil {
			return &FailedError{Path: s.path, Op: "close", Err: err}
		}
	}
	return nil
}

// allocate gives the file blocks for all of its bytes, and its size, so that later syncs have no metadata to write. REQUIRES: open for writing.
func (s *segment) allocate() error {
	f := s.file.Load()
	info, err := f.Stat()
	if err != nil {
		return &FailedError{Path: s.path, Op: "stat", Err: err}
	}
	if err := preallocate(f, s.size); err != nil {
		return &FailedError{Path: s.path, Op: "allocate", Err: err}
	}
	if info.Size() >= s.size {
		return nil
	}
	if !inMemory(f) { // where a size would be memory
		if _, err := f.WriteAt([]byte{0}, s.size-1); err != nil {
			return &FailedError{Path: s.path, Op: "write", Err: err}
		}
	}
	if err := f.Sync(); err != nil {
		return &FailedError{Path: s.path, Op: "sync", Err: err}
	}
	return nil
}

// preallocate gives a file blocks. File systems that cannot do that allocate as they are written.
func preallocate(f vfs.File, size int64) (err error) {
	for range 1000 {
		err = f.Preallocate(0, size)
		if !errors.Is(err, syscall.EINTR) { // a signal of the runtime stops it on some file systems
			break
		}
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// readAt fills p from the file; what lies behind a short file's end reads as zeros. REQUIRES: acquired.
func (s *segment) readAt(p []byte, off int64) error {
	f, err := s.open()
	if err != nil {
		return err
	}
	n, err := f.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read segment %s at %d: %w", s.path, off, err)
	}
	clear(p[n:])
	return nil
}

// inMemory says whether a file belongs to an in-memory disk.
func inMemory(f vfs.File) bool { return f.Fd() == vfs.InvalidFd }

// makeDir makes a directory, and makes its name durable, as well as the names of those above it that were missing. Without that, a power cut could
// take a new log with all that was synced in it.
func makeDir(fs vfs.FS, dir string) error {
	parents := []string{fs.PathDir(dir)} // always: whoever made dir before may not have synced its name
	for p := parents[0]; fs.PathDir(p) != p; p = fs.PathDir(p) {
		if _, err := fs.Stat(p); err == nil {
			break
		}
		parents = append(parents, fs.PathDir(p))
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, p := range parents {
		if err := syncDir(fs, p); err != nil {
			return err
		}
	}
	return nil
}

// syncDir makes the names in a directory durable.
func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return &FailedError{Path: dir, Op: "open", Err: err}
	}
	if err := d.Sync(); err != nil {
		return &FailedError{Path: dir, Op: "sync", Err: errors.Join(err, d.Close())}
	}
	if err := d.Close(); err != nil {
		return &FailedError{Path: dir, Op: "close", Err: err}
	}
	return nil
}
