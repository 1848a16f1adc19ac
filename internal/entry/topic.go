package entry

import (
	"maps"

	"google.golang.org/protobuf/encoding/protowire"
)

// Topic is the configuration of a topic (semantics: RocketMQ's TopicConfig).
type Topic struct {
	Name        string
	ReadQueues  int32
	WriteQueues int32
	// Perm has the bits 1 INHERIT, 2 WRITE, 4 READ.
	Perm       int32
	MultiTag   bool // topicFilterType MULTI_TAG
	SysFlag    int32
	Order      bool
	Attributes map[string]string
}

// Equal says whether both describe the same topic.
func (t *Topic) Equal(o *Topic) bool {
	return t.Name == o.Name && t.ReadQueues == o.ReadQueues && t.WriteQueues == o.WriteQueues && t.Perm == o.Perm &&
		t.MultiTag == o.MultiTag && t.SysFlag == o.SysFlag && t.Order == o.Order && maps.Equal(t.Attributes, o.Attributes)
}

// PutTopic creates a topic or replaces its configuration. Queues are never taken away.
type PutTopic struct {
	Topic Topic
	Actor string // who asked for it; empty for automatic creation
}

// Kind implements Command.
func (*PutTopic) Kind() Kind { return KindPutTopic }

// AppendBody implements Command.
func (c *PutTopic) AppendBody(dst []byte) []byte {
	dst = c.Topic.AppendFields(dst)
	return appendString(dst, 15, c.Actor)
}

// AppendFields appends the topic's fields 1 to 8; views store topics in this form.
func (t *Topic) AppendFields(dst []byte) []byte {
	dst = appendString(dst, 1, t.Name)
	dst = appendInt(dst, 2, int64(t.ReadQueues))
	dst = appendInt(dst, 3, int64(t.WriteQueues))
	dst = appendInt(dst, 4, int64(t.Perm))
	dst = appendBool(dst, 5, t.MultiTag)
	dst = appendInt(dst, 6, int64(t.SysFlag))
	dst = appendBool(dst, 7, t.Order)
	return appendMap(dst, 8, t.Attributes)
}

func (t *Topic) set(n protowire.Number, f field) (err error) {
	switch n {
	case 1:
		t.Name = f.str()
	case 2:
		t.ReadQueues = f.int32()
	case 3:
		t.WriteQueues = f.int32()
	case 4:
		t.Perm = f.int32()
	case 5:
		t.MultiTag = f.bool()
	case 6:
		t.SysFlag = f.int32()
	case 7:
		t.Order = f.bool()
	case 8:
		if t.Attributes == nil {
			t.Attributes = map[string]string{}
		}
		err = parseMapEntry(t.Attributes, f.bytes)
	}
	return err
}

// ParseFields reads what AppendFields wrote.
func (t *Topic) ParseFields(b []byte) error {
	*t = Topic{}
	return parse(b, t.set)
}

// ParseBody implements Command.
func (c *PutTopic) ParseBody(b []byte) error {
	*c = PutTopic{}
	return parse(b, func(n protowire.Number, f field) error {
		if n == 15 {
			c.Actor = f.str()
			return nil
		}
		return c.Topic.set(n, f)
	})
}

// parse is fields with setters that may fail.
func parse(b []byte, set func(protowire.Number, field) error) error {
	var first error
	err := fields(b, func(n protowire.Number, f field) {
		if e := set(n, f); e != nil && first == nil {
			first = e
		}
	})
	if err != nil {
		return err
	}
	return first
}

// DeleteTopic removes a topic with its queues and the offsets that groups have in it.
type DeleteTopic struct {
	Name  string
	Actor string
}

// Kind implements Command.
func (*DeleteTopic) Kind() Kind { return KindDeleteTopic }

// AppendBody implements Command.
func (c *DeleteTopic) AppendBody(dst []byte) []byte {
	return appendString(appendString(dst, 1, c.Name), 15, c.Actor)
}

// ParseBody implements Command.
func (c *DeleteTopic) ParseBody(b []byte) error {
	*c = DeleteTopic{}
	return fields(b, func(n protowire.Number, f field) {
		switch n {
		case 1:
			c.Name = f.str()
		case 15:
			c.Actor = f.str()
		}
	})
}
