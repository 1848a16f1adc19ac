package broker

import (
	"encoding/binary"
	"fmt"

	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/message"
)

// appendRecords appends the records of entries. Hot reads take only what is in
// memory or in the page cache, and answer ErrCold for anything else.
func (b *Broker) appendRecords(dst []byte, entries []queue.Entry, hot bool) ([]byte, error) {
	start := len(dst)
	log := b.shard.Log()
	dst, ok := log.Gather(dst, len(entries), func(i int) (message.Position, int) { return entries[i].Position, int(entries[i].Size) })
	if ok {
		return dst, nil
	}
	if hot {
		return dst, ErrCold
	}
	for i := 0; i < len(entries); { // neighbours are read in one go
		pos, n := entries[i].Position, int(entries[i].Size)
		for i++; i < len(entries) && entries[i].Position == pos+message.Position(n); i++ {
			n += int(entries[i].Size)
		}
		var err error
		if dst, err = log.Read(dst, pos, n); err != nil {
			return dst[:start], fmt.Errorf("read records: %w", err)
		}
	}
	return dst, nil
}

// record reads one record and parses it.
func (b *Broker) record(e queue.Entry) (message.Record, error) {
	var r message.Record
	raw, err := b.appendRecords(nil, []queue.Entry{e}, false)
	if err != nil {
		return r, err
	}
	if _, err := r.Parse(raw); err != nil {
		return r, fmt.Errorf("record at %d: %w", e.Position, err)
	}
	return r, nil
}

// recordAt reads the record that begins at a position, as clients name it; a
// position that is not one is an error.
func (b *Broker) recordAt(pos message.Position) ([]byte, message.Record, error) {
	log := b.shard.Log()
	if pos < log.Start() || pos >= b.shard.Applied() {
		return nil, message.Record{}, refuse(NoMessage, "can not find message by the offset, %d", pos)
	}
	head, err := log.Read(nil, pos, 4)
	if err != nil {
		return nil, message.Record{}, refuse(NoMessage, "can not find message by the offset, %d", pos)
	}
	size := int32(binary.BigEndian.Uint32(head))
	if size <= 0 || message.Position(size) > b.shard.Applied()-pos || size > maxRecord {
		return nil, message.Record{}, refuse(NoMessage, "can not find message by the offset, %d", pos)
	}
	var r message.Record
	raw, err := b.appendRecords(nil, []queue.Entry{{Position: pos, Size: size}}, false)
	if err == nil {
		_, err = r.Parse(raw)
	}
	if err != nil || r.Position != pos {
		return nil, message.Record{}, refuse(NoMessage, "can not find message by the offset, %d", pos)
	}
	return raw, r, nil
}

// maxRecord is more than any record has: a frame of the classic protocol is not longer.
const maxRecord = 32 << 20

// RawRecordAt reads the stored bytes of the record at a position; a position that is not one of a record is an error.
func (b *Broker) RawRecordAt(pos message.Position) ([]byte, error) {
	raw, _, err := b.recordAt(pos)
	return raw, err
}
