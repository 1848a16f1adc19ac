package commitlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/metaqio/metaq/message"
)

// The note of a cut (file cutName) says that everything from a position on is to be removed. It is on the disk before the first byte of synced
// frames is zeroed, and gone before the log grows again; recovery completes a cut that it finds. Without it, a power cut in the middle would leave
// zeros with good frames behind, which is what damage looks like. Layout: magic "MQCUT\x00\x00\x01", u64 position, u32 CRC-32C of the 16 bytes before.
const (
	cutName  = "CUT"
	cutMagic = "MQCUT\x00\x00\x01"
	cutBytes = len(cutMagic) + 8 + 4
)

// Rollback removes the frames from a position on, which must be where a frame begins (or the tail). It is for frames that are not needed after
// all, such as those that Write could not write; for those that were not written it touches memory only. Tail's holder only.
func (l *Log) Rollback(to message.Position) error { return l.cut(to) }

// Truncate removes the frames from a position on, which must be where a frame begins (or the tail), for good: when it returns, no crash brings
// them back. For a follower whose leader says otherwise. Waits for readers in the ring and for a Sync that runs. Tail's holder only.
func (l *Log) Truncate(to message.Position) error { return l.cut(to) }

func (l *Log) cut(to message.Position) error {
	if err := l.Err(); err != nil {
		return err
	}
	tail := l.Tail()
	if to > tail {
		return fmt.Errorf("%w: cut at %d, the tail is %d", ErrBeyondTail, to, tail)
	}
	if to == tail {
		return nil
	}
	l.syncMu.Lock() // no sync may count bytes that are about to go
	defer l.syncMu.Unlock()
	l.dropMu.Lock() // nor may their segments
	defer l.dropMu.Unlock()
	if to < l.Start() {
		return fmt.Errorf("%w: cut at %d, the start is %d", ErrDropped, to, l.Start())
	}
	if to < l.Synced() {
		if err := l.noteCut(to); err != nil {
			return l.judge(err)
		}
	}
	t := &l.hold
	l.ring.retract(to)
	l.tail.Store(int64(to))
	t.buf = nil
	t.cuts = slices.DeleteFunc(t.cuts, func(c message.Position) bool { return c >= to })
	t.firsts = slices.DeleteFunc(t.firsts, func(f segmentFirst) bool { return f.pos >= to })
	t.last = mark{}
	if to >= l.Written() {
		if to == l.Written() {
			t.last = t.lastWritten
		}
		return l.cutUnwritten()
	}
	return l.cutWritten(to)
}

// cutUnwritten removes what a failed write may have left. If the disk is too full even for that, the next Write does it before anything else.
func (l *Log) cutUnwritten() error {
	t := &l.hold
	t.stale, t.dirty = max(t.stale, t.dirty), 0
	if err := l.clean(); err != nil && !errors.Is(err, ErrFull) {
		return err
	}
	return nil
}

// clean zeroes what was rolled back but may be on the disk, and syncs the zeros: were they written together with the frames that come next, a
// power cut could keep old and new ones.
func (l *Log) clean() error {
	t := &l.hold
	for pos := l.Written(); pos < t.stale; {
		s, ok := l.find(pos)
		if !ok {
			break // that segment could not be made
		}
		end := min(s.end(), t.stale)
		l.ahead.claim(end)
		if err := zero(s.file.Load(), s, int64(pos-s.start), int64(end-s.start)); err != nil {
			return l.judge(err)
		}
		pos = s.end()
	}
	t.stale = 0
	return nil
}

// cutWritten removes frames from the disk. REQUIRES: syncMu held, to < written.
func (l *Log) cutWritten(to message.Position) error {
	t := &l.hold
	end := max(l.Written(), t.dirty, t.stale)
	l.written.Store(int64(to))
	l.synced.Store(int64(min(to, l.Synced())))
	if err := l.cutSegments(to, end); err != nil {
		return l.fail("cut", l.opts.Dir, err)
	}
	if err := l.forgetCut(); err != nil {
		return l.fail("cut", l.opts.Dir, err)
	}
	if a := t.active; to == a.start {
		a.firstIndex.Store(0)
		a.firstTime.Store(0)
		a.lastTime.Store(0)
	}
	t.dirty, t.stale, t.lastWritten = 0, 0, mark{}
	l.opts.Log.Info("log cut", "position", int64(to), "bytes", int64(end-to))
	return nil
}

// cutSegments removes [to, end) from the disk: the segments behind the one that holds to, the newest first, and then the bytes in that one.
func (l *Log) cutSegments(to, end message.Position) error {
	keep := l.segmentOf(to)
	if keep == l.hold.active {
		return zero(keep.file.Load(), keep, int64(to-keep.start), int64(min(end, keep.end())-keep.start))
	}
	// Readers may hold the segment open for reading only: a new one for the same file takes its place.
	active := newSegment(l.opts.FS, l.opts.Dir, keep.start, keep.size)
	active.firstIndex.Store(keep.firstIndex.Load())
	active.firstTime.Store(keep.firstTime.Load())
	active.lastTime.Store(keep.lastTime.Load()) // not before that
	if err := active.openForWriting(); err != nil {
		return err
	}
	next := l.ahead.pause()
	gone := l.replaceFrom(active)
	if next != nil {
		gone = append(gone, next)
	}
	l.hold.active = active
	for i, s := range slices.Backward(gone) {
		if i == 0 { // the old one of the same file
			if err := s.release(); err != nil {
				return err
			}
			continue
		}
		if err := removeSegment(l.opts.FS, l.opts.Dir, s); err != nil {
			return err
		}
	}
	l.ahead.resume(active, to)
	return zero(active.file.Load(), active, int64(to-active.start), active.size)
}

// segmentOf returns the segment that is to take the writes when the tail is at a position: the one that holds it, or that ends there. REQUIRES: Start ≤ pos ≤ written.
func (l *Log) segmentOf(pos message.Position) *segment {
	if s, ok := l.find(pos); ok {
		return s
	}
	segs := l.segments()
	return segs[len(segs)-1]
}

// replaceFrom puts a segment where one with the same start was, as the last of the table, and returns the old one and all behind it.
func (l *Log) replaceFrom(s *segment) (gone []*segment) {
	l.tableMu.Lock()
	defer l.tableMu.Unlock()
	segs := l.segments()
	i := slices.IndexFunc(segs, func(o *segment) bool { return o.start == s.start })
	table := append(slices.Clone(segs[:i]), s)
	l.table.Store(&table)
	return slices.Clone(segs[i:])
}

// zero writes zeros to [from, to) of a segment's file and syncs them.
func zero(f vfs.File, s *segment, from, to int64) error {
	if from >= to {
		return nil
	}
	for at := from; at < to; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), to-at)], at); err != nil {
			return &FailedError{Path: s.path, Op: "write", Err: err}
		}
	}
	if err := f.SyncData(); err != nil {
		return &FailedError{Path: s.path, Op: "sync", Err: err}
	}
	return nil
}

// noteCut puts the note of a cut on the disk.
func (l *Log) noteCut(to message.Position) (err error) {
	path := l.opts.FS.PathJoin(l.opts.Dir, cutName)
	f, err := l.opts.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return &FailedError{Path: path, Op: "create", Err: err}
	}
	b := binary.BigEndian.AppendUint64([]byte(cutMagic), uint64(to))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	if _, err := f.Write(b); err != nil {
		return &FailedError{Path: path, Op: "write", Err: errors.Join(err, f.Close())}
	}
	if err := f.Sync(); err != nil {
		return &FailedError{Path: path, Op: "sync", Err: errors.Join(err, f.Close())}
	}
	if err := f.Close(); err != nil {
		return &FailedError{Path: path, Op: "close", Err: err}
	}
	return syncDir(l.opts.FS, l.opts.Dir)
}

// readCut returns the position of the note of a cut; found is false when there is none, or one that was never completed (then nothing was cut yet).
func (l *Log) readCut() (to message.Position, found bool, err error) {
	names, err := l.opts.FS.List(l.opts.Dir)
	if err != nil {
		return 0, false, fmt.Errorf("list the log's directory: %w", err)
	}
	if !slices.Contains(names, cutName) {
		return 0, false, nil
	}
	f, err := l.opts.FS.Open(l.opts.FS.PathJoin(l.opts.Dir, cutName))
	if err != nil {
		return 0, false, fmt.Errorf("open the note of a cut: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, int64(cutBytes)+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, false, fmt.Errorf("read the note of a cut: %w", err)
	}
	to, found = parseCut(b)
	return to, found, nil
}

func parseCut(b []byte) (to message.Position, ok bool) {
	if len(b) != cutBytes || string(b[:len(cutMagic)]) != cutMagic {
		return 0, false
	}
	to = message.Position(binary.BigEndian.Uint64(b[len(cutMagic):]))
	return to, to >= 0 && crc32.Checksum(b[:cutBytes-4], castagnoli) == binary.BigEndian.Uint32(b[cutBytes-4:])
}

// forgetCut removes the note of a cut, if there is one, for good.
func (l *Log) forgetCut() error {
	path := l.opts.FS.PathJoin(l.opts.Dir, cutName)
	names, err := l.opts.FS.List(l.opts.Dir)
	if err != nil {
		return fmt.Errorf("list the log's directory: %w", err)
	}
	if !slices.Contains(names, cutName) {
		return nil
	}
	if err := l.opts.FS.Remove(path); err != nil {
		return &FailedError{Path: path, Op: "remove", Err: err}
	}
	return syncDir(l.opts.FS, l.opts.Dir)
}
