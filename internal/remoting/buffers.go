package remoting

import (
	"math/bits"
	"sync"
)

// Buffers of unfinished frames have a power of two as their size, from 512 bytes on. So many bytes of each size are kept.
const (
	minBufferBits = 9
	maxBufferBits = 18 // larger ones are left to the garbage collector
	keepPerClass  = 1 << 20
)

// Answer buffers that are kept: so many bytes of them, none larger than half of that.
const (
	firstOut = 512
	keepOut  = 8 << 20
)

// buffers are a driver's free byte slices. They belong to the driver.
type buffers struct {
	single  bool // the driver has one connection: nothing is kept here
	classes [maxBufferBits - minBufferBits + 1][][]byte
	outs    [][]byte // the newest last: it is the one whose memory is hot
	outSize int
}

// outBuffers are the answer buffers of all drivers with a single connection.
var outBuffers = sync.Pool{New: func() any { return new(make([]byte, 0, firstOut)) }}

// get returns an empty slice with room for at least n bytes.
func (p *buffers) get(n int) []byte {
	class := max(bits.Len(uint(n-1)), minBufferBits)
	if class > maxBufferBits {
		return make([]byte, 0, n)
	}
	free := p.classes[class-minBufferBits]
	if len(free) == 0 {
		return make([]byte, 0, 1<<class)
	}
	b := free[len(free)-1]
	free[len(free)-1] = nil
	p.classes[class-minBufferBits] = free[:len(free)-1]
	return b
}

// put takes back a slice of get.
func (p *buffers) put(b []byte) {
	class := bits.Len(uint(cap(b))) - 1
	if p.single || class < minBufferBits || class > maxBufferBits {
		return
	}
	free := &p.classes[class-minBufferBits]
	if len(*free)<<class < keepPerClass {
		*free = append(*free, b[:0])
	}
}

// getOut returns an empty slice to append answers to.
func (p *buffers) getOut() []byte {
	switch last := len(p.outs) - 1; {
	case p.single:
		return (*outBuffers.Get().(*[]byte))[:0]
	case last < 0:
		return make([]byte, 0, firstOut)
	default:
		b := p.outs[last]
		p.outs[last] = nil
		p.outs = p.outs[:last]
		p.outSize -= cap(b)
		return b
	}
}

// putOut takes back a slice of getOut, however it has grown.
func (p *buffers) putOut(b []byte) {
	switch {
	case cap(b) == 0 || cap(b) > keepOut/2:
	case p.single:
		single := b // b itself stays off the heap
		outBuffers.Put(&single)
	case p.outSize+cap(b) <= keepOut:
		p.outs = append(p.outs, b[:0])
		p.outSize += cap(b)
	}
}
