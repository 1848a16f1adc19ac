package key

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/metaqio/metaq/message"
)

// item is a key in memory.
type item struct {
	hash Hash
	pos  message.Position
}

// fileBits is how many bits of a hash a run keeps, the upper ones.
const fileBits = 48

func (h Hash) short() uint64 { return uint64(h) >> (64 - fileBits) }

// sorted returns the items in the order of their short hashes; those with the same one
// stay in the order of the log. items is not changed: others may be reading it.
func sorted(items []item) []item {
	a, b := make([]item, len(items)), make([]item, len(items))
	from := items
	for shift := 64 - fileBits; shift < 64; shift += 8 { // by the lowest digit first
		var at [256]int
		for i := range from {
			at[byte(from[i].hash>>shift)]++
		}
		sum := 0
		for i, n := range at {
			at[i], sum = sum, sum+n
		}
		for i := range from {
			d := byte(from[i].hash >> shift)
			a[at[d]] = from[i]
			at[d]++
		}
		from, a, b = a, b, a
	}
	return from
}

// source gives entries in the order of their hashes and positions.
type source interface {
	// next gives the next entry; ok is false at the end.
	next() (hash uint64, pos message.Position, ok bool, err error)
}

// memorySource gives sorted items.
type memorySource struct{ rest []item }

func (s *memorySource) next() (uint64, message.Position, bool, error) {
	if len(s.rest) == 0 {
		return 0, 0, false, nil
	}
	i := s.rest[0]
	s.rest = s.rest[1:]
	return i.hash.short(), i.pos, true, nil
}

// runSource gives the entries of a run.
type runSource struct {
	r    *bufio.Reader
	of   *run
	n    uint64 // read so far
	last uint64 // hash
}

// damagedError says that a run is not what was written.
type damagedError struct {
	run *run
	why error
}

func (e *damagedError) Error() string { return fmt.Sprintf("%s: %v", e.run.name(), e.why) }

func (e *damagedError) Unwrap() error { return e.why }

func newRunSource(r *run) *runSource {
	section := io.NewSectionReader(r.file, headerSize, int64(r.Count)*entrySize)
	return &runSource{r: bufio.NewReaderSize(section, 32<<10), of: r}
}

func (s *runSource) next() (uint64, message.Position, bool, error) {
	if s.n == s.of.Count {
		return 0, 0, false, nil
	}
	var b [entrySize]byte
	if _, err := io.ReadFull(s.r, b[:]); err != nil {
		return 0, 0, false, &damagedError{s.of, fmt.Errorf("entry %d of %d: %w", s.n, s.of.Count, err)}
	}
	hash, pos := s.of.parse(b[:])
	if hash < s.last || pos >= s.of.To {
		return 0, 0, false, &damagedError{s.of, fmt.Errorf("entry %d of %d is out of order, or for another part of the log", s.n, s.of.Count)}
	}
	s.n, s.last = s.n+1, hash
	return hash, pos, true, nil
}

// merged gives the entries of several sources that follow each other in the log.
type merged struct {
	sources []source
	heads   []head
}

type head struct {
	hash uint64
	pos  message.Position
	ok   bool
}

func newMerged(sources []source) (*merged, error) {
	m := &merged{sources: sources, heads: make([]head, len(sources))}
	for i := range sources {
		if err := m.advance(i); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *merged) advance(i int) (err error) {
	h := &m.heads[i]
	h.hash, h.pos, h.ok, err = m.sources[i].next()
	return err
}

func (m *merged) next() (uint64, message.Position, bool, error) {
	best := -1
	for i := range m.heads { // few; of equal hashes the earlier source is first in the log
		if h := &m.heads[i]; h.ok && (best < 0 || h.hash < m.heads[best].hash) {
			best = i
		}
	}
	if best < 0 {
		return 0, 0, false, nil
	}
	h := m.heads[best]
	return h.hash, h.pos, true, m.advance(best)
}

// putEntry writes an entry of a run that begins at a position.
func putEntry(b []byte, hash uint64, pos, from message.Position) {
	binary.BigEndian.PutUint64(b, hash<<16) // the two bytes behind are written over
	binary.BigEndian.PutUint32(b[6:], uint32(pos-from))
}
