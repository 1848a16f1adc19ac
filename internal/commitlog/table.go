package commitlog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/metaqio/metaq/message"
)

// SegmentInfo describes a segment.
type SegmentInfo struct {
	Path       string
	Start      message.Position // first position
	Size       int64            // bytes of the file
	Used       int64            // bytes up to the tail; Size but for the last segment
	FirstIndex uint64           // raft index of the first entry; 0 when there is none
	FirstTime  int64            // ms; time of the first entry
	// LastTime is the time of the last entry in ms, 0 when there is none. Of a segment that neither recovery nor a write of this run has passed
	// through, it is the time of the first entry of the next segment, which is later, if anything.
	LastTime int64
}

// listSegments returns the segments in a directory, in order.
func listSegments(fs vfs.FS, dir string, size int64) ([]*segment, error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, fmt.Errorf("list the log's directory: %w", err)
	}
	slices.Sort(names)
	var segs []*segment
	for _, name := range names {
		start, ok := parseSegmentName(name)
		if !ok {
			continue
		}
		s := newSegment(fs, dir, start, size)
		switch {
		case int64(start)%size != 0:
			return nil, fmt.Errorf("segment %s does not begin at a multiple of the segment size %d: was the size changed?", s.path, size)
		case len(segs) > 0 && segs[len(segs)-1].end() != start:
			return nil, &CorruptError{File: s.path, Position: segs[len(segs)-1].end(), Why: "the segment before this one is missing"}
		}
		info, err := fs.Stat(s.path)
		if err != nil {
			return nil, fmt.Errorf("stat segment: %w", err)
		}
		if info.Size() > size {
			return nil, fmt.Errorf("segment %s has %d bytes, more than the segment size %d: was the size changed?", s.path, info.Size(), size)
		}
		segs = append(segs, s)
	}
	return segs, nil
}

// readFirst reads what a segment's first entry says, for segments that recovery does not scan. It trusts the header.
func (s *segment) readFirst() error {
	var b [HeaderSize]byte
	if err := s.readAt(b[:], 0); err != nil {
		return err
	}
	if h, why := checkHeader(b[:], s.start, s.size); why == "" && h.Index != 0 {
		s.firstIndex.Store(h.Index)
		s.firstTime.Store(h.Time)
	}
	return nil
}

// Segments lists the segments, the oldest first; the last one takes the writes. Any goroutine.
func (l *Log) Segments() []SegmentInfo {
	segs := l.segments()
	infos := make([]SegmentInfo, len(segs))
	for i, s := range segs {
		infos[i] = SegmentInfo{
			Path: s.path, Start: s.start, Size: s.size, Used: min(s.size, max(0, l.tail.Load()-int64(s.start))),
			FirstIndex: s.firstIndex.Load(), FirstTime: s.firstTime.Load(), LastTime: s.lastTime.Load(),
		}
		if i > 0 && infos[i-1].LastTime == 0 {
			infos[i-1].LastTime = infos[i].FirstTime
		}
	}
	return infos
}

// Drop removes the segments that lie wholly below a position, the oldest first, but never the one that takes the writes. It returns how many
// went. Readers that are under way keep what they read. Any goroutine.
func (l *Log) Drop(before message.Position) (n int, err error) {
	if err := l.Err(); err != nil {
		return 0, err
	}
	before = min(before, l.Synced())
	l.dropMu.Lock()
	defer l.dropMu.Unlock()
	for {
		s := l.dropFirst(before)
		if s == nil {
			return n, nil
		}
		if err := l.opts.FS.Remove(s.path); err != nil { // nothing is lost: it is still there, and readable
			l.putFirst(s)
			return n, fmt.Errorf("remove segment: %w", err)
		}
		// Names go one by one: after a power cut in between, the rest must still be without gaps.
		if err := syncDir(l.opts.FS, l.opts.Dir); err != nil {
			return n, errors.Join(l.fail("sync", l.opts.Dir, err), s.release())
		}
		if err := s.release(); err != nil {
			return n, fmt.Errorf("close dropped segment: %w", err)
		}
		n++
		l.opts.Log.Info("segment dropped", "file", s.path)
	}
}

// dropFirst takes the oldest segment out of the table if it lies below a position.
func (l *Log) dropFirst(before message.Position) *segment {
	l.tableMu.Lock()
	defer l.tableMu.Unlock()
	segs := l.segments()
	if len(segs) < 2 || segs[0].end() > before {
		return nil
	}
	rest := slices.Clone(segs[1:])
	l.table.Store(&rest)
	return segs[0]
}

// putFirst takes back a dropFirst.
func (l *Log) putFirst(s *segment) {
	l.tableMu.Lock()
	defer l.tableMu.Unlock()
	segs := append([]*segment{s}, l.segments()...)
	l.table.Store(&segs)
}

// removeSegment removes a segment's file, for good, and lets go of it.
func removeSegment(fs vfs.FS, dir string, s *segment) error {
	if err := fs.Remove(s.path); err != nil {
		return errors.Join(&FailedError{Path: s.path, Op: "remove", Err: err}, s.release())
	}
	return errors.Join(syncDir(fs, dir), s.release())
}
