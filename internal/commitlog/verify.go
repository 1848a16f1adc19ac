package commitlog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/metaqio/metaq/message"
)

// maxProblems is how many problems Verify lists; it counts all.
const maxProblems = 1000

// Problem is something that Verify found, at a place.
type Problem struct {
	File     string
	Position message.Position
	Why      string
}

func (p Problem) String() string {
	return fmt.Sprintf("%s at position %d: %s", p.File, p.Position, p.Why)
}

// Report is what Verify found.
type Report struct {
	Segments              int
	SegmentBytes          int64             // as the names and sizes of the files say
	Frames                [lastKind + 1]int // by kind
	Records               uint64            // in message frames
	Start, Tail           message.Position  // of the first segment; behind the last good frame
	FirstIndex, LastIndex uint64            // of the first and last good entry
	FirstTime, LastTime   int64             // ms
	// Behind is how many bytes lie behind the tail that are not zero: the end of a write that a crash, or this moment in a running broker, cut
	// short. Recovery removes them.
	Behind   int64
	Problems []Problem // the first 1000
	Count    int       // of problems
}

// verifier is a Verify that runs.
type verifier struct {
	Report
	fs     vfs.FS
	segs   []*segment
	scan   scanner
	last   mark
	pos    message.Position
	done   int64 // bytes that were reported to step
	padded bool  // the last good frame is a pad
	ended  bool  // behind pos there is no frame
	total  int64
	step   func(done, total int64)
}

// Verify reads every frame of every segment in a directory, and needs no lock: a running broker may go on. It changes nothing. progress, if not
// nil, is called after each part with bytes; fs is vfs.Default when nil. The error is for what could not be read; what could be read but is wrong is in the report.
func Verify(dir string, fs vfs.FS, progress func(done, total int64)) (Report, error) {
	v := &verifier{fs: fs, step: progress}
	if v.step == nil {
		v.step = func(int64, int64) {}
	}
	if err := v.list(dir); err != nil {
		return v.Report, fmt.Errorf("verify log %s: %w", dir, err)
	}
	var errs []error
	for i := range v.segs {
		if err := errors.Join(errs...); err == nil && !v.ended {
			errs = append(errs, v.segment(i))
		}
		if i > 0 { // what lies behind the tail may begin in the segment before
			errs = append(errs, v.segs[i-1].release())
		}
	}
	if n := len(v.segs); n > 0 {
		errs = append(errs, v.segs[n-1].release())
	}
	if err := errors.Join(errs...); err != nil {
		return v.Report, fmt.Errorf("verify log %s: %w", dir, err)
	}
	v.step(v.total, v.total)
	return v.Report, nil
}

// list finds the segments and their size.
func (v *verifier) list(dir string) error {
	if v.fs == nil {
		v.fs = vfs.Default
	}
	names, err := v.fs.List(dir)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	slices.Sort(names)
	var starts []message.Position
	for _, name := range names {
		start, ok := parseSegmentName(name)
		if !ok {
			continue
		}
		info, err := v.fs.Stat(v.fs.PathJoin(dir, name))
		if err != nil {
			return fmt.Errorf("stat segment: %w", err)
		}
		v.SegmentBytes = max(v.SegmentBytes, (info.Size()+pageBytes-1)/pageBytes*pageBytes)
		starts = append(starts, start)
	}
	for i := 1; i < len(starts); i++ { // files may be shorter than segments, distances are not
		if d := int64(starts[i] - starts[i-1]); i == 1 || d < v.SegmentBytes {
			v.SegmentBytes = d
		}
	}
	v.SegmentBytes = max(v.SegmentBytes, minSegmentBytes)
	for _, start := range starts {
		v.segs = append(v.segs, newSegment(v.fs, dir, start, v.SegmentBytes))
	}
	v.Segments = len(starts)
	v.total = v.SegmentBytes * int64(len(starts))
	if len(starts) > 0 {
		v.Start, v.Tail, v.pos = starts[0], starts[0], starts[0]
	}
	return nil
}

// gap reports segments that are missing before one.
func (v *verifier) gap(s *segment) {
	if v.pos < s.start {
		v.problem(s, v.pos, "segments are missing before this one")
		v.pos, v.last = s.start, mark{}
	}
}

// segment verifies the segment with number i.
func (v *verifier) segment(i int) error {
	s := v.segs[i]
	v.gap(s)
	v.scan.reset(s)
	for off := int64(v.pos - s.start); s.size-off >= HeaderSize && !v.ended; off = int64(v.pos - s.start) {
		f, why, unsupported, err := v.scan.frame(off)
		if err != nil {
			return err
		}
		if why == "" && f.Kind != KindPad {
			why = v.last.follows(&f.Header)
		}
		switch {
		case why == "":
			v.good(f)
		case unsupported:
			v.problem(s, v.pos, why)
			v.pos, v.last = f.end(), mark{}
		default:
			if err := v.bad(i, off, why); err != nil {
				return err
			}
		}
		if done := v.SegmentBytes*int64(i) + int64(v.pos-s.start); done-v.done >= scanBytes {
			v.done = done
			v.step(done, v.total)
		}
	}
	if !v.ended {
		v.pos = s.end()
	}
	return nil
}

// bad decides what it means that no good frame begins at an offset of segment i: a problem if one is found further on, else the end of the log.
func (v *verifier) bad(i int, off int64, why string) error {
	for k, from := i, off; k < len(v.segs); k, from = k+1, 0 {
		s := v.segs[k]
		v.scan.reset(s)
		f, found, err := v.scan.nextFrame(from)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if f.Position != v.pos { // it lies further on: a running broker may have written both while we looked
			v.scan.reset(v.segs[i])
			if _, now, _, err := v.scan.frame(off); err != nil || now == "" {
				return err
			}
		}
		v.skip(v.segs[i], f, why)
		return nil
	}
	v.ended = true
	return v.behind(i)
}

// skip reports the problem at pos and goes on at the good frame f, or at the end of the segment.
func (v *verifier) skip(s *segment, f Frame, why string) {
	if f.Kind != KindPad && f.synced() <= v.pos {
		why += "; nothing proves that it had been synced: recovery would end the log here"
	}
	v.problem(s, v.pos, why)
	v.last = mark{}
	if f.Position == v.pos { // whole, but out of order
		v.good(f)
		return
	}
	v.pos = min(f.Position, s.end())
}

// behind counts the bytes behind the tail, which lies in segment i or before.
func (v *verifier) behind(i int) error {
	for k, s := range v.segs {
		if k < i && s.end() <= v.Tail {
			continue
		}
		v.scan.reset(s)
		off := max(0, int64(v.Tail-s.start))
		last, err := v.scan.lastData(off)
		if err != nil {
			return err
		}
		if last > off {
			v.Behind = int64(s.start-v.Tail) + last
		}
	}
	if v.padded {
		v.Behind = max(0, v.Behind-HeaderSize) // a pad goes with the frame that did not fit
	}
	return nil
}

// good counts a frame.
func (v *verifier) good(f Frame) {
	v.Frames[f.Kind]++
	v.pos = f.end()
	if v.padded = f.Kind == KindPad; v.padded {
		return
	}
	if f.Kind == KindMessages {
		v.Records += uint64(f.Count)
	}
	if v.FirstIndex == 0 {
		v.FirstIndex, v.FirstTime = f.Index, f.Time
	}
	v.last = mark{f.Term, f.Index}
	v.LastIndex, v.LastTime, v.Tail = f.Index, f.Time, f.end()
}

func (v *verifier) problem(s *segment, pos message.Position, why string) {
	v.Count++
	if len(v.Problems) < maxProblems {
		v.Problems = append(v.Problems, Problem{File: s.path, Position: pos, Why: why})
	}
}
