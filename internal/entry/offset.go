package entry

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/metaqio/metaq/message"
)

// QueueAt is a place in a queue.
type QueueAt struct {
	Queue  int32
	Offset message.QueueOffset
}

// CommitOffsets says how far a group has consumed queues of a topic: Offset is
// the next message to be consumed. Folding never takes an offset back.
type CommitOffsets struct {
	Group string
	Topic string
	Items []QueueAt
}

// Kind implements Command.
func (*CommitOffsets) Kind() Kind { return KindCommitOffsets }

// AppendBody implements Command.
func (c *CommitOffsets) AppendBody(dst []byte) []byte {
	return appendOffsets(dst, c.Group, c.Topic, c.Items)
}

// ParseBody implements Command.
func (c *CommitOffsets) ParseBody(b []byte) error {
	*c = CommitOffsets{}
	return fields(b, func(n protowire.Number, f field) {
		parseOffsets(n, f, &c.Group, &c.Topic, &c.Items)
	})
}

// ResetOffsets sets offsets to a given value, back or forth: the only way in
// which an offset can become smaller. It names who asked for it.
type ResetOffsets struct {
	Group string
	Topic string
	Items []QueueAt
	// Pending makes the reset bind: the next pull of each queue is told to
	// continue there, and commits that come before it are void.
	Pending bool
	Actor   string
}

// Kind implements Command.
func (*ResetOffsets) Kind() Kind { return KindResetOffsets }

// AppendBody implements Command.
func (c *ResetOffsets) AppendBody(dst []byte) []byte {
	dst = appendOffsets(dst, c.Group, c.Topic, c.Items)
	dst = appendBool(dst, 5, c.Pending)
	return appendString(dst, 15, c.Actor)
}

// ParseBody implements Command.
func (c *ResetOffsets) ParseBody(b []byte) error {
	*c = ResetOffsets{}
	return fields(b, func(n protowire.Number, f field) {
		parseOffsets(n, f, &c.Group, &c.Topic, &c.Items)
		switch n {
		case 5:
			c.Pending = f.bool()
		case 15:
			c.Actor = f.str()
		}
	})
}

// RawOffsets is a CommitOffsets or a ResetOffsets that is read in place: the names
// alias the body, and the memory of Items is used again. So folding allocates nothing.
type RawOffsets struct {
	Group, Topic []byte
	Items        []QueueAt
	Pending      bool // of a reset
}

// Parse reads the body of either command.
func (o *RawOffsets) Parse(b []byte) error {
	o.Group, o.Topic, o.Items, o.Pending = nil, nil, o.Items[:0], false
	return fields(b, func(n protowire.Number, f field) {
		switch n {
		case 1:
			o.Group = f.bytes
		case 2:
			o.Topic = f.bytes
		case 3, 4:
			o.Items = parseItems(n, f, o.Items)
		case 5:
			o.Pending = f.bool()
		}
	})
}

// Queues and offsets are two packed lists of varints (fields 3 and 4) of equal length.
func appendOffsets(dst []byte, group, topic string, items []QueueAt) []byte {
	dst = appendString(dst, 1, group)
	dst = appendString(dst, 2, topic)
	var queues, offsets int
	for _, it := range items {
		queues += protowire.SizeVarint(uint64(it.Queue))
		offsets += protowire.SizeVarint(uint64(it.Offset))
	}
	dst = protowire.AppendVarint(protowire.AppendTag(dst, 3, protowire.BytesType), uint64(queues))
	for _, it := range items {
		dst = protowire.AppendVarint(dst, uint64(it.Queue))
	}
	dst = protowire.AppendVarint(protowire.AppendTag(dst, 4, protowire.BytesType), uint64(offsets))
	for _, it := range items {
		dst = protowire.AppendVarint(dst, uint64(it.Offset))
	}
	return dst
}

func parseOffsets(n protowire.Number, f field, group, topic *string, items *[]QueueAt) {
	switch n {
	case 1:
		*group = f.str()
	case 2:
		*topic = f.str()
	case 3, 4:
		*items = parseItems(n, f, *items)
	}
}

// parseItems reads one of the two lists into items.
func parseItems(n protowire.Number, f field, items []QueueAt) []QueueAt {
	for i, b := 0, f.bytes; len(b) > 0; i++ {
		v, k := protowire.ConsumeVarint(b)
		if k < 0 {
			break
		}
		b = b[k:]
		if i >= len(items) {
			items = append(items, QueueAt{})
		}
		if n == 3 {
			items[i].Queue = int32(v)
		} else {
			items[i].Offset = message.QueueOffset(v)
		}
	}
	return items
}
