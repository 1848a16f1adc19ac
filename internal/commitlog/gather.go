package commitlog

import (
	"github.com/metaqio/metaq/message"
)

// maxSpan is how far apart ranges may lie for the page cache to be asked about all of them at once.
const maxSpan = 4 << 20

// Gather appends n ranges of the log, in ascending order of position, as far as they are in memory: in the ring, or in the page cache. It is false,
// and dst is as it was, when any of them would need the disk. It asks the page cache once for neighbours, not once for each. Any goroutine.
func (l *Log) Gather(dst []byte, n int, at func(i int) (message.Position, int)) ([]byte, bool) {
	start := len(dst)
	for i := 0; i < n; {
		pos, size := at(i)
		if out, ok := l.ring.copyOut(dst, pos, size); ok {
			dst = out
			i++
			continue
		}
		out, k, ok := l.gatherSegment(dst, i, n, at)
		if !ok {
			return dst[:start], false
		}
		dst, i = out, k
	}
	return dst, true
}

// gatherSegment appends ranges from i on that lie in one segment, and returns the number of the first that does not.
func (l *Log) gatherSegment(dst []byte, i, n int, at func(i int) (message.Position, int)) (out []byte, next int, ok bool) {
	first, size := at(i)
	if l.readable(first, size) != nil {
		return dst, i, false
	}
	s, err := l.pin(first)
	if err != nil {
		return dst, i, false
	}
	defer func() {
		if s.release() != nil {
			ok = false
		}
	}()
	end, limit := first+message.Position(size), min(s.end(), l.Written())
	for next = i + 1; next < n; next++ {
		pos, size := at(next)
		if to := pos + message.Position(size); to > limit || to > first+maxSpan {
			break
		} else if to > end {
			end = to
		}
	}
	if end > limit {
		return dst, i, false
	}
	if !s.resident(int64(first-s.start), int64(end-first)) {
		return dst, i, false
	}
	for ; i < next; i++ {
		pos, size := at(i)
		if dst, ok = s.copyResident(dst, int64(pos-s.start), size); !ok {
			return dst, i, false
		}
	}
	return dst, next, true
}

// copyResident appends a range that is known to be in memory. REQUIRES: acquired.
func (s *segment) copyResident(dst []byte, off int64, n int) ([]byte, bool) {
	if m := s.mapped(); m != nil {
		return m.copyOut(dst, off, n)
	}
	out, err := s.read(dst, off, n) // an in-memory disk
	return out, err == nil
}
