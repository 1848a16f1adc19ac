package broker

import (
	"fmt"

	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/message"
)

// appendRecords appends the records of entries. Neighbours in the log are read in
// one go. Hot reads take only what is in memory or in the page cache.
func (b *Broker) appendRecords(dst []byte, entries []queue.Entry, hot bool) ([]byte, error) {
	start := len(dst)
	log := b.shard.Log()
	for i := 0; i < len(entries); {
		pos, n := entries[i].Position, int(entries[i].Size)
		for i++; i < len(entries) && entries[i].Position == pos+message.Position(n); i++ {
			n += int(entries[i].Size)
		}
		var ok bool
		if dst, ok = log.Hot(dst, pos, n); ok {
			continue
		}
		if hot && !log.Resident(pos, n) {
			return dst[:start], ErrCold
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
func (b *Broker) recordAt(pos message.Position) (message.Record, error) {
	log := b.shard.Log()
	if pos < log.Start() || pos >= b.shard.Applied() {
		return message.Record{}, refuse(NoMessage, "can not find message by the offset, %d", pos)
	}
	head, err := log.Read(nil, pos, 8)
	if err != nil {
		return message.Record{}, refuse(NoMessage, "can not find message by the offset, %d", pos)
	}
	size, err := message.RecordSize(head)
	if err != nil || message.Position(size) > b.shard.Applied()-pos || size > b.conf.Load().MaxMessageBytes+maxRecordHead {
		return message.Record{}, refuse(NoMessage, "can not find message by the offset, %d", pos)
	}
	r, err := b.record(queue.Entry{Position: pos, Size: int32(size)})
	if err != nil || r.Position != pos {
		return message.Record{}, refuse(NoMessage, "can not find message by the offset, %d", pos)
	}
	return r, nil
}

// maxRecordHead is more than a record has besides its body.
const maxRecordHead = 1 << 16

// RawRecordAt reads the stored bytes of the record at a position; a position that is not one of a record is an error.
func (b *Broker) RawRecordAt(pos message.Position) ([]byte, error) {
	r, err := b.recordAt(pos)
	if err != nil {
		return nil, err
	}
	return message.AppendRecord(nil, &r), nil
}
