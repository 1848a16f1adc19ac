package entry

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/metaqio/metaq/message"
)

// Decision says how a transaction ended. Part of the on-disk format: do not renumber.
type Decision byte

// The decisions.
const (
	Commit   Decision = 1 // the message stands in the same entry
	Rollback Decision = 2
	// GiveUp: nobody decided. The message stands in the same entry, in the topic of stale transactions.
	GiveUp Decision = 3
	// Resume: what was given up is to be decided after all. The position is that of the record in the topic of stale
	// transactions; the new half message stands in the same entry.
	Resume Decision = 4
)

// String says what was done.
func (d Decision) String() string {
	switch d {
	case Commit:
		return "committed"
	case Rollback:
		return "rolled back"
	case GiveUp:
		return "given up"
	case Resume:
		return "resumed"
	}
	return fmt.Sprintf("decision %d", byte(d))
}

// MarshalText implements encoding.TextMarshaler.
func (d Decision) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// EndTransaction says how a transaction ended; the first one for a half message
// counts. It stands in the entry of the message that becomes of it, so that neither
// can be without the other.
type EndTransaction struct {
	Half     message.Position // of the half message's record
	Decision Decision
	// Answer says that the producer answered a check.
	Answer bool
	Actor  string // who decided: the client, or the broker's reason
}

// Kind implements Command.
func (*EndTransaction) Kind() Kind { return KindEndTransaction }

// AppendBody implements Command.
func (c *EndTransaction) AppendBody(dst []byte) []byte {
	dst = appendInt(dst, 1, int64(c.Half))
	dst = appendInt(dst, 2, int64(c.Decision))
	dst = appendBool(dst, 3, c.Answer)
	return appendString(dst, 15, c.Actor)
}

// ParseBody implements Command.
func (c *EndTransaction) ParseBody(b []byte) error {
	*c = EndTransaction{}
	return fields(b, func(n protowire.Number, f field) {
		switch n {
		case 1:
			c.Half = message.Position(f.num)
		case 2:
			c.Decision = Decision(f.num)
		case 3:
			c.Answer = f.bool()
		case 15:
			c.Actor = f.str()
		}
	})
}

// CheckTransaction says that a producer is asked, and when to ask again.
type CheckTransaction struct {
	Half   message.Position // of the half message's record
	Checks int32            // so many, this one included
	Next   int64            // ms
}

// Kind implements Command.
func (*CheckTransaction) Kind() Kind { return KindCheckTransaction }

// AppendBody implements Command.
func (c *CheckTransaction) AppendBody(dst []byte) []byte {
	return appendInt(appendInt(appendInt(dst, 1, int64(c.Half)), 2, int64(c.Checks)), 3, c.Next)
}

// ParseBody implements Command.
func (c *CheckTransaction) ParseBody(b []byte) error {
	*c = CheckTransaction{}
	return fields(b, func(n protowire.Number, f field) {
		switch n {
		case 1:
			c.Half = message.Position(f.num)
		case 2:
			c.Checks = f.int32()
		case 3:
			c.Next = f.int()
		}
	})
}
