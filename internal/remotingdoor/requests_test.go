package remotingdoor_test

import (
	"encoding/binary"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

// props joins names and values to a properties string.
func props(pairs ...string) string {
	var b []byte
	for i := 0; i < len(pairs); i += 2 {
		b = message.AppendProperty(b, pairs[i], pairs[i+1])
	}
	return string(b)
}

// sendFields is a header of SEND_MESSAGE (10), with changes.
func sendFields(topic string, queue int, properties string, change ext) ext {
	f := ext{
		"producerGroup": "PG", "topic": topic, "defaultTopic": "TBW102", "defaultTopicQueueNums": 4, "queueId": queue, "sysFlag": 0,
		"bornTimestamp": 1700000000000, "flag": 0, "properties": properties, "reconsumeTimes": 0, "unitMode": false, "batch": false,
	}
	maps.Copy(f, change)
	return f
}

func (c *client) send(topic string, queue int, body, properties string) *protocol.Command {
	c.t.Helper()
	return c.call(protocol.ReqSendMessage, sendFields(topic, queue, properties, nil), []byte(body))
}

// mustSend sends and returns the offset in the queue.
func (c *client) mustSend(topic string, queue int, body, properties string) int64 {
	c.t.Helper()
	a := c.send(topic, queue, body, properties)
	require.Equal(c.t, int32(0), a.Code, a.Remark)
	return number(c.t, a, "queueOffset")
}

func number(t testing.TB, a *protocol.Command, key string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(value(a, key), 10, 64)
	require.NoError(t, err, "field %s of %d %s", key, a.Code, a.Remark)
	return n
}

// makeTopic creates a topic as an administrator.
func (c *client) makeTopic(name string, queues int) { c.putTopic(name, queues, queues, 6) }

func (c *client) putTopic(name string, read, write, perm int) {
	c.t.Helper()
	c.ok(protocol.ReqUpdateAndCreateTopic, topicFields(name, read, write, perm, nil), nil)
}

func topicFields(name string, read, write, perm int, change ext) ext {
	f := ext{
		"topic": name, "defaultTopic": "TBW102", "readQueueNums": read, "writeQueueNums": write, "perm": perm,
		"topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": false, "attributes": "", "force": false,
	}
	maps.Copy(f, change)
	return f
}

// makeGroup creates a group as an administrator.
func (c *client) makeGroup(name string, change func(*protocol.SubscriptionGroupConfig)) {
	c.t.Helper()
	g := protocol.NewSubscriptionGroupConfig(name)
	if change != nil {
		change(&g)
	}
	c.ok(protocol.ReqUpdateAndCreateSubscriptiongroup, nil, protocol.AppendJSON(nil, &g))
}

// Bits of a pull's sysFlag.
const (
	flagCommit       = 1
	flagSuspend      = 2
	flagSubscription = 4
	flagLite         = 16
)

// pullFields is a header of PULL_MESSAGE that brings its own subscription to everything.
func pullFields(group, topic string, queue int, offset int64, change ext) ext {
	f := ext{
		"consumerGroup": group, "topic": topic, "queueId": queue, "queueOffset": offset, "maxMsgNums": 32, "sysFlag": flagSubscription,
		"commitOffset": 0, "suspendTimeoutMillis": 15000, "subscription": "*", "subVersion": 0, "expressionType": "TAG",
	}
	maps.Copy(f, change)
	return f
}

func (c *client) pull(group, topic string, queue int, offset int64, change ext) *protocol.Command {
	c.t.Helper()
	return c.call(protocol.ReqPullMessage, pullFields(group, topic, queue, offset, change), nil)
}

// pullLater begins a pull that waits.
func (c *client) pullLater(group, topic string, queue int, offset int64, change ext) <-chan *protocol.Command {
	f := ext{"sysFlag": flagSubscription | flagSuspend}
	maps.Copy(f, change)
	return c.later(protocol.ReqPullMessage, pullFields(group, topic, queue, offset, f), nil)
}

// records are the messages in a body.
func records(t testing.TB, body []byte) (out []message.Record) {
	t.Helper()
	for len(body) > 0 {
		var r message.Record
		n, err := r.Parse(body)
		require.NoError(t, err)
		require.NoError(t, r.CheckBody())
		out = append(out, r)
		body = body[n:]
	}
	return out
}

// read pulls what is in a queue from an offset on.
func (c *client) read(topic string, queue int, offset int64) []message.Record {
	c.t.Helper()
	a := c.pull("READER", topic, queue, offset, nil)
	if a.Code == protocol.RespPullNotFound {
		return nil
	}
	require.Equal(c.t, int32(0), a.Code, a.Remark)
	return records(c.t, a.Body)
}

func bodies(rs []message.Record) (out []string) {
	for _, r := range rs {
		out = append(out, string(r.Body))
	}
	return out
}

// properties are a record's as a map.
func properties(r message.Record) map[string]string {
	m := map[string]string{}
	for k, v := range message.Properties(r.Properties) {
		m[string(k)] = string(v)
	}
	return m
}

// subscription is what a heartbeat says of a topic.
func subscription(topic, expression string, version int64) protocol.SubscriptionData {
	s := protocol.SubscriptionData{Topic: topic, SubString: expression, SubVersion: version, ExpressionType: "TAG", TagsSet: []string{}, CodeSet: []int32{}}
	if expression != "*" {
		for tag := range strings.SplitSeq(expression, "||") {
			s.TagsSet = append(s.TagsSet, strings.TrimSpace(tag))
		}
	}
	return s
}

// consumer is a member of a group in a heartbeat, subscribing its retry topic too as clients do.
func consumer(group string, subs ...protocol.SubscriptionData) protocol.ConsumerData {
	return protocol.ConsumerData{
		GroupName: group, ConsumeType: protocol.ConsumePassively, MessageModel: protocol.Clustering, ConsumeFromWhere: protocol.FromLastOffset,
		SubscriptionDataSet: append(subs, subscription(message.RetryTopic(group), "*", 1)),
	}
}

func heartbeat(id string, consumers ...protocol.ConsumerData) protocol.HeartbeatData {
	return protocol.HeartbeatData{
		ClientID: id, ConsumerDataSet: consumers, ProducerDataSet: []protocol.ProducerData{{GroupName: "CLIENT_INNER_PRODUCER"}},
	}
}

func (c *client) beat(h protocol.HeartbeatData) *protocol.Command {
	c.t.Helper()
	return c.ok(protocol.ReqHeartBeat, nil, protocol.AppendJSON(nil, &h))
}

// join makes the client a member of a group that subscribes topics entirely.
func (c *client) join(id, group string, topics ...string) {
	c.t.Helper()
	var subs []protocol.SubscriptionData
	for _, topic := range topics {
		subs = append(subs, subscription(topic, "*", 1))
	}
	c.beat(heartbeat(id, consumer(group, subs...)))
}

func (c *client) commit(group, topic string, queue int, offset int64) *protocol.Command {
	c.t.Helper()
	return c.call(protocol.ReqUpdateConsumerOffset, ext{"consumerGroup": group, "topic": topic, "queueId": queue, "commitOffset": offset}, nil)
}

func (c *client) committed(group, topic string, queue int) *protocol.Command {
	c.t.Helper()
	return c.call(protocol.ReqQueryConsumerOffset, ext{"consumerGroup": group, "topic": topic, "queueId": queue, "setZeroIfNotFound": false}, nil)
}

// requireCommitted checks how far a group is.
func (c *client) requireCommitted(group, topic string, queue int, want int64) {
	c.t.Helper()
	a := c.committed(group, topic, queue)
	require.Equal(c.t, int32(0), a.Code, a.Remark)
	require.Equal(c.t, want, number(c.t, a, "offset"))
}

// batch is the body of SEND_BATCH_MESSAGE.
func batch(members ...batchMember) []byte {
	var b []byte
	for _, m := range members {
		b = m.append(b)
	}
	return b
}

type batchMember struct {
	flag       int32
	body       string
	properties string
}

func (m batchMember) append(dst []byte) []byte {
	return appendBatchMember(dst, m.flag, m.body, m.properties, len(m.properties))
}

// appendBatchMember writes a member whose properties are said to have claimed bytes.
func appendBatchMember(dst []byte, flag int32, body, properties string, claimed int) []byte {
	be := binary.BigEndian
	dst = be.AppendUint32(dst, uint32(22+len(body)+len(properties)))
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0) // magic and CRC: clients write zeros
	dst = be.AppendUint32(dst, uint32(flag))
	dst = be.AppendUint32(dst, uint32(len(body)))
	dst = append(dst, body...)
	dst = be.AppendUint16(dst, uint16(claimed))
	return append(dst, properties...)
}

func batchFields(topic string, queue int, properties string) ext {
	return sendFields(topic, queue, properties, ext{"batch": true})
}
