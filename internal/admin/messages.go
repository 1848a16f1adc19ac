package admin

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

// Outgoing is a message to be sent.
type Outgoing struct {
	Tag        string
	Keys       string // separated by spaces
	Properties [][2]string
	Body       []byte
}

// properties gives the message's properties string and its unique key.
func (m *Outgoing) properties() (props []byte, key string, err error) {
	key = message.NewUniqueKey()
	add := func(name, value string) {
		if err == nil && !message.ValidProperty(name, value) {
			err = fmt.Errorf("property %q=%q: neither may be empty or contain the bytes 1 and 2", name, value)
		}
		props = message.AppendProperty(props, name, value)
	}
	for _, p := range m.Properties {
		add(p[0], p[1])
	}
	if m.Keys != "" {
		add(message.PropertyKeys, m.Keys)
	}
	add(message.PropertyUniqueKey, key)
	add(message.PropertyWait, "true")
	if m.Tag != "" {
		add(message.PropertyTags, m.Tag)
	}
	if err == nil && len(props) > message.MaxProperties {
		err = fmt.Errorf("the properties have %d bytes, more than %d", len(props), message.MaxProperties)
	}
	return props, key, err
}

// Sent tells where a message went.
type Sent struct {
	Queue
	Offset   int64  `json:"offset"`
	ID       string `json:"id"`                  // unique key
	OffsetID string `json:"offset_id,omitempty"` // where it is stored
	Status   string `json:"status"`              // SUCCESS, or the name of what went wrong after it was stored
}

// ProducerGroup is the group that sends messages of this package.
const ProducerGroup = "metaq-cli"

// Send sends messages to a queue, several as one batch, and tells where each went. Answers that say that a message is stored but not
// yet safe are no errors: see Sent.Status.
func (c *Client) Send(ctx context.Context, q Queue, messages ...Outgoing) ([]Sent, error) {
	h := protocol.SendMessageRequest{
		ProducerGroup: []byte(ProducerGroup), Topic: []byte(q.Topic), DefaultTopic: []byte(message.TopicAutoCreate),
		DefaultTopicQueueNums: defaultTopicQueues, QueueId: q.ID, BornTimestamp: time.Now().UnixMilli(), Bname: []byte(q.Broker),
	}
	code := int32(protocol.ReqSendMessageV2)
	var body, props []byte
	sent := make([]Sent, len(messages))
	for i := range messages {
		var err error
		if props, sent[i].ID, err = messages[i].properties(); err != nil {
			return nil, err
		}
		if len(messages) > 1 {
			body = message.AppendBatchMember(body, 0, messages[i].Body, props)
		} else {
			body = messages[i].Body
		}
	}
	if len(messages) > 1 {
		code, h.Batch = protocol.ReqSendBatchMessage, true
		props = message.AppendProperty(nil, message.PropertyUniqueKey, message.NewUniqueKey())
		props = message.AppendProperty(props, message.PropertyWait, "true")
	}
	h.Properties = &protocol.Field{Value: props}
	addr, err := c.queueAddr(ctx, q)
	if err != nil {
		return nil, err
	}
	answer, err := c.call(ctx, addr, code, shortHeader{&h}, body,
		protocol.RespFlushDiskTimeout, protocol.RespFlushSlaveTimeout, protocol.RespSlaveNotAvailable)
	if err != nil {
		return nil, err
	}
	return sent, fillSent(sent, q, answer)
}

// shortHeader encodes a send by its short names.
type shortHeader struct{ h *protocol.SendMessageRequest }

func (s shortHeader) Encode(e *protocol.Ext) {
	s.h.EncodeShort(e)
	e.SetBool("m", s.h.Batch)
}

func fillSent(sent []Sent, q Queue, answer *protocol.Command) error {
	var r protocol.SendMessageResponse
	if err := r.Decode(&answer.Ext); err != nil {
		return err
	}
	ids := splitIDs(string(r.MsgId))
	q.ID = r.QueueId
	for i := range sent {
		s := &sent[i]
		s.Queue, s.Offset, s.Status = q, r.QueueOffset+int64(i), protocol.RespName(answer.Code)
		if i < len(ids) {
			s.OffsetID = ids[i]
		}
	}
	return nil
}

// Message is a stored message.
type Message struct {
	Queue
	Offset     int64             `json:"offset"`
	ID         string            `json:"id,omitempty"` // unique key
	OffsetID   string            `json:"offset_id"`
	Tag        string            `json:"tag,omitempty"`
	Keys       string            `json:"keys,omitempty"`
	Properties map[string]string `json:"properties,omitempty"` // all of them
	Body       []byte            `json:"-"`                    // unpacked, unless Packed says that it is not
	Packed     string            `json:"packed,omitempty"`     // compression that Body still has
	Born       int64             `json:"born"`                 // ms since 1970
	Stored     int64             `json:"stored"`               // ms since 1970
	BornHost   string            `json:"born_host"`
	StoreHost  string            `json:"store_host"`
	Reconsumed int32             `json:"reconsumed,omitempty"`
	Position   int64             `json:"position"` // in the log of its broker
	SysFlag    int32             `json:"sys_flag,omitempty"`
	Flag       int32             `json:"flag,omitempty"`
}

// ToMessage makes a message of a record, which may be changed afterwards.
func ToMessage(broker string, r *message.Record) Message {
	m := Message{
		Queue: Queue{Topic: string(r.Topic), Broker: broker, ID: r.QueueID}, Offset: int64(r.QueueOffset), Properties: map[string]string{},
		OffsetID: string(message.AppendOffsetID(nil, r.StoreHost, r.Position)), Born: r.BornTime, Stored: r.StoreTime,
		BornHost: r.BornHost.String(), StoreHost: r.StoreHost.String(), Reconsumed: r.ReconsumeTimes, Position: int64(r.Position),
		SysFlag: r.SysFlag, Flag: r.Flag,
	}
	for name, value := range message.Properties(r.Properties) {
		m.Properties[string(name)] = string(value)
	}
	m.ID, m.Tag, m.Keys = m.Properties[message.PropertyUniqueKey], m.Properties[message.PropertyTags], m.Properties[message.PropertyKeys]
	m.Body, m.Packed = unpack(r)
	return m
}

// parseMessages reads a run of records.
func parseMessages(broker string, b []byte) (messages []Message, err error) {
	var r message.Record
	for len(b) > 0 {
		n, err := r.Parse(b)
		if err != nil {
			return messages, err
		}
		if err := r.CheckBody(); err != nil {
			return messages, fmt.Errorf("message %d of queue %d: %w", r.QueueOffset, r.QueueID, err)
		}
		b = b[n:]
		messages = append(messages, ToMessage(broker, &r))
	}
	return messages, nil
}

// ConsumerGroup is the group that reads messages of this package. It commits nothing. Tools of RocketMQ use it too, so brokers know it.
const ConsumerGroup = "TOOLS_CONSUMER"

// Pulled is what a pull found.
type Pulled struct {
	Messages []Message
	Next     int64 // offset to go on with
	Min, Max int64 // as in GroupOffset
}

// Bits of a pull's sysFlag.
const (
	pullHold      = 2
	pullSubscribe = 4
)

// Pull reads up to n messages of a queue from an offset on that have one of the tags: an expression like "a || b", or "*". If there is
// nothing, the broker waits for as long as hold says.
func (c *Client) Pull(ctx context.Context, q Queue, offset int64, n int, tags string, hold time.Duration) (Pulled, error) {
	addr, err := c.queueAddr(ctx, q)
	if err != nil {
		return Pulled{}, err
	}
	h := &protocol.PullMessageRequest{
		ConsumerGroup: []byte(ConsumerGroup), Topic: []byte(q.Topic), QueueId: q.ID, QueueOffset: offset, MaxMsgNums: int32(n),
		SysFlag: pullSubscribe, SuspendTimeoutMillis: hold.Milliseconds(), Subscription: []byte(tags),
		ExpressionType: []byte(protocol.ExpressionTag), Bname: []byte(q.Broker), Lo: true,
	}
	if hold > 0 {
		h.SysFlag |= pullHold
	}
	answer, err := c.callFor(ctx, hold+c.timeout, addr, protocol.ReqPullMessage, h, nil,
		protocol.RespPullNotFound, protocol.RespPullRetryImmediately, protocol.RespPullOffsetMoved)
	if err != nil {
		return Pulled{}, err
	}
	var r protocol.PullMessageResponse
	if err := r.Decode(&answer.Ext); err != nil {
		return Pulled{}, err
	}
	p := Pulled{Next: r.NextBeginOffset, Min: r.MinOffset, Max: r.MaxOffset}
	if answer.Code == protocol.RespSuccess {
		p.Messages, err = parseMessages(q.Broker, answer.Body)
	}
	return p, err
}

// ByID finds a message by its offset id, or, if that is none of a broker's, by its unique key, for which the topic is needed. Errors:
// ErrNotThere.
func (c *Client) ByID(ctx context.Context, topic, id string) (Message, error) {
	brokers, err := c.Brokers(ctx)
	if err != nil {
		return Message{}, err
	}
	if host, position, err := message.ParseOffsetID(id); err == nil {
		if b, ok := holder(brokers, host); ok {
			return c.at(ctx, b, topic, position)
		}
	}
	if topic == "" {
		return Message{}, fmt.Errorf("%s is no offset id of a broker here; to find it as a unique key the topic is needed", id)
	}
	found, err := c.ByKey(ctx, topic, id, true, 1)
	if err != nil {
		return Message{}, err
	}
	if len(found) == 0 {
		return Message{}, fmt.Errorf("message %s in topic %s %w", id, topic, ErrNotThere)
	}
	return found[0], nil
}

// holder finds the broker whose address an offset id has. Where addresses are translated on the way, the port must do, or that there
// is but one broker. A unique key is taken for an offset id only if its process id is zero: there the port is.
func holder(brokers []Broker, host netip.AddrPort) (Broker, bool) {
	if len(brokers) == 1 {
		return brokers[0], true
	}
	for _, b := range brokers {
		if b.Addr == host.String() {
			return b, true
		}
	}
	for _, b := range brokers {
		if _, port, err := net.SplitHostPort(b.Addr); err == nil && port == strconv.Itoa(int(host.Port())) {
			return b, true
		}
	}
	return Broker{}, false
}

// at reads the message at a position of a broker's log.
func (c *Client) at(ctx context.Context, b Broker, topic string, p message.Position) (Message, error) {
	answer, err := c.call(ctx, b.Addr, protocol.ReqViewMessageById, &protocol.ViewMessageRequest{Topic: topic, Offset: int64(p)}, nil)
	if err != nil {
		return Message{}, err
	}
	found, err := parseMessages(b.Name, answer.Body)
	if err != nil {
		return Message{}, err
	}
	if len(found) == 0 {
		return Message{}, fmt.Errorf("message at position %d of %s %w", p, b.Name, ErrNotThere)
	}
	return found[0], nil
}

// ByKey finds the newest messages of a topic that have a key: one of their keys, or their unique key.
func (c *Client) ByKey(ctx context.Context, topic, key string, unique bool, n int) ([]Message, error) {
	r, err := c.Route(ctx, topic)
	if err != nil {
		return nil, err
	}
	var found []Message
	for _, b := range r.Brokers {
		answer, err := c.call(ctx, b.Addr, protocol.ReqQueryMessage, &protocol.QueryMessageRequest{
			Topic: topic, Key: key, MaxNum: int32(n), EndTimestamp: time.Now().Add(time.Hour).UnixMilli(), UniqueKeyQuery: unique,
		}, nil, protocol.RespQueryNotFound)
		if err != nil {
			return nil, err
		}
		if answer.Code == protocol.RespQueryNotFound {
			continue
		}
		messages, err := parseMessages(b.Name, answer.Body)
		if err != nil {
			return nil, err
		}
		found = append(found, messages...)
	}
	return found, nil
}
