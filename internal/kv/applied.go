package kv

import (
	"encoding/binary"
	"fmt"

	"github.com/metaqio/metaq/message"
)

// Applied is the place in the log up to which the store is true: everything
// before Position, the last entry being Index of Term.
type Applied struct {
	Position message.Position
	Index    uint64
	Term     uint64
}

// appliedKey is part of the format of the store. Do not change.
var appliedKey = []byte{0, 'a'}

const appliedSize = 24

// append appends the value of key 00 'a', big-endian:
//
//	┌──────────────┬───────────┬──────────┐
//	│ position u64 │ index u64 │ term u64 │
//	└──────────────┴───────────┴──────────┘
func (a Applied) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(a.Position))
	dst = binary.BigEndian.AppendUint64(dst, a.Index)
	return binary.BigEndian.AppendUint64(dst, a.Term)
}

func parseApplied(b []byte) (Applied, error) {
	if len(b) != appliedSize {
		return Applied{}, fmt.Errorf("applied position has %d bytes instead of %d", len(b), appliedSize)
	}
	return Applied{
		Position: message.Position(binary.BigEndian.Uint64(b)),
		Index:    binary.BigEndian.Uint64(b[8:]),
		Term:     binary.BigEndian.Uint64(b[16:]),
	}, nil
}
