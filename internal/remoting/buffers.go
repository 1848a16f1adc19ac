package remoting

import "math/bits"

// Buffers of unfinished frames have a power of two as their size, from 512 bytes on.
const (
	minBufferBits = 9
	maxBufferBits = 18 // larger ones are left to the garbage collector
	keepPerClass  = 32
)

// Answer buffers that are kept: so many bytes of them, none larger than half of that.
const (
	firstOut = 4 << 10
	keepOut  = 8 << 20
)

// buffers are a driver's free byte slices. They belong to the driver.
type buffers struct {
	classes [maxBufferBits + 1][][]byte
	outs    [][]byte // the newest last: it is the one whose memory is hot
	outSize int
}

// get returns an empty slice with room for at least n bytes.
func (p *buffers) get(n int) []byte {
	class := max(bits.Len(uint(n-1)), minBufferBits)
	if class > maxBufferBits {
		return make([]byte, 0, n)
	}
	free := p.classes[class]
	if len(free) == 0 {
		return make([]byte, 0, 1<<class)
	}
	b := free[len(free)-1]
	free[len(free)-1] = nil
	p.classes[class] = free[:len(free)-1]
	return b
}

// put takes back a slice of get.
func (p *buffers) put(b []byte) {
	class := bits.Len(uint(cap(b))) - 1
	if class < minBufferBits || class > maxBufferBits || len(p.classes[class]) >= keepPerClass {
		return
	}
	p.classes[class] = append(p.classes[class], b[:0])
}

// getOut returns an empty slice to append answers to.
func (p *buffers) getOut() []byte {
	if len(p.outs) == 0 {
		return make([]byte, 0, firstOut)
	}
	last := len(p.outs) - 1
	b := p.outs[last]
	p.outs[last] = nil
	p.outs = p.outs[:last]
	p.outSize -= cap(b)
	return b
}

// putOut takes back a slice of getOut, however it has grown.
func (p *buffers) putOut(b []byte) {
	if cap(b) == 0 || cap(b) > keepOut/2 || p.outSize+cap(b) > keepOut {
		return
	}
	p.outs = append(p.outs, b[:0])
	p.outSize += cap(b)
}
