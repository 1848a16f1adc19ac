package commitlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/metaqio/metaq/message"
)

// A segment is a run of frames from its first byte on. All numbers are big-endian.
//
//	 0       4     6   7   8        12      16      24      32         40     48      52      56
//	┌────────┬─────┬───┬───┬────────┬───────┬───────┬───────┬──────────┬──────┬───────┬───────┬─────────┐
//	│ length │magic│ver│knd│ CRC-32C│ count │ term  │ index │ position │ time │ group │ flags │ payload │
//	│ u32    │"MQ" │ 1 │ u8│ u32    │ u32   │ u64   │ u64   │ u64      │ u64  │ u32   │ u32   │         │
//	└────────┴─────┴───┴───┴────────┴───────┴───────┴───────┴──────────┴──────┴───────┴───────┴─────────┘
//	length    of the whole frame, header included
//	CRC-32C   Castagnoli, over the bytes [0, 8) and [12, length); of a pad over [0, 8) and [12, 56)
//	position  of this frame's first byte in the log; under the CRC, so that a frame is valid at one place only
//	time      milliseconds since 1970, the leader's clock
//	group     a promise: everything before position-group had been synced, on this disk, when this frame was written; 2^32-1 promises nothing
//	flags     bit 0: written under durability async; group is no promise then
//
// Frames follow each other without gaps. A frame that does not fit in the rest of its segment begins the next one; the rest is a pad (a header
// whose length is the rest, term, index, count, time, group and flags zero; its body is never written nor read) or, if less than a header is
// left, nothing: those bytes mean nothing.
const (
	// HeaderSize is the size of a frame without payload.
	HeaderSize = 56

	atLength   = 0
	atMagic    = 4
	atVersion  = 6
	atKind     = 7
	atCRC      = 8
	atCount    = 12
	atTerm     = 16
	atIndex    = 24
	atPosition = 32
	atTime     = 40
	atGroup    = 48
	atFlags    = 52

	magic   = 'M'<<8 | 'Q'
	version = 1
)

// Kinds of frames. Part of the format: never renumber.
const (
	KindMessages byte = 1 // a run of message records
	KindCommands byte = 2 // commands
	KindEmpty    byte = 3 // raft's empty entry, with which a leader begins
	KindConfig   byte = 4 // raft's change of members
	KindPad      byte = 5 // the end of a segment; no entry

	lastKind = KindPad
)

// FlagAsync marks a frame that was written under durability async: it says nothing about syncs, and a bad frame before it is a torn write.
const FlagAsync uint32 = 1

// noPromise in the field group promises nothing about syncs.
const noPromise = math.MaxUint32

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is what a frame says about itself.
type Header struct {
	Kind        byte
	Count       uint32 // records in the payload
	Term, Index uint64 // raft's; 0 in a pad
	Position    message.Position
	Time        int64 // ms since 1970, by the leader's clock
	Size        int   // bytes of the whole frame
	// Group is the distance from the start of the write group (what one pwrite and one sync put on the disk) to this frame. Seal moves the start
	// back to what is really synced at that moment, so that it is the promise drawn above: recovery takes a bad frame before the start of a later
	// frame's group for damage, and any other for a torn write. 0 is always right. With FlagAsync it means nothing.
	Group uint32
	Flags uint32
}

// Frame is a header and its payload.
type Frame struct {
	Header
	Payload []byte
}

// end is the position behind the frame.
func (h *Header) end() message.Position { return h.Position + message.Position(h.Size) }

// synced is the position up to which the frame promises that the log had been synced before it; 0 when it promises nothing.
func (h *Header) synced() message.Position {
	if h.Group == noPromise || h.Flags&FlagAsync != 0 {
		return 0
	}
	return h.Position - message.Position(h.Group)
}

// put writes the header of a frame and its CRC. REQUIRES: b is what the CRC covers: the frame with its payload, or a pad's header.
func (h *Header) put(b []byte) {
	be := binary.BigEndian
	be.PutUint32(b[atLength:], uint32(h.Size))
	be.PutUint16(b[atMagic:], magic)
	b[atVersion], b[atKind] = version, h.Kind
	be.PutUint32(b[atCount:], h.Count)
	be.PutUint64(b[atTerm:], h.Term)
	be.PutUint64(b[atIndex:], h.Index)
	be.PutUint64(b[atPosition:], uint64(h.Position))
	be.PutUint64(b[atTime:], uint64(h.Time))
	be.PutUint32(b[atGroup:], h.Group)
	be.PutUint32(b[atFlags:], h.Flags)
	be.PutUint32(b[atCRC:], checksum(b))
}

// checksum is the CRC of a frame, or of a pad's header: of everything but the CRC itself.
func checksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:atCRC], castagnoli), castagnoli, b[atCount:])
}

// putPad writes a pad's header into b[:HeaderSize]. Its bytes follow from its place alone.
func putPad(b []byte, pos message.Position, size int64) {
	h := Header{Kind: KindPad, Position: pos, Size: int(size)}
	h.put(b[:HeaderSize])
}

func readHeader(b []byte) Header {
	be := binary.BigEndian
	return Header{
		Kind: b[atKind], Count: be.Uint32(b[atCount:]), Term: be.Uint64(b[atTerm:]), Index: be.Uint64(b[atIndex:]),
		Position: message.Position(be.Uint64(b[atPosition:])), Time: int64(be.Uint64(b[atTime:])), Size: int(be.Uint32(b[atLength:])),
		Group: be.Uint32(b[atGroup:]), Flags: be.Uint32(b[atFlags:]),
	}
}

// checkHeader looks at the first HeaderSize bytes of a frame that should lie at pos with room bytes to the segment's end. It returns why they
// are no header of this place. Version and kind are judged once the CRC was found right: see [checkSupported].
func checkHeader(b []byte, pos message.Position, room int64) (h Header, why string) {
	h = readHeader(b)
	switch {
	case binary.BigEndian.Uint16(b[atMagic:]) != magic:
		return h, "no frame begins here"
	case h.Position != pos:
		return h, fmt.Sprintf("the frame says that it is at position %d", h.Position)
	case h.Size < HeaderSize:
		return h, fmt.Sprintf("the frame's length %d is less than a header", h.Size)
	case int64(h.Size) > room:
		return h, fmt.Sprintf("the frame's length %d exceeds the segment", h.Size)
	case h.Kind == KindPad && int64(h.Size) != room:
		return h, fmt.Sprintf("the pad's length %d is not the rest of the segment", h.Size)
	}
	return h, ""
}

// checkSum compares the CRC of a whole frame, or of a pad's header.
func checkSum(h *Header, b []byte) (why string) {
	end := h.Size
	if h.Kind == KindPad {
		end = HeaderSize
	}
	if got, want := checksum(b[:end]), binary.BigEndian.Uint32(b[atCRC:]); got != want {
		return fmt.Sprintf("CRC is %08x, the frame says %08x", got, want)
	}
	return ""
}

// checkSupported says why this program cannot use a frame whose CRC is right. Such a frame is never cut: a newer program wrote it.
func checkSupported(h *Header, b []byte) (why string) {
	if b[atVersion] != version {
		return fmt.Sprintf("frame version %d, this program knows %d", b[atVersion], version)
	}
	if h.Kind == 0 || h.Kind > lastKind {
		return fmt.Sprintf("frame kind %d is unknown to this program", h.Kind)
	}
	return ""
}

// ParseHeader reads the header of a whole frame, or of its first [HeaderSize] bytes, without a look at the CRC.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, fmt.Errorf("%d bytes are less than a frame's header", len(b))
	}
	h, why := checkHeader(b, message.Position(binary.BigEndian.Uint64(b[atPosition:])), math.MaxInt64)
	if why != "" && h.Kind != KindPad { // where a pad ends is its segment's business
		return h, errors.New(why)
	}
	if h.Position < 0 {
		return h, fmt.Errorf("the frame's position is %d", h.Position)
	}
	if why := checkSupported(&h, b); why != "" {
		return h, errors.New(why)
	}
	return h, nil
}

// ParseFrame reads and verifies a whole frame. The payload is a part of b.
func ParseFrame(b []byte) (Frame, error) {
	h, err := ParseHeader(b)
	if err != nil {
		return Frame{}, err
	}
	if h.Kind == KindPad {
		if why := checkSum(&h, b); why != "" {
			return Frame{}, errors.New(why)
		}
		return Frame{Header: h}, nil
	}
	if len(b) != h.Size {
		return Frame{}, fmt.Errorf("frame of %d bytes in a buffer of %d", h.Size, len(b))
	}
	if why := checkSum(&h, b); why != "" {
		return Frame{}, errors.New(why)
	}
	return Frame{Header: h, Payload: b[HeaderSize:]}, nil
}
