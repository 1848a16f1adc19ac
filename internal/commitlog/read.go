package commitlog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/metaqio/metaq/message"
)

// Hot appends n bytes from a position on to dst if all of them are in the ring; it does not wait and, when dst has room, does not allocate. The
// bytes may belong to frames that are sealed and not yet written or committed: that is the caller's to know. The inside of a pad is undefined.
// Any goroutine.
func (l *Log) Hot(dst []byte, pos message.Position, n int) ([]byte, bool) {
	return l.ring.copyOut(dst, pos, n)
}

// Read appends n bytes from a position on to dst, from the ring, a map of the page cache, or the disk, for which it waits. On an error dst is
// returned as it was. Errors: [ErrDropped], [ErrBeyondTail], [ErrClosed] or the disk's. Any goroutine.
func (l *Log) Read(dst []byte, pos message.Position, n int) ([]byte, error) {
	if out, ok := l.ring.copyOut(dst, pos, n); ok {
		return out, nil
	}
	if err := l.readable(pos, n); err != nil {
		return dst, err
	}
	out := slices.Grow(dst, n)
	for n > 0 {
		part, err := l.readPart(out, pos, n)
		if err != nil {
			return dst, err
		}
		k := len(part) - len(out)
		out, pos, n = part, pos+message.Position(k), n-k
	}
	return out, nil
}

// readable says why a range cannot be read.
func (l *Log) readable(pos message.Position, n int) error {
	switch tail := l.Tail(); {
	case l.closed.Load():
		return ErrClosed
	case n < 0 || pos+message.Position(n) > tail:
		return fmt.Errorf("%w: %d bytes at %d, the tail is %d", ErrBeyondTail, n, pos, tail)
	case pos < l.Start():
		return fmt.Errorf("%w: position %d, the start is %d", ErrDropped, pos, l.Start())
	}
	return nil
}

// readPart appends bytes of one segment, or the part that only the ring has: at least one of n.
func (l *Log) readPart(dst []byte, pos message.Position, n int) ([]byte, error) {
	written := l.Written()
	if pos >= written {
		if out, ok := l.ring.copyOut(dst, pos, n); ok {
			return out, nil
		}
		if written = l.Written(); pos >= written { // rolled back meanwhile
			return dst, fmt.Errorf("%w: %d bytes at %d", ErrBeyondTail, n, pos)
		}
	}
	s, err := l.pin(pos)
	if err != nil {
		return dst, err
	}
	n = int(min(int64(n), int64(min(s.end(), written)-pos)))
	out, err := s.read(dst, int64(pos-s.start), n)
	return out, errors.Join(err, s.release())
}

// pin returns the segment that holds a position; the caller releases it.
func (l *Log) pin(pos message.Position) (*segment, error) {
	for range 3 { // a Truncate may put another in its place
		s, ok := l.find(pos)
		if ok && s.acquire() {
			return s, nil
		}
	}
	switch {
	case l.closed.Load():
		return nil, ErrClosed
	case pos < l.Start():
		return nil, fmt.Errorf("%w: position %d, the start is %d", ErrDropped, pos, l.Start())
	}
	return nil, fmt.Errorf("%w: position %d", ErrBeyondTail, pos)
}

// read appends bytes of the segment to dst: from the map where the page cache has them, else from the file. REQUIRES: acquired.
func (s *segment) read(dst []byte, off int64, n int) ([]byte, error) {
	if m := s.mapped(); m != nil && m.resident(off, int64(n)) {
		if out, ok := m.copyOut(dst, off, n); ok {
			return out, nil
		}
	}
	out := slices.Grow(dst, n)[:len(dst)+n]
	if err := s.readAt(out[len(dst):], off); err != nil {
		return dst, err
	}
	return out, nil
}

// mapped returns the map of the segment, made at the first use; nil where there can be none. REQUIRES: acquired.
func (s *segment) mapped() *fileMap {
	if m := s.view.Load(); m != nil || s.unmappable.Load() {
		return m
	}
	f, err := s.open()
	if err != nil {
		return nil // the read that follows says why
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.view.Load(); m != nil {
		return m
	}
	m, err := newFileMap(f, s.size)
	if err != nil || m == nil { // everything can be read without
		s.unmappable.Store(true)
		return nil
	}
	s.view.Store(m)
	return m
}

// Resident says whether a range can be read without the disk: it is in the ring, or in the page cache, or the disk is in memory anyway. Any goroutine.
func (l *Log) Resident(pos message.Position, n int) bool {
	if n >= 0 && l.ring.holds(pos, n) {
		return true
	}
	if l.readable(pos, n) != nil {
		return false
	}
	for end := pos + message.Position(n); pos < end; {
		s, err := l.pin(pos)
		if err != nil {
			return false
		}
		part := min(end, s.end())
		ok := s.resident(int64(pos-s.start), int64(part-pos))
		if s.release() != nil || !ok {
			return false
		}
		pos = part
	}
	return true
}

func (s *segment) resident(off, n int64) bool {
	f, err := s.open()
	if err != nil {
		return false
	}
	if inMemory(f) {
		return true
	}
	m := s.mapped()
	return m != nil && m.resident(off, n)
}

// ReadAhead asks for a range to be fetched from the disk, without waiting for it. Any goroutine.
func (l *Log) ReadAhead(pos message.Position, n int) {
	if l.readable(pos, n) != nil || l.ring.holds(pos, n) {
		return
	}
	for end := pos + message.Position(n); pos < end; {
		s, err := l.pin(pos)
		if err != nil {
			return // it is advice
		}
		part := min(end, s.end())
		if f, err := s.open(); err == nil {
			readAhead(f, int64(pos-s.start), int64(part-pos))
		}
		if s.release() != nil {
			return
		}
		pos = part
	}
}

// FrameAt reads and verifies the frame at a position. The payload is the caller's. Damage is a [*CorruptError]. Any goroutine.
func (l *Log) FrameAt(pos message.Position) (Frame, error) {
	b, err := l.Read(nil, pos, HeaderSize)
	if err != nil {
		return Frame{}, err
	}
	room := int64(l.segmentAfter(pos+1) - pos)
	h, why := checkHeader(b, pos, room)
	if why == "" && h.Kind != KindPad {
		if b, err = l.Read(b[:0], pos, h.Size); err != nil {
			return Frame{}, err
		}
	}
	if why == "" {
		why = checkSum(&h, b)
	}
	if why == "" {
		why = checkSupported(&h, b)
	}
	if why != "" {
		return Frame{}, &CorruptError{File: l.pathOf(pos), Position: pos, Why: why}
	}
	return Frame{Header: h, Payload: b[HeaderSize:]}, nil
}

// pathOf is the file that holds a position, for messages.
func (l *Log) pathOf(pos message.Position) string {
	if s, ok := l.find(pos); ok {
		return s.path
	}
	return l.opts.Dir
}

// Iterate verifies the entries from a position on, where a frame must begin, up to the tail of this moment, and calls fn with each; pads are
// passed over. The frame is valid until fn returns. An error of fn ends it and is returned. Damage is a [*CorruptError]. Any goroutine.
func (l *Log) Iterate(from message.Position, fn func(Frame) error) error {
	if err := l.readable(from, 0); err != nil {
		return err
	}
	w := window{log: l, limit: l.Tail()}
	for pos := from; pos < w.limit; {
		room := int64(l.segmentAfter(pos+1) - pos)
		if room < HeaderSize {
			pos += message.Position(room)
			continue
		}
		f, why, err := w.frame(pos, room)
		if err != nil {
			return err
		}
		if why != "" {
			return &CorruptError{File: l.pathOf(pos), Position: pos, Why: why}
		}
		pos = f.end()
		if f.Kind == KindPad {
			continue
		}
		if err := fn(f); err != nil {
			return err
		}
	}
	return nil
}

// window reads the log from front to back in large pieces. One goroutine.
type window struct {
	log   *Log
	limit message.Position // nothing is read behind
	at    message.Position
	buf   []byte
}

// iterateBytes is what a window reads at first; it doubles up to scanBytes, since many iterations end after a few frames.
const iterateBytes = 16 << 10

func (w *window) bytes(pos message.Position, n int) (b []byte, err error) {
	if pos >= w.at && pos+message.Position(n) <= w.at+message.Position(len(w.buf)) {
		return w.buf[pos-w.at:][:n], nil
	}
	if pos+message.Position(n) > w.limit {
		return nil, fmt.Errorf("%w: %d bytes at %d", ErrBeyondTail, n, pos)
	}
	want := min(scanBytes, max(iterateBytes, 2*len(w.buf)))
	want = int(min(int64(max(want, n)), int64(w.limit-pos)))
	w.at = pos
	if w.buf, err = w.log.Read(w.buf[:0], pos, want); err != nil {
		return nil, err
	}
	return w.buf[:n], nil
}

func (w *window) frame(pos message.Position, room int64) (f Frame, why string, err error) {
	b, err := w.bytes(pos, HeaderSize)
	if err != nil {
		return f, "", err
	}
	h, why := checkHeader(b, pos, room)
	if why != "" {
		return f, why, nil
	}
	if h.Kind != KindPad {
		if b, err = w.bytes(pos, h.Size); err != nil {
			return f, "", err
		}
	}
	if why = checkSum(&h, b); why == "" {
		why = checkSupported(&h, b)
	}
	return Frame{Header: h, Payload: b[HeaderSize:]}, why, nil
}
