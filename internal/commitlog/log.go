package commitlog

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/metaqio/metaq/message"
)

const lockName = "LOCK"

// Log is a log on a disk. See the package comment for who may call what.
type Log struct {
	opts  Options
	limit int64 // of a frame
	lock  io.Closer
	ring  *ring

	// table is the list of segments in order, without gaps; the last one takes the writes. It is replaced, never changed.
	// A new one is made under tableMu.
	table   atomic.Pointer[[]*segment]
	tableMu sync.Mutex
	dropMu  sync.Mutex // one Drop at a time; taken before tableMu, held while names are removed

	// tail ≥ written ≥ synced. Moved forward by the tail's holder (synced: under syncMu); moved back by cut under syncMu.
	tail    atomic.Int64 // end of what is sealed
	written atomic.Int64 // end of what pwrite has taken
	synced  atomic.Int64 // end of what is on the disk
	begun   atomic.Int64 // end of what WriteBack has begun to put there
	failed  atomic.Pointer[FailedError]
	closed  atomic.Bool

	// syncMu is held by Sync while the disk works (that is what it is for: one sync at a time, and none beside a cut). Lock order: syncMu, tableMu.
	syncMu sync.Mutex

	hold  tailState
	ahead *preparer
}

// tailState is what only the tail's holder touches.
type tailState struct {
	reserved message.Position   // of the last Reserve: where its frame will be
	buf      []byte             // what the last Reserve returned; nil once sealed
	active   *segment           // takes the writes
	cuts     []message.Position // where the data of each segment that was left ends, between written and tail
	firsts   []segmentFirst     // of segments begun between written and tail
	dirty    message.Position   // [written, dirty) of the segments may hold a write that failed
	stale    message.Position   // [written, stale) holds what was rolled back since: zeros go there before anything else

	last, lastWritten mark // the newest entry that is sealed, or written
	lastTime          int64
}

// mark is the place of an entry in raft's order; index 0 means unknown.
type mark struct{ term, index uint64 }

// segmentFirst is a segment's first entry.
type segmentFirst struct {
	pos   message.Position
	index uint64
	time  int64
	// before is the time of the entry before, which ends another segment; 0 when unknown.
	before int64
}

// Open locks the directory and lists its segments. Call [Log.Recover] next, before anything else but Close.
func Open(opts Options) (*Log, error) {
	opts.ensureDefaults()
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := makeDir(opts.FS, opts.Dir); err != nil {
		return nil, fmt.Errorf("make the log's directory: %w", err)
	}
	lock, err := opts.FS.Lock(opts.FS.PathJoin(opts.Dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("lock the log's directory %s (another process may use it): %w", opts.Dir, err)
	}
	l := &Log{opts: opts, lock: lock}
	if err := l.open(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Log) open() (err error) {
	segs, err := listSegments(l.opts.FS, l.opts.Dir, l.opts.SegmentBytes)
	if err != nil {
		return err
	}
	l.table.Store(&segs)
	if l.ring, err = newRing(l.opts.RingBytes, l.opts.PlainRing); err != nil {
		return err
	}
	l.limit = min(l.ring.maxFrame(), l.opts.SegmentBytes)
	return nil
}

// segments returns the current list. The segments in it may be dropped at any time: acquire them before use.
func (l *Log) segments() []*segment {
	if t := l.table.Load(); t != nil {
		return *t
	}
	return nil
}

// find returns the segment that holds a position.
func (l *Log) find(pos message.Position) (*segment, bool) {
	segs := l.segments()
	if len(segs) == 0 || pos < segs[0].start {
		return nil, false
	}
	i := int64(pos-segs[0].start) / l.opts.SegmentBytes
	if i >= int64(len(segs)) {
		return nil, false
	}
	return segs[i], true
}

// addSegment puts a segment at the end of the table.
func (l *Log) addSegment(s *segment) {
	l.tableMu.Lock()
	defer l.tableMu.Unlock()
	segs := append(slices.Clone(l.segments()), s)
	l.table.Store(&segs)
}

// Tail is the position behind the newest sealed frame. The next frame may lie further on, at the start of the next segment.
func (l *Log) Tail() message.Position { return message.Position(l.tail.Load()) }

// Written is the position up to which the log was given to the operating system.
func (l *Log) Written() message.Position { return message.Position(l.written.Load()) }

// Synced is the position up to which the log is known to be on the disk.
func (l *Log) Synced() message.Position { return message.Position(l.synced.Load()) }

// Start is the first position that the log still has.
func (l *Log) Start() message.Position {
	if segs := l.segments(); len(segs) > 0 {
		return segs[0].start
	}
	return 0
}

// RingBytes is how much of the newest log is kept in memory.
func (l *Log) RingBytes() int64 { return l.ring.size }

// Err is the error that ended the log, nil while it works.
func (l *Log) Err() error {
	if f := l.failed.Load(); f != nil {
		return f
	}
	if l.closed.Load() {
		return ErrClosed
	}
	return nil
}

// fail ends the log with an error of the disk; the first one counts.
func (l *Log) fail(op, path string, err error) error {
	if known, ok := errors.AsType[*FailedError](err); ok {
		op, path, err = known.Op, known.Path, known.Err
	}
	if l.failed.CompareAndSwap(nil, &FailedError{Path: path, Op: op, Err: err}) {
		l.opts.Log.Error("log failed", "op", op, "file", path, "error", err)
	}
	return l.failed.Load()
}

// judge turns an error of making or writing a segment into ErrFull, after which the log goes on, or into its end.
func (l *Log) judge(err error) error {
	var f *FailedError
	if errors.As(err, &f) && f.Op != "sync" && isFull(f.Err) {
		return fmt.Errorf("%w: %s %s: %w", ErrFull, f.Op, f.Path, f.Err)
	}
	return l.fail("write", l.opts.Dir, err)
}

// Close stops the background work and lets go of files and memory. Readers that are under way finish; later calls return [ErrClosed]. The tail's
// holder must have stopped. It syncs nothing: call [Log.Sync] before.
func (l *Log) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	var errs []error
	if l.ahead != nil {
		errs = append(errs, l.ahead.close())
	}
	l.syncMu.Lock() // a Sync that runs ends first
	defer l.syncMu.Unlock()
	if l.ring != nil {
		errs = append(errs, l.ring.close())
	}
	l.tableMu.Lock()
	defer l.tableMu.Unlock()
	for _, s := range l.segments() {
		errs = append(errs, s.release())
	}
	l.table.Store(nil)
	if err := l.lock.Close(); err != nil {
		errs = append(errs, fmt.Errorf("unlock the log's directory: %w", err))
	}
	return errors.Join(errs...)
}
