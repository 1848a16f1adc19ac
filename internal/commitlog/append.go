package commitlog

import (
	"errors"
	"fmt"

	"github.com/metaqio/metaq/message"
)

// Reserve returns the memory of a whole frame with room for a payload, in the ring, and the position it will have. A frame that does not fit in
// the rest of the segment goes to the start of the next one. Fill buf[HeaderSize:] and call [Log.Seal]; a frame that is reserved again before that was never
// there. Errors: [ErrTooLarge], [ErrUnwritten], [ErrFailed]. Tail's holder only.
func (l *Log) Reserve(payload int) (buf []byte, pos message.Position, err error) {
	if err := l.Err(); err != nil {
		return nil, 0, err
	}
	n := int64(payload) + HeaderSize
	if payload < 0 || n > l.limit {
		return nil, 0, l.tooLarge(n)
	}
	if l.ahead == nil {
		return nil, 0, errors.New("the log was not recovered")
	}
	pos, pad := l.place(l.Tail(), n)
	return l.reserve(pos, n, pad)
}

func (l *Log) tooLarge(n int64) error {
	return fmt.Errorf("%w: %d bytes, limit %d (a segment has %d, the ring %d, of which a frame may take a quarter)",
		ErrTooLarge, n, l.limit, l.opts.SegmentBytes, l.opts.RingBytes)
}

// place is the rule by which a frame of n bytes gets its position: at the tail, or at the start of the next segment when the rest is too small.
// pad is the size of that rest.
func (l *Log) place(tail message.Position, n int64) (pos message.Position, pad int64) {
	rest := int64(l.segmentAfter(tail) - tail)
	if n <= rest || rest == 0 {
		return tail, 0
	}
	return tail + message.Position(rest), rest
}

// reserve makes room in the ring for a pad at the tail and a frame at pos.
func (l *Log) reserve(pos message.Position, n, pad int64) ([]byte, message.Position, error) {
	t := &l.hold
	if waits := int64(pos-l.Written()) + n; waits > l.ring.size/2 {
		return nil, 0, fmt.Errorf("%w: %d bytes, limit %d", ErrUnwritten, waits, l.ring.size/2)
	}
	l.pad(pad)
	t.reserved, t.buf = pos, l.ring.space(pos, int(n))
	return t.buf, pos, nil
}

// pad lays the rest of a segment into the ring: a header, if there is room for one, and zeros, as on the disk. What lay there once may be read
// together with what is around it.
func (l *Log) pad(size int64) {
	for done := int64(0); done < size; {
		n := min(size-done, l.limit)
		at := l.Tail() + message.Position(done)
		part := l.ring.space(at, int(n))
		clear(part)
		if done == 0 && size >= HeaderSize {
			putPad(part, at, size)
		}
		l.ring.settle(at, int(n))
		done += n
	}
}

// Seal puts the header in front of a payload and makes the frame the end of the log: readable in the ring, on the disk with the next Write.
// buf is what Reserve returned, or its beginning, when the payload became shorter. Of h, Size and Position are taken from buf, Group may be moved
// back (see [Header.Group]). It panics when the caller breaks raft's order or seals what was not reserved: a log with such an entry would be cut there by the next recovery.
// Tail's holder only.
func (l *Log) Seal(buf []byte, h Header) {
	t := &l.hold
	switch {
	case len(buf) < HeaderSize || len(buf) > len(t.buf) || &buf[0] != &t.buf[0]:
		panic("commitlog: sealed a frame that was not reserved last")
	case h.Kind == 0 || h.Kind >= KindPad:
		panic(fmt.Sprintf("commitlog: sealed a frame of kind %d", h.Kind))
	}
	if why := t.last.follows(&h); why != "" {
		panic("commitlog: sealed a frame out of order: " + why)
	}
	h.Size, h.Position = len(buf), t.reserved
	h.Group = l.promise(&h)
	h.put(buf)
	l.seal(&h)
}

// follows says why an entry may not follow the one before.
func (m mark) follows(h *Header) string {
	switch {
	case h.Index == 0:
		return "its index is 0"
	case m.index == 0:
		return "" // the entry before is not known
	case h.Index != m.index+1:
		return fmt.Sprintf("entry %d follows entry %d", h.Index, m.index)
	case h.Term < m.term:
		return fmt.Sprintf("term %d follows term %d", h.Term, m.term)
	}
	return ""
}

// promise is what the frame may say in its field group: no more than what is true at this moment.
func (l *Log) promise(h *Header) uint32 {
	if h.Flags&FlagAsync != 0 {
		return h.Group
	}
	group := int64(h.Position - min(h.synced(), l.Synced()))
	return uint32(min(group, noPromise))
}

// seal moves the tail behind a frame that lies in the ring with its header.
func (l *Log) seal(h *Header) {
	t := &l.hold
	if int64(h.Position)%l.opts.SegmentBytes == 0 {
		t.cuts = append(t.cuts, l.Tail()) // the rest of the segment before, if any, is a pad or too small for one
		t.firsts = append(t.firsts, segmentFirst{pos: h.Position, index: h.Index, time: h.Time, before: t.lastTime})
	}
	t.buf = nil
	t.last = mark{h.Term, h.Index}
	t.lastTime = h.Time
	l.ring.publish(h.Position, h.Size)
	l.tail.Store(int64(h.end()))
}

// AppendFrame puts a frame of a leader at the tail. Its position must be the tail or, when it begins a segment, the next segment's start. The frame
// is verified and copied as it is: logs are equal byte for byte on all replicas. What it promises about syncs is made true first, so this may write
// and sync what was appended before. Errors: [ErrPosition], [ErrTooLarge], [ErrUnwritten], [ErrFull], [ErrFailed]. Tail's holder only.
func (l *Log) AppendFrame(frame []byte) error {
	if err := l.Err(); err != nil {
		return err
	}
	f, err := ParseFrame(frame)
	if err != nil {
		return fmt.Errorf("append a leader's frame: %w", err)
	}
	h := f.Header
	n := int64(h.Size)
	if n > l.limit {
		return l.tooLarge(n)
	}
	if h.Kind == KindPad {
		return fmt.Errorf("%w: it is a pad", ErrPosition)
	}
	if why := l.hold.last.follows(&h); why != "" {
		return fmt.Errorf("%w: %s", ErrPosition, why)
	}
	pos, pad := l.place(l.Tail(), n)
	if pos < h.Position { // the leader may have left a rest in which this frame would have fit
		pos = l.segmentAfter(l.Tail())
		pad = int64(pos - l.Tail())
	}
	if pos != h.Position {
		return fmt.Errorf("%w: it is for position %d, the tail is %d", ErrPosition, h.Position, l.Tail())
	}
	if err := l.keepPromise(&h); err != nil {
		return err
	}
	if pad+n > l.ring.size/2 { // the leader's ring takes larger frames
		return l.tooLarge(pad + n)
	}
	buf, _, err := l.reserve(pos, n, pad)
	if err != nil {
		return err
	}
	copy(buf, frame)
	l.seal(&h)
	return nil
}

// keepPromise makes true on this disk what a leader's frame says of syncs (see Header.Group): the bytes are not changed, they are equal on all replicas.
func (l *Log) keepPromise(h *Header) error {
	if h.synced() <= l.Synced() {
		return nil
	}
	if err := l.Write(); err != nil {
		return err
	}
	return l.Sync()
}

// Write gives everything that was sealed to the operating system, with one pwrite (two at a segment's end). On [ErrFull] nothing was lost: call it
// again, or drop what waits with [Log.Rollback]. Any other error is final. Tail's holder only.
func (l *Log) Write() error {
	if err := l.Err(); err != nil {
		return err
	}
	t := &l.hold
	from, tail := l.Written(), l.Tail()
	if from == tail {
		return nil
	}
	if err := l.clean(); err != nil {
		return err
	}
	for _, cut := range t.cuts {
		to := cut
		if rest := int64(l.segmentAfter(cut) - cut); rest >= HeaderSize {
			to += HeaderSize // a pad's header
		}
		if err := l.writePart(from, to); err != nil {
			return err
		}
		from = l.segmentAfter(cut)
	}
	if err := l.writePart(from, tail); err != nil {
		return err
	}
	t.cuts = t.cuts[:0]
	l.wrote(tail)
	return nil
}

// segmentAfter is the start of the segment that follows when one segment's data ends at pos: pos itself if that fills the segment.
func (l *Log) segmentAfter(pos message.Position) message.Position {
	size := message.Position(l.opts.SegmentBytes)
	return (pos + size - 1) / size * size
}

// writePart writes [from, to), which lies in one segment.
func (l *Log) writePart(from, to message.Position) error {
	if from == to {
		return nil
	}
	s, err := l.segmentFor(from)
	if err != nil {
		return err
	}
	l.ahead.claim(to)
	l.hold.dirty = max(l.hold.dirty, to)
	a, b := l.ring.view(from, int64(to-from))
	for _, part := range [2][]byte{a, b} { // one, but at the seam of a plain ring
		if len(part) == 0 {
			continue
		}
		if _, err := s.file.Load().WriteAt(part, int64(from-s.start)); err != nil {
			return l.judge(&FailedError{Path: s.path, Op: "write", Err: err})
		}
		from += message.Position(len(part))
	}
	return nil
}

// segmentFor returns the segment that takes writes at a position, which is in the active segment or begins the next one.
func (l *Log) segmentFor(pos message.Position) (*segment, error) {
	t := &l.hold
	if pos < t.active.end() {
		if s, ok := l.find(pos); ok { // after ErrFull, a part that was written may be written again
			return s, nil
		}
		return nil, l.fail("write", l.opts.Dir, fmt.Errorf("no segment holds position %d", pos))
	}
	s, err := l.ahead.take(t.active.end())
	if err != nil {
		return nil, l.judge(err)
	}
	l.addSegment(s)
	t.active = s
	l.opts.Log.Info("segment begun", "file", s.path)
	return s, nil
}

// wrote makes a successful Write known.
func (l *Log) wrote(tail message.Position) {
	t := &l.hold
	for _, f := range t.firsts {
		if s, ok := l.find(f.pos); ok {
			s.firstTime.Store(f.time)
			s.firstIndex.Store(f.index)
		}
		if s, ok := l.find(f.pos - 1); ok && f.before != 0 {
			s.lastTime.Store(f.before)
		}
	}
	t.firsts = t.firsts[:0]
	t.active.lastTime.Store(t.lastTime)
	t.lastWritten = t.last
	t.dirty = 0
	l.written.Store(int64(tail))
}

// Sync puts everything that was written on the disk. Any error is final. Any goroutine: it may run beside the tail's holder, and covers what was written when it began.
func (l *Log) Sync() error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	from, to := l.Synced(), l.Written()
	for pos := from; pos < to; {
		s, ok := l.find(pos)
		if !ok || !s.acquire() {
			return l.fail("sync", l.opts.Dir, errors.New("a segment that waits to be synced is gone"))
		}
		err := s.file.Load().SyncData()
		if e := s.release(); err == nil {
			err = e
		}
		if err != nil {
			return l.fail("sync", s.path, err)
		}
		pos = s.end()
	}
	l.synced.Store(int64(to))
	return nil
}
