package queue

import (
	"encoding/binary"

	"github.com/metaqio/metaq/message"
)

// Sizes of the index; chunkEntries is part of the on-disk format (see packed.go).
const (
	chunkEntries = 64
	entryBytes   = 20
	chunkBytes   = chunkEntries * entryBytes
	slabChunks   = 64
)

// Entry is what the index knows of a message.
type Entry struct {
	Position message.Position
	Size     int32
	Tag      int64 // hash of the tag, 0 without one
}

type chunk [chunkBytes]byte

func (c *chunk) put(i int, pos message.Position, size int32, tag int64) {
	b := c[i*entryBytes : i*entryBytes+entryBytes]
	binary.BigEndian.PutUint64(b, uint64(pos))
	binary.BigEndian.PutUint32(b[8:], uint32(size))
	binary.BigEndian.PutUint64(b[12:], uint64(tag))
}

func (c *chunk) get(i int) Entry {
	b := c[i*entryBytes : i*entryBytes+entryBytes]
	return Entry{
		Position: message.Position(binary.BigEndian.Uint64(b)),
		Size:     int32(binary.BigEndian.Uint32(b[8:])),
		Tag:      int64(binary.BigEndian.Uint64(b[12:])),
	}
}

// memory hands out chunks, in slabs without pointers, and says which to give up first.
type memory struct {
	limit int // chunks that may stay in memory although they are in the store
	used  int
	free  []*chunk
	order []made // chunks in the order in which they were made
	first int    // of order
	// leaving are chunks of deleted topics, which a checkpoint that is being written may still read.
	leaving []*chunk
}

type made struct {
	q  *Queue
	no int64
}

func (m *memory) take(q *Queue, no int64) *chunk {
	m.used++
	m.order = append(m.order, made{q, no})
	if m.used > m.limit {
		m.giveUp()
	}
	if len(m.free) == 0 {
		slab := make([]chunk, slabChunks)
		for i := range slab {
			m.free = append(m.free, &slab[i])
		}
	}
	c := m.free[len(m.free)-1]
	m.free = m.free[:len(m.free)-1]
	return c
}

// giveUp frees the oldest chunks until the limit is kept; it stops at one that is not in the store yet.
func (m *memory) giveUp() {
	for m.used > m.limit && m.first < len(m.order)-1 {
		o := m.order[m.first]
		if !o.q.giveUp(o.no) {
			break
		}
		m.order[m.first] = made{}
		m.first++
	}
	if m.first > 1024 && m.first > len(m.order)/2 {
		n := copy(m.order, m.order[m.first:])
		clear(m.order[n:])
		m.order, m.first = m.order[:n], 0
	}
}

// leave frees a chunk once no checkpoint is being written that began before.
func (m *memory) leave(c *chunk) {
	m.used--
	m.leaving = append(m.leaving, c)
}

// written says that the checkpoint that was being written is done.
func (m *memory) written() {
	m.free = append(m.free, m.leaving...)
	m.leaving = m.leaving[:0]
	m.giveUp()
}

func (m *memory) give(c *chunk) {
	m.used--
	m.free = append(m.free, c)
}
