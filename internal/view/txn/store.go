package txn

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/message"
)

// Keys of the view in the store (big-endian; part of the on-disk format):
//
//	'x' 'o' position u64  → size u32 │ half-queue offset u64 │ stored u64 (ms) │ immunity i64 (ms, −1 none) │ checks u32 │ next u64 (ms) │ group
//	'x' 'e' number u64    → position u64 │ half-queue offset u64 │ time u64 (ms) │ decision u8
const (
	prefix    = 'x'
	openKey   = 'o'
	endedKey  = 'e'
	keySize   = 10
	openSize  = 40 // without the group
	endedSize = 25
)

func key(kind byte, n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{prefix, kind}, n) }

func (o *Open) value() []byte {
	be := binary.BigEndian
	b := be.AppendUint32(nil, uint32(o.Size))
	b = be.AppendUint64(b, uint64(o.Offset))
	b = be.AppendUint64(b, uint64(o.Stored))
	b = be.AppendUint64(b, uint64(o.Immunity))
	b = be.AppendUint32(b, uint32(o.Checks))
	b = be.AppendUint64(b, uint64(o.Next))
	return append(b, o.Group...)
}

func parseOpen(k, b []byte) (Open, bool) {
	if len(k) != keySize || len(b) < openSize {
		return Open{}, false
	}
	be := binary.BigEndian
	return Open{
		Position: message.Position(be.Uint64(k[2:])), Size: int32(be.Uint32(b)), Offset: message.QueueOffset(be.Uint64(b[4:])),
		Stored: int64(be.Uint64(b[12:])), Immunity: int64(be.Uint64(b[20:])), Checks: int32(be.Uint32(b[28:])), Next: int64(be.Uint64(b[32:])),
		Group: string(b[openSize:]),
	}, true
}

func (e *Ended) value() []byte {
	be := binary.BigEndian
	b := be.AppendUint64(nil, uint64(e.Half))
	b = be.AppendUint64(b, uint64(e.Offset))
	b = be.AppendUint64(b, uint64(e.Time))
	return append(b, byte(e.Decision))
}

func parseEnded(k, b []byte) (number uint64, e Ended, ok bool) {
	if len(k) != keySize || len(b) != endedSize {
		return 0, e, false
	}
	be := binary.BigEndian
	return be.Uint64(k[2:]), Ended{
		Half: message.Position(be.Uint64(b)), Offset: message.QueueOffset(be.Uint64(b[8:])), Time: int64(be.Uint64(b[16:])), Decision: entry.Decision(b[24]),
	}, true
}

// Load implements shard.View.
func (v *View) Load(s *kv.Store) error {
	var bad error
	damaged := func(k, b []byte) bool {
		bad = fmt.Errorf("transaction view: key of %d bytes, value of %d", len(k), len(b))
		return false
	}
	scan := func(kind byte, each func(k, b []byte) bool) error {
		if err := s.Scan([]byte{prefix, kind}, []byte{prefix, kind + 1}, each); err != nil {
			return err
		}
		return bad
	}
	err := scan(openKey, func(k, b []byte) bool {
		o, ok := parseOpen(k, b)
		if !ok {
			return damaged(k, b)
		}
		v.add(&item{Open: o, saved: true})
		return true
	})
	if err != nil {
		return err
	}
	e := &v.ended
	return scan(endedKey, func(k, b []byte) bool {
		n, one, ok := parseEnded(k, b)
		if !ok || len(e.list) > 0 && n != e.end() {
			return damaged(k, b)
		}
		if len(e.list) == 0 {
			e.head, e.savedHead = n, n
		}
		e.by[one.Half] = n
		e.list = append(e.list, one)
		e.savedEnd = e.end()
		return true
	})
}

// Checkpoint implements shard.View.
func (v *View) Checkpoint() (write func(*kv.Batch), done func()) {
	changed, gone := v.changed, v.gone
	v.changed, v.gone = map[message.Position]Open{}, map[message.Position]struct{}{}
	for pos := range changed {
		v.open[pos].saved = true
	}
	e := &v.ended
	first := max(e.savedEnd, e.head)
	made := slices.Clone(e.list[first-e.head:])
	from, to := e.savedHead, min(e.head, e.savedEnd)
	e.savedHead, e.savedEnd = e.head, e.end()
	return func(b *kv.Batch) {
		for pos := range gone {
			b.Delete(key(openKey, uint64(pos)))
		}
		for pos, o := range changed {
			b.Set(key(openKey, uint64(pos)), o.value())
		}
		for n := from; n < to; n++ {
			b.Delete(key(endedKey, n))
		}
		for i := range made {
			b.Set(key(endedKey, first+uint64(i)), made[i].value())
		}
	}, func() {}
}
