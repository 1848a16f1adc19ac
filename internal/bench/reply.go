package bench

import (
	"bytes"
	"encoding/binary"

	"github.com/metaqio/metaq/internal/protocol"
)

// A reply is what matters of an answer.
type reply struct {
	opaque int32
	code   int32
}

var opaqueKey = []byte(`"opaque":`)

// scanReply reads opaque and code of the frame of an answer, without a look at the rest; false when that takes a real decoder. It
// relies on what every server does, and asks for the decoder where one does not: the code comes first in JSON.
func scanReply(frame []byte) (r reply, ok bool) {
	if len(frame) < 8+21 {
		return r, false
	}
	word := binary.BigEndian.Uint32(frame[4:])
	size := int(word & 0xFFFFFF)
	if 8+size > len(frame) {
		return r, false
	}
	if protocol.Encoding(word>>24) == protocol.Binary {
		r.code = int32(int16(binary.BigEndian.Uint16(frame[8:])))
		r.opaque = int32(binary.BigEndian.Uint32(frame[binaryOpaqueAt:]))
		return r, size >= 21
	}
	const codeKey = `{"code":`
	header := frame[8 : 8+size]
	if protocol.Encoding(word>>24) != protocol.JSON || len(header) < len(codeKey) || string(header[:len(codeKey)]) != codeKey {
		return r, false
	}
	// Inside a string the quotes would be escaped, so this is the key.
	_, rest, _ := bytes.Cut(header, opaqueKey)
	code, ok1 := leadingInt(header[len(codeKey):])
	opaque, ok2 := leadingInt(rest)
	return reply{opaque: opaque, code: code}, ok1 && ok2
}

// leadingInt reads a number of at most ten digits that a comma or brace ends.
func leadingInt(b []byte) (int32, bool) {
	v := int64(0)
	for i, c := range b[:min(len(b), opaqueDigits+1)] {
		if c -= '0'; c <= 9 {
			v = v*10 + int64(c)
			continue
		}
		end := c + '0'
		return int32(v), i > 0 && v <= 1<<31-1 && (end == ',' || end == '}')
	}
	return 0, false
}
