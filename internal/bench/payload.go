package bench

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// What is in a body, so that whoever reads it can tell what was lost, doubled or damaged. The filler comes first: its CRC is
// computed once, and that of a message from there on, whatever the size.
//
//	  n bytes    4        4      4         4      8         8      4
//	┌─────────┬────────┬──────┬─────────┬──────┬─────────┬──────┬────────┐
//	│ filler  │ "MQB1" │ run  │ stream  │ queue│ sequence│ time │ CRC-32C│
//	└─────────┴────────┴──────┴─────────┴──────┴─────────┴──────┴────────┘
//	stream    number of the producing connection
//	sequence  from 0, without gaps, for each stream and queue of a run
//	time      when the message was due, or was sent if nothing was due; nanoseconds since 1970
//	CRC-32C   of everything before it
const (
	markMagic = 0x4D514231
	markSize  = 36
	crcSize   = 4

	// MinSize is the smallest body: the mark alone.
	MinSize = markSize
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// mark is the part of a body that tells which message it is.
type mark struct {
	run, stream, queue uint32
	sequence           uint64
	time               int64
}

// Why a body is not one of ours.
var (
	errForeign = errors.New("body was not made by a load generator")
	errDamaged = errors.New("body is damaged")
)

// filler makes the front of bodies of a size: letters in no order, which is neither binary nor easy to compress.
func filler(size int) (b []byte, crc uint32) {
	b = make([]byte, size-markSize)
	x := uint32(2463534242)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = 'a' + byte(x>>8)%26
	}
	return b, crc32.Checksum(b, castagnoli)
}

// put writes m at the end of body, whose filler has the given CRC.
func (m *mark) put(body []byte, fillerCRC uint32) {
	b := body[len(body)-markSize:]
	binary.BigEndian.PutUint32(b[0:], markMagic)
	binary.BigEndian.PutUint32(b[4:], m.run)
	binary.BigEndian.PutUint32(b[8:], m.stream)
	binary.BigEndian.PutUint32(b[12:], m.queue)
	binary.BigEndian.PutUint64(b[16:], m.sequence)
	binary.BigEndian.PutUint64(b[24:], uint64(m.time))
	binary.BigEndian.PutUint32(b[32:], crc32.Update(fillerCRC, castagnoli, b[:markSize-crcSize]))
}

// parse reads the mark of a body. Errors: errForeign, errDamaged.
func (m *mark) parse(body []byte) error {
	if len(body) < markSize {
		return errForeign
	}
	b := body[len(body)-markSize:]
	if binary.BigEndian.Uint32(b) != markMagic {
		return errForeign
	}
	if crc32.Checksum(body[:len(body)-crcSize], castagnoli) != binary.BigEndian.Uint32(b[32:]) {
		return errDamaged
	}
	m.run = binary.BigEndian.Uint32(b[4:])
	m.stream = binary.BigEndian.Uint32(b[8:])
	m.queue = binary.BigEndian.Uint32(b[12:])
	m.sequence = binary.BigEndian.Uint64(b[16:])
	m.time = int64(binary.BigEndian.Uint64(b[24:]))
	return nil
}
