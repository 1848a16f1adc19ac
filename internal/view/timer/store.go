package timer

import (
	"encoding/binary"
	"fmt"

	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/message"
)

// Keys of the view in the store (big-endian; part of the on-disk format):
//
//	'd' due u64 (ms) │ position u64  → size u32 of the parked record
const prefix = 'd'

func (p Parked) key() []byte {
	k := binary.BigEndian.AppendUint64([]byte{prefix}, uint64(p.Due))
	return binary.BigEndian.AppendUint64(k, uint64(p.Position))
}

// Load implements shard.View.
func (v *View) Load(s *kv.Store) error {
	var bad error
	err := s.Scan([]byte{prefix}, []byte{prefix + 1}, func(k, b []byte) bool {
		if len(k) != 17 || len(b) != 4 {
			bad = fmt.Errorf("timer view: key of %d bytes, value of %d", len(k), len(b))
			return false
		}
		v.add(Parked{
			Due: int64(binary.BigEndian.Uint64(k[1:])), Position: message.Position(binary.BigEndian.Uint64(k[9:])),
			Size: int32(binary.BigEndian.Uint32(b)),
		})
		return true
	})
	if bad != nil {
		return bad
	}
	return err
}

// Checkpoint implements shard.View.
func (v *View) Checkpoint() (write func(*kv.Batch), done func()) {
	made, gone := v.made, v.done
	v.made, v.done = map[message.Position]Parked{}, map[message.Position]Parked{}
	return func(b *kv.Batch) {
		for _, p := range gone {
			b.Delete(p.key())
		}
		for _, p := range made {
			b.Set(p.key(), binary.BigEndian.AppendUint32(nil, uint32(p.Size)))
		}
	}, func() {}
}
