package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/metaqio/metaq/message"
)

// loadBytes is how much of the log recovery puts into the ring. More would only make an idle server larger: older parts are in the page cache.
const loadBytes = 8 << 20

// Recovery says what recovery found.
type Recovery struct {
	From, Tail          message.Position
	Frames              int   // frames that were verified, pads not counted
	Bytes               int64 // from From to Tail
	LastTerm, LastIndex uint64
	LastTime            int64 // ms; of the newest entry; 0 when there was none behind From
	Segments            int
	// Torn says that the log ended in the middle of something: CutBytes from Tail on were removed, with CutFrames whole frames among them.
	// None of it had been synced. Why says what the first bad frame's problem was.
	Torn      bool
	CutBytes  int64
	CutFrames int
	Why       string
	Took      time.Duration
}

// recovery is a Recover that runs.
type recovery struct {
	log  *Log
	scan scanner
	last mark
	Recovery

	pad   bool             // a pad was passed behind the last entry
	bad   message.Position // where a frame should begin and none does
	dirty message.Position // end of the last byte behind bad that is not zero
}

// Recover makes the log ready for use. It verifies every frame from a position on, which must be 0 or where a frame may begin and up to which the
// log is known to have been synced (the checkpoint of the views), and calls fn with each entry in order; the frame is valid until fn returns.
//
// Where the first frame is bad, out of order, or missing, the log ends, if that may be what a power cut leaves: then the rest is removed and Recovery says
// so. If a frame further behind proves that the bad one had been synced ([CorruptError]), or comes from a newer program, nothing is changed.
// An empty directory becomes a log that starts at position 0. Damage below from is found by [Verify].
func (l *Log) Recover(from message.Position, fn func(Frame) error) (Recovery, error) {
	if err := l.Err(); err != nil {
		return Recovery{}, err
	}
	if l.ahead != nil {
		return Recovery{}, fmt.Errorf("recover log %s: it was recovered already", l.opts.Dir)
	}
	begin := time.Now()
	r := &recovery{log: l, Recovery: Recovery{From: from, Tail: from}}
	if err := r.run(fn); err != nil {
		return r.Recovery, fmt.Errorf("recover log %s: %w", l.opts.Dir, err)
	}
	r.Segments, r.Took, r.Bytes = len(l.segments()), time.Since(begin), int64(r.Tail-from)
	log := l.opts.Log.Info
	if r.Torn {
		log = l.opts.Log.Warn
	}
	log("log recovered", "from", int64(from), "tail", int64(r.Tail), "frames", r.Frames, "segments", r.Segments, "torn", r.Torn,
		"cut bytes", r.CutBytes, "cut frames", r.CutFrames, "took", r.Took)
	return r.Recovery, nil
}

func (r *recovery) run(fn func(Frame) error) error {
	if err := r.finishCut(); err != nil {
		return err
	}
	if err := r.begin(); err != nil {
		return err
	}
	if err := r.fold(fn); err != nil {
		return err
	}
	if r.Frames == 0 {
		if err := r.reaches(); err != nil {
			return err
		}
	}
	if err := r.look(); err != nil {
		return err
	}
	if err := r.cut(r.Tail, r.dirty); err != nil {
		return err
	}
	if err := r.sync(); err != nil {
		return err
	}
	if err := r.load(); err != nil {
		return err
	}
	return r.activate()
}

// begin checks that the log has the position that recovery starts from.
func (r *recovery) begin() error {
	l := r.log
	segs := l.segments()
	if len(segs) == 0 {
		if r.From != 0 {
			return &CorruptError{File: l.opts.Dir, Position: 0, Why: fmt.Sprintf("there are no segments, but the log should reach position %d", r.From)}
		}
		s, err := l.makeSegment(0)
		if err != nil {
			return l.judge(err)
		}
		l.addSegment(s)
		return nil
	}
	if r.From < segs[0].start {
		return fmt.Errorf("%w: position %d, the log starts at %d", ErrDropped, r.From, segs[0].start)
	}
	if last := segs[len(segs)-1]; r.From > last.end() {
		return &CorruptError{File: last.path, Position: last.end(), Why: fmt.Sprintf("the log ends here, but should reach position %d", r.From)}
	}
	for _, s := range segs {
		if s.start >= r.From {
			break
		}
		if err := s.readFirst(); err != nil {
			return err
		}
	}
	return nil
}

// fold verifies frames until there is none, which is r.bad, and hands them to fn.
func (r *recovery) fold(fn func(Frame) error) error {
	r.bad = r.From
	r.scan.reset(nil) // a cut may have changed what it read
	for {
		s, ok := r.log.find(r.bad)
		if !ok {
			return nil
		}
		if r.scan.seg != s {
			r.scan.reset(s)
		}
		off := int64(r.bad - s.start)
		if s.size-off < HeaderSize {
			r.bad = s.end()
			continue
		}
		f, why, unsupported, err := r.scan.frame(off)
		if err != nil {
			return err
		}
		if unsupported {
			return &CorruptError{File: s.path, Position: r.bad, Why: why}
		}
		if why == "" && f.Kind != KindPad {
			why = r.last.follows(&f.Header)
		}
		if why != "" {
			r.Why = why
			return nil
		}
		r.bad = f.end()
		if r.pad = f.Kind == KindPad; r.pad {
			continue
		}
		if err := r.entry(s, f, fn); err != nil {
			return err
		}
	}
}

// entry takes a good frame into account.
func (r *recovery) entry(s *segment, f Frame, fn func(Frame) error) error {
	if f.Position == s.start {
		s.firstIndex.Store(f.Index)
		s.firstTime.Store(f.Time)
	}
	s.lastTime.Store(f.Time)
	r.last = mark{f.Term, f.Index}
	r.LastTerm, r.LastIndex, r.LastTime = f.Term, f.Index, f.Time
	r.Frames++
	r.Tail = f.end()
	return fn(f)
}

// reaches makes sure that the log goes as far as From, where no frame begins: views that know more than the log has are not to be believed. Bytes
// right before From that are not zero are enough; if there are none, the frames of that segment are followed.
func (r *recovery) reaches() error {
	if r.From == r.log.Start() {
		return nil
	}
	s := r.log.segmentOf(r.From - 1)
	r.scan.reset(s)
	to := int64(r.From - s.start)
	b, err := r.scan.bytes(max(0, to-HeaderSize), int(min(to, HeaderSize)))
	if err != nil || !bytes.Equal(b, nothing[:len(b)]) {
		return err
	}
	off := int64(0)
	for off < to && s.size-off >= HeaderSize {
		f, why, _, err := r.scan.frame(off)
		if err != nil {
			return err
		}
		if why != "" {
			return &CorruptError{File: s.path, Position: s.start + message.Position(off), Why: fmt.Sprintf("%s, but the log should reach position %d", why, r.From)}
		}
		off += int64(f.Size)
	}
	return nil
}

// look searches everything behind the bad frame for frames that prove that it had been synced, and for bytes that must go.
func (r *recovery) look() error {
	r.dirty = r.Tail
	for _, s := range r.log.segments() {
		if s.end() <= r.bad {
			continue
		}
		r.scan.reset(s)
		off := max(0, int64(r.Tail-s.start))
		last, err := r.scan.lastData(off)
		if err != nil {
			return err
		}
		if last == off {
			continue
		}
		r.dirty = s.start + message.Position(last)
		if err := r.evidence(s, max(0, int64(r.bad-s.start))); err != nil {
			return err
		}
	}
	r.CutBytes = int64(r.dirty - r.Tail)
	if r.pad { // it belongs to the frame behind it, and goes with it; alone it is nothing that was torn
		r.CutBytes = max(0, r.CutBytes-HeaderSize)
	}
	r.Torn = r.CutBytes > 0
	if !r.Torn {
		r.Why = ""
	}
	return nil
}

func (r *recovery) evidence(s *segment, off int64) error {
	for {
		f, found, err := r.scan.nextFrame(off)
		if err != nil || !found {
			return err
		}
		off = int64(f.end() - s.start)
		if f.Kind == KindPad || f.Index <= r.last.index {
			continue
		}
		r.CutFrames++
		if f.synced() > r.bad {
			where, _ := r.log.find(r.bad)
			return &CorruptError{File: where.path, Position: r.bad, Why: fmt.Sprintf(
				"%s; but the frame at position %d (entry %d) was written after everything below position %d had been synced",
				r.Why, f.Position, f.Index, f.synced())}
		}
	}
}

// cut removes [to, end) from the disk: the segments behind the one that holds to, the newest first, if any of them must go; then the bytes in that one.
func (r *recovery) cut(to, end message.Position) error {
	if to >= end {
		return nil
	}
	l := r.log
	keep := l.segmentOf(to)
	if end > keep.end() {
		if err := r.removeBehind(keep); err != nil {
			return err
		}
	}
	if to >= keep.end() {
		return nil
	}
	if err := keep.openForWriting(); err != nil {
		return l.judge(err)
	}
	if err := zero(keep.file.Load(), keep, int64(to-keep.start), int64(min(end, keep.end())-keep.start)); err != nil {
		return l.judge(err)
	}
	return nil
}

// removeBehind removes all segments behind one, the newest first.
func (r *recovery) removeBehind(keep *segment) error {
	l := r.log
	for {
		segs := l.segments()
		s := segs[len(segs)-1]
		if s == keep {
			return nil
		}
		table := slices.Clone(segs[:len(segs)-1])
		l.table.Store(&table)
		if err := removeSegment(l.opts.FS, l.opts.Dir, s); err != nil {
			return l.fail("remove", s.path, err)
		}
	}
}

// finishCut completes a Truncate that a crash interrupted.
func (r *recovery) finishCut() error {
	l := r.log
	to, found, err := l.readCut()
	if err != nil {
		return err
	}
	if segs := l.segments(); found && len(segs) > 0 && to >= segs[0].start && to <= segs[len(segs)-1].end() {
		keep := l.segmentOf(to)
		end := segs[len(segs)-1].end()
		if keep == segs[len(segs)-1] {
			r.scan.reset(keep)
			last, err := r.scan.lastData(int64(to - keep.start))
			if err != nil {
				return err
			}
			end = keep.start + message.Position(last)
		}
		l.opts.Log.Info("interrupted cut is completed", "position", int64(to))
		if err := r.cut(to, end); err != nil {
			return err
		}
	}
	if err := l.forgetCut(); err != nil {
		return l.fail("cut", l.opts.Dir, err)
	}
	return nil
}

// sync makes sure that what was verified, and the names of the segments, are on the disk: after a mere kill they may still be in the page cache.
func (r *recovery) sync() error {
	l := r.log
	for _, s := range l.segments() {
		if s.end() <= r.From {
			continue
		}
		f, err := s.open()
		if err != nil {
			return err
		}
		if err := f.SyncData(); err != nil {
			return l.fail("sync", s.path, err)
		}
	}
	if err := syncDir(l.opts.FS, l.opts.Dir); err != nil {
		return l.fail("sync", l.opts.Dir, err)
	}
	return nil
}

// load puts the newest part of the log into the ring.
func (r *recovery) load() error {
	l := r.log
	pos := max(l.Start(), r.Tail-message.Position(min(loadBytes, l.ring.size/2)))
	l.ring.start(pos)
	for pos < r.Tail {
		s, ok := l.find(pos)
		if !ok {
			return fmt.Errorf("no segment holds position %d", pos)
		}
		n := min(l.ring.maxFrame(), scanBytes, int64(min(s.end(), r.Tail)-pos))
		if err := s.readAt(l.ring.space(pos, int(n)), int64(pos-s.start)); err != nil {
			return err
		}
		l.ring.publish(pos, int(n))
		pos += message.Position(n)
	}
	return nil
}

// activate opens the segment that takes the writes and the one made ahead, and starts the background work.
func (r *recovery) activate() error {
	l := r.log
	active := l.segmentOf(r.Tail)
	if err := r.prepare(active); err != nil {
		return err
	}
	var next *segment
	if i := slices.Index(l.segments(), active); i+1 < len(l.segments()) {
		next = l.segments()[i+1]
		if err := r.removeBehind(next); err != nil {
			return err
		}
		if err := r.prepare(next); err != nil {
			return err
		}
		table := slices.Clone(l.segments()[:i+1]) // it comes back when the tail gets there
		l.table.Store(&table)
	}
	l.tail.Store(int64(r.Tail))
	l.written.Store(int64(r.Tail))
	l.synced.Store(int64(r.Tail))
	l.hold = tailState{active: active, last: r.last, lastWritten: r.last, lastTime: r.LastTime}
	l.ahead = newPreparer(l, active, next, r.Tail)
	return nil
}

// prepare opens a segment that exists for writing. A full disk is no reason not to start: reading and dropping must work.
func (r *recovery) prepare(s *segment) error {
	if err := s.openForWriting(); err != nil {
		return r.log.judge(err)
	}
	err := s.allocate()
	if err != nil {
		if err = r.log.judge(err); errors.Is(err, ErrFull) {
			r.log.opts.Log.Warn("segment could not be allocated", "error", err)
			return nil
		}
	}
	return err
}
