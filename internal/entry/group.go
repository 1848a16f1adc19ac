package entry

import (
	"maps"

	"google.golang.org/protobuf/encoding/protowire"
)

// Group is the configuration of a consumer group (semantics: RocketMQ's SubscriptionGroupConfig).
type Group struct {
	Name             string
	ConsumeEnable    bool
	FromMinEnable    bool
	BroadcastEnable  bool
	Orderly          bool
	RetryQueues      int32
	RetryMaxTimes    int32
	BrokerID         int64
	SlowBrokerID     int64 // whichBrokerWhenConsumeSlowly
	NotifyIDsChanged bool
	SysFlag          int32
	TimeoutMinutes   int32
	RetryPolicy      string // JSON of groupRetryPolicy, kept as it came
	Attributes       map[string]string
}

// DefaultGroup is what a group is when it is created by its first use.
func DefaultGroup(name string) Group {
	return Group{
		Name: name, ConsumeEnable: true, FromMinEnable: true, BroadcastEnable: true, RetryQueues: 1, RetryMaxTimes: 16,
		SlowBrokerID: 1, NotifyIDsChanged: true, TimeoutMinutes: 15,
	}
}

// Equal says whether both describe the same group.
func (g *Group) Equal(o *Group) bool {
	a, b := *g, *o
	a.Attributes, b.Attributes = nil, nil
	return a.comparable() == b.comparable() && maps.Equal(g.Attributes, o.Attributes)
}

type comparableGroup struct {
	name, policy                                 string
	consume, fromMin, broadcast, orderly, notify bool
	retryQueues, retryMax, sysFlag, timeout      int32
	broker, slow                                 int64
}

func (g *Group) comparable() comparableGroup {
	return comparableGroup{g.Name, g.RetryPolicy, g.ConsumeEnable, g.FromMinEnable, g.BroadcastEnable, g.Orderly, g.NotifyIDsChanged,
		g.RetryQueues, g.RetryMaxTimes, g.SysFlag, g.TimeoutMinutes, g.BrokerID, g.SlowBrokerID}
}

// PutGroup creates a group or replaces its configuration.
type PutGroup struct {
	Group Group
	Actor string
}

// Kind implements Command.
func (*PutGroup) Kind() Kind { return KindPutGroup }

// AppendBody implements Command.
func (c *PutGroup) AppendBody(dst []byte) []byte {
	return appendString(c.Group.AppendFields(dst), 15, c.Actor)
}

// AppendFields appends the group's fields; views store groups in this form.
func (g *Group) AppendFields(dst []byte) []byte {
	dst = appendString(dst, 1, g.Name)
	dst = appendBool(dst, 2, g.ConsumeEnable)
	dst = appendBool(dst, 3, g.FromMinEnable)
	dst = appendBool(dst, 4, g.BroadcastEnable)
	dst = appendBool(dst, 5, g.Orderly)
	dst = appendInt(dst, 6, int64(g.RetryQueues))
	dst = appendInt(dst, 7, int64(g.RetryMaxTimes))
	dst = appendInt(dst, 8, g.BrokerID)
	dst = appendInt(dst, 9, g.SlowBrokerID)
	dst = appendBool(dst, 10, g.NotifyIDsChanged)
	dst = appendInt(dst, 11, int64(g.SysFlag))
	dst = appendInt(dst, 12, int64(g.TimeoutMinutes))
	dst = appendString(dst, 13, g.RetryPolicy)
	return appendMap(dst, 14, g.Attributes)
}

func (g *Group) set(n protowire.Number, f field) (err error) {
	switch n {
	case 1:
		g.Name = f.str()
	case 2:
		g.ConsumeEnable = f.bool()
	case 3:
		g.FromMinEnable = f.bool()
	case 4:
		g.BroadcastEnable = f.bool()
	case 5:
		g.Orderly = f.bool()
	case 6:
		g.RetryQueues = f.int32()
	case 7:
		g.RetryMaxTimes = f.int32()
	case 8:
		g.BrokerID = f.int()
	case 9:
		g.SlowBrokerID = f.int()
	case 10:
		g.NotifyIDsChanged = f.bool()
	case 11:
		g.SysFlag = f.int32()
	case 12:
		g.TimeoutMinutes = f.int32()
	case 13:
		g.RetryPolicy = f.str()
	case 14:
		if g.Attributes == nil {
			g.Attributes = map[string]string{}
		}
		err = parseMapEntry(g.Attributes, f.bytes)
	}
	return err
}

// ParseFields reads what AppendFields wrote.
func (g *Group) ParseFields(b []byte) error {
	*g = Group{}
	return parse(b, g.set)
}

// ParseBody implements Command.
func (c *PutGroup) ParseBody(b []byte) error {
	*c = PutGroup{}
	return parse(b, func(n protowire.Number, f field) error {
		if n == 15 {
			c.Actor = f.str()
			return nil
		}
		return c.Group.set(n, f)
	})
}

// DeleteGroup removes a group and, if asked to, its offsets.
type DeleteGroup struct {
	Name         string
	CleanOffsets bool
	Actor        string
}

// Kind implements Command.
func (*DeleteGroup) Kind() Kind { return KindDeleteGroup }

// AppendBody implements Command.
func (c *DeleteGroup) AppendBody(dst []byte) []byte {
	dst = appendBool(appendString(dst, 1, c.Name), 2, c.CleanOffsets)
	return appendString(dst, 15, c.Actor)
}

// ParseBody implements Command.
func (c *DeleteGroup) ParseBody(b []byte) error {
	*c = DeleteGroup{}
	return fields(b, func(n protowire.Number, f field) {
		switch n {
		case 1:
			c.Name = f.str()
		case 2:
			c.CleanOffsets = f.bool()
		case 15:
			c.Actor = f.str()
		}
	})
}
