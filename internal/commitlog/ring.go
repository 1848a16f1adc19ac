package commitlog

import (
	"math"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/metaqio/metaq/message"
)

// ringChunks is the number of parts in which memory is taken back from readers.
const ringChunks = 16

// ring is the newest part of the log in memory: the byte of position p lies at p modulo size. One writer (the tail's holder) and any number of
// readers share it without a lock:
//
//   - [low, limit) is what may be read. The writer fills bytes above limit and then moves limit (publish).
//   - A reader pins the chunk of its first byte (an atomic add), and only then looks at low and limit; it copies and unpins.
//   - To use a chunk again, the writer first moves low above it, and only then looks at its pins and waits until they are gone. All are sequentially
//     consistent atomics, so either the reader sees the new low and gives up, or the writer sees the pin and waits. Chunks are taken back in
//     order, so a pin on the first byte protects all bytes behind it.
//   - low is moved one chunk earlier than needed. A reader that began before has the time in which the log grows by a whole chunk to finish its
//     copy, so that the writer practically never waits.
//   - To write other bytes at positions that were readable (retract), the writer moves limit back and waits for all pins.
//
// Bytes and atomics are ordered by Go's memory model in each case; the race detector, which does not see memory maps, checks the plain ring.
type ring struct {
	mem    []byte // twice the size when mapped twice in a row, else size and a quarter
	size   int64
	chunk  int64
	mapped bool

	free message.Position // tail's holder: bytes of all positions below may be overwritten

	low   atomic.Int64
	limit atomic.Int64
	pins  [ringChunks]struct {
		n atomic.Int64
		_ [56]byte // a cache line for each
	}
}

// newRing makes an empty ring. plain forces the portable kind.
func newRing(size int, plain bool) (*ring, error) {
	r := &ring{size: int64(size), chunk: int64(size) / ringChunks}
	if !plain && ringMappable {
		mem, err := mapTwice(size)
		if err != nil {
			return nil, err
		}
		r.mem, r.mapped = mem, true
		return r, nil
	}
	r.mem = make([]byte, size+size/4) // the quarter takes what runs over the seam, so that each frame is contiguous
	return r, nil
}

// maxFrame is the size of the largest frame that the ring takes.
func (r *ring) maxFrame() int64 { return r.size / 4 }

// start makes the ring empty at a position.
func (r *ring) start(pos message.Position) {
	r.retract(pos)
	r.low.Store(int64(pos))
	r.free = pos
}

// space returns the memory of [pos, pos+n), contiguous, for the writer to fill. REQUIRES: n <= maxFrame; what must stay readable is at most half
// a ring and a quarter behind pos.
func (r *ring) space(pos message.Position, n int) []byte {
	if need := int64(pos) + int64(n) - r.size; need > int64(r.free) {
		r.reclaim(need)
	}
	off := int64(pos) & (r.size - 1)
	return r.mem[off : off+int64(n) : off+int64(n)]
}

// reclaim takes the memory of all positions below need back from readers.
func (r *ring) reclaim(need int64) {
	need = (need + r.chunk - 1) / r.chunk * r.chunk
	if low := need + r.chunk; low > r.low.Load() {
		r.low.Store(low)
	}
	first := max(int64(r.free)/r.chunk, need/r.chunk-ringChunks)
	for c := first; c < need/r.chunk; c++ {
		r.await(int(c % ringChunks))
	}
	r.free = message.Position(need)
}

// await waits until nobody reads in a chunk.
func (r *ring) await(chunk int) {
	for r.pins[chunk].n.Load() != 0 {
		runtime.Gosched() // a reader is in the middle of a copy
	}
}

// settle brings what the writer has filled, and what ran over the seam of a plain ring, to its place.
func (r *ring) settle(pos message.Position, n int) {
	off := int64(pos) & (r.size - 1)
	if over := off + int64(n) - r.size; !r.mapped && over > 0 {
		copy(r.mem[:over], r.mem[r.size:r.size+over])
	}
}

// publish makes [pos, pos+n), which the writer has filled, readable, and all before it.
func (r *ring) publish(pos message.Position, n int) {
	r.settle(pos, n)
	r.limit.Store(int64(pos) + int64(n))
}

// retract makes everything from pos on unreadable, so that it can be written anew.
func (r *ring) retract(pos message.Position) {
	r.limit.Store(int64(pos))
	for c := range ringChunks {
		r.await(c)
	}
	if int64(pos) < r.low.Load() { // nothing is left
		r.low.Store(int64(pos))
		r.free = pos
	}
}

// view returns the memory of a range that the writer knows to be in the ring; the second part is empty unless a plain ring has its seam there.
func (r *ring) view(pos message.Position, n int64) (a, b []byte) {
	off := int64(pos) & (r.size - 1)
	if r.mapped || off+n <= r.size {
		return r.mem[off : off+n], nil
	}
	return r.mem[off:r.size], r.mem[:off+n-r.size]
}

// copyOut appends a range to dst if all of it is in the ring. Any goroutine.
func (r *ring) copyOut(dst []byte, pos message.Position, n int) ([]byte, bool) {
	if pos < 0 || n < 0 || !r.holds(pos, n) { // a first look, which costs readers of old positions no write
		return dst, false
	}
	dst = slices.Grow(dst, n)
	pin := &r.pins[int64(pos)/r.chunk%ringChunks].n
	pin.Add(1)
	ok := r.holds(pos, n)
	if ok {
		a, b := r.view(pos, int64(n))
		dst = append(append(dst, a...), b...)
	}
	pin.Add(-1)
	return dst, ok
}

// holds says whether a range may be read now.
func (r *ring) holds(pos message.Position, n int) bool {
	return int64(pos) >= r.low.Load() && int64(pos)+int64(n) <= r.limit.Load()
}

// close gives the memory back once nobody reads.
func (r *ring) close() error {
	r.low.Store(math.MaxInt64)
	r.limit.Store(0)
	for c := range ringChunks {
		r.await(c)
	}
	mem := r.mem
	r.mem = nil
	if r.mapped {
		return unmapTwice(mem)
	}
	return nil
}
