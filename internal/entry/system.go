package entry

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/metaqio/metaq/message"
)

// DropLog says that everything before a position has been given up by retention:
// the segments may be removed, and no queue reaches further back.
type DropLog struct {
	Before message.Position
	Reason string
}

// Kind implements Command.
func (*DropLog) Kind() Kind { return KindDropLog }

// AppendBody implements Command.
func (c *DropLog) AppendBody(dst []byte) []byte {
	return appendString(appendInt(dst, 1, int64(c.Before)), 2, c.Reason)
}

// ParseBody implements Command.
func (c *DropLog) ParseBody(b []byte) error {
	*c = DropLog{}
	return fields(b, func(n protowire.Number, f field) {
		switch n {
		case 1:
			c.Before = message.Position(f.num)
		case 2:
			c.Reason = f.str()
		}
	})
}

// TimerDone says that a parked message has been delivered; it stands in the entry
// that holds the delivered copy, so that neither can be without the other.
type TimerDone struct {
	Parked message.Position // of the parked record
}

// Kind implements Command.
func (*TimerDone) Kind() Kind { return KindTimerDone }

// AppendBody implements Command.
func (c *TimerDone) AppendBody(dst []byte) []byte { return appendInt(dst, 1, int64(c.Parked)) }

// ParseBody implements Command.
func (c *TimerDone) ParseBody(b []byte) error {
	*c = TimerDone{}
	return fields(b, func(n protowire.Number, f field) {
		if n == 1 {
			c.Parked = message.Position(f.num)
		}
	})
}

// PutSetting changes a setting of the broker at run time (RocketMQ: updateBrokerConfig).
type PutSetting struct {
	Name  string
	Value string
	Actor string
}

// Kind implements Command.
func (*PutSetting) Kind() Kind { return KindPutSetting }

// AppendBody implements Command.
func (c *PutSetting) AppendBody(dst []byte) []byte {
	return appendString(appendString(appendString(dst, 1, c.Name), 2, c.Value), 15, c.Actor)
}

// ParseBody implements Command.
func (c *PutSetting) ParseBody(b []byte) error {
	*c = PutSetting{}
	return fields(b, func(n protowire.Number, f field) {
		switch n {
		case 1:
			c.Name = f.str()
		case 2:
			c.Value = f.str()
		case 15:
			c.Actor = f.str()
		}
	})
}
