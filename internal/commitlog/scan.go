package commitlog

import (
	"bytes"

	"github.com/metaqio/metaq/message"
)

// scanBytes is how much a scanner reads at once.
const scanBytes = 1 << 20

// scanner reads a segment from front to back through a window. One goroutine.
type scanner struct {
	seg *segment
	buf []byte // the bytes [at, at+len(buf)) of the segment
	at  int64
	mem []byte // what buf is a part of
	// holes says, by the start of a segment, where it has data, as the file system told before anything was read: what
	// is read, and what the kernel reads ahead, counts as data from then on, and the empty rest would be read to its end.
	holes map[message.Position][]extent
}

// extent is a part of a segment that may hold something.
type extent struct{ from, to int64 }

// reset points the scanner at another segment and forgets what it read.
func (s *scanner) reset(seg *segment) {
	s.seg, s.buf, s.at = seg, s.mem[:0], 0
	if seg == nil {
		return
	}
	if _, ok := s.holes[seg.start]; ok {
		return
	}
	if s.holes == nil {
		s.holes = map[message.Position][]extent{}
	}
	f, err := seg.open()
	if err != nil {
		return // the first read says so too
	}
	s.holes[seg.start] = dataExtents(f, seg.size)
}

// nextData is the first place at or behind off that may hold something; the segment's size when there is none.
func (s *scanner) nextData(off int64) (int64, error) {
	extents, ok := s.holes[s.seg.start]
	if !ok {
		_, err := s.seg.open()
		return off, err
	}
	for _, e := range extents {
		if off < e.to {
			return max(off, e.from), nil
		}
	}
	return s.seg.size, nil
}

// bytes returns n bytes at off, and reads ahead. They are valid until the next call. REQUIRES: off+n is not behind the segment's end.
func (s *scanner) bytes(off int64, n int) ([]byte, error) {
	if off >= s.at && off+int64(n) <= s.at+int64(len(s.buf)) {
		return s.buf[off-s.at:][:n], nil
	}
	want := int(min(max(int64(n), scanBytes), s.seg.size-off))
	if cap(s.mem) < want {
		s.mem = make([]byte, want)
	}
	s.buf, s.at = s.mem[:want], off
	if err := s.seg.readAt(s.buf, off); err != nil {
		s.buf = s.buf[:0]
		return nil, err
	}
	return s.buf[:n], nil
}

// frame reads and verifies the frame at off. why says what is wrong with it; unsupported that it is whole, but not for this program.
// REQUIRES: at least a header's room behind off.
func (s *scanner) frame(off int64) (f Frame, why string, unsupported bool, err error) {
	b, err := s.bytes(off, HeaderSize)
	if err != nil {
		return f, "", false, err
	}
	pos, room := s.seg.start+message.Position(off), s.seg.size-off
	if f.Header, why = checkHeader(b, pos, room); why != "" {
		return f, why, false, nil
	}
	n := f.Size
	if f.Kind == KindPad {
		n = HeaderSize
	}
	if b, err = s.bytes(off, n); err != nil {
		return f, "", false, err
	}
	if why = checkSum(&f.Header, b); why != "" {
		return f, why, false, nil
	}
	if why = checkSupported(&f.Header, b); why != "" {
		return f, why, true, nil
	}
	f.Payload = b[HeaderSize:]
	return f, "", false, nil
}

// frameMark begins each frame behind its length: magic and version.
var frameMark = []byte{'M', 'Q', version}

// nextFrame looks for a valid frame that begins at or behind off, wherever that is. found is false at the segment's end.
func (s *scanner) nextFrame(off int64) (f Frame, found bool, err error) {
	for off+HeaderSize <= s.seg.size {
		if off, err = s.skipHole(off); err != nil || off+HeaderSize > s.seg.size {
			return f, false, err
		}
		n := min(scanBytes, s.seg.size-off)
		b, err := s.bytes(off, int(n))
		if err != nil {
			return f, false, err
		}
		at, plausible := s.nextHeader(b, off)
		if plausible {
			f, why, _, err := s.frame(off + at)
			if err != nil || why == "" {
				return f, err == nil, err
			}
			at++
		} else if off+n == s.seg.size {
			return f, false, nil
		}
		off += at
	}
	return f, false, nil
}

// nextHeader looks in the window b, which lies at off, for a header that belongs where it is. Without one, it returns where to go on.
func (s *scanner) nextHeader(b []byte, off int64) (at int64, plausible bool) {
	i := 0
	for i+HeaderSize <= len(b) {
		k := bytes.Index(b[i+atMagic:], frameMark)
		if k < 0 {
			break
		}
		if i += k; i+HeaderSize > len(b) {
			break
		}
		place := off + int64(i)
		if _, why := checkHeader(b[i:], s.seg.start+message.Position(place), s.seg.size-place); why == "" {
			return int64(i), true
		}
		i++
	}
	return int64(len(b) - HeaderSize + 1), false // the window that follows repeats what may be a header's beginning
}

// skipHole moves off to the next byte that the disk may hold something at.
func (s *scanner) skipHole(off int64) (int64, error) {
	next, err := s.nextData(off)
	if err != nil || next <= off {
		return off, err
	}
	return max(off, next-HeaderSize), nil // a frame may begin with the zeros before it
}

// nothing is what most of a segment's end reads as.
var nothing [scanBytes]byte

// lastData returns the end of the last byte at or behind off that is not zero; off when there is none.
func (s *scanner) lastData(off int64) (int64, error) {
	last := off
	for off < s.seg.size {
		next, err := s.nextData(off)
		if err != nil {
			return last, err
		}
		if off = next; off >= s.seg.size {
			break
		}
		n := min(scanBytes, s.seg.size-off)
		b, err := s.bytes(off, int(n))
		if err != nil {
			return last, err
		}
		if !bytes.Equal(b, nothing[:n]) {
			last = off + int64(len(bytes.TrimRight(b, "\x00")))
		}
		off += n
	}
	return last, nil
}
