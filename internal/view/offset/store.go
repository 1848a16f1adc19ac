package offset

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/message"
)

// Keys of the view in the store (part of the on-disk format):
//
//	'o' group 00 topic  → for each queue: offset i64 (−1: none) │ pending u8
const (
	prefix    = 'o'
	itemBytes = 9
)

func (k key) bytes() []byte {
	b := append([]byte{prefix}, k.group...)
	return append(append(b, 0), k.topic...)
}

// Load implements shard.View.
func (v *View) Load(s *kv.Store) error {
	var bad error
	err := s.Scan([]byte{prefix}, []byte{prefix + 1}, func(k, b []byte) bool {
		group, topic, ok := bytes.Cut(k[1:], []byte{0})
		if !ok || len(b)%itemBytes != 0 {
			bad = fmt.Errorf("offset view: key %q with %d bytes", k, len(b))
			return false
		}
		t := v.table(string(group), string(topic))
		t.dirty = false
		for ; len(b) > 0; b = b[itemBytes:] {
			t.offsets = append(t.offsets, message.QueueOffset(binary.BigEndian.Uint64(b)))
			t.pending = append(t.pending, b[8] != 0)
		}
		return true
	})
	clear(v.dirty)
	if bad != nil {
		return bad
	}
	return err
}

// Checkpoint implements shard.View.
func (v *View) Checkpoint() (write func(*kv.Batch), done func()) {
	type change struct {
		key   key
		value []byte
	}
	var changes []change
	for k := range v.dirty {
		t := v.groups[k.group][k.topic]
		t.dirty = false
		value := make([]byte, 0, len(t.offsets)*itemBytes)
		for i, o := range t.offsets {
			value = binary.BigEndian.AppendUint64(value, uint64(o))
			var p byte
			if t.pending[i] {
				p = 1
			}
			value = append(value, p)
		}
		changes = append(changes, change{k, value})
	}
	clear(v.dirty)
	gone := v.gone
	v.gone = map[key]struct{}{}
	return func(b *kv.Batch) {
		for k := range gone {
			b.Delete(k.bytes())
		}
		for _, c := range changes {
			b.Set(c.key.bytes(), c.value)
		}
	}, func() {}
}
