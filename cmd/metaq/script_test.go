package main

import (
	"context"
	"flag"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/message"
)

var update = flag.Bool("update", false, "write testdata/golden as the commands print it")

// Times in golden files are in UTC.
func init() { time.Local = time.UTC }

// script is a server that answers as it is told, and remembers what it was asked.
type script struct {
	addr    string
	mu      sync.Mutex
	answers map[int32]func(c, reply *protocol.Command)
	asked   []string
}

func (s *script) Begin()                   {}
func (s *script) Flush()                   {}
func (s *script) Closed(*remoting.Session) {}

func (s *script) Serve(session *remoting.Session, c *protocol.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, protocol.ReqName(c.Code))
	reply := c.Reply(protocol.RespSuccess, "")
	if answer := s.answers[c.Code]; answer != nil {
		answer(c, reply)
	} else {
		reply.Code, reply.Remark = protocol.RespRequestCodeNotSupported, "request type not supported"
	}
	session.Out = reply.Append(session.Out)
}

// body answers with a body in the Java library's JSON.
func body(v any) func(c, reply *protocol.Command) {
	return func(_, reply *protocol.Command) { reply.Body = protocol.AppendJSON(nil, v) }
}

// nothing answers with success alone.
func nothing(_, _ *protocol.Command) {}

// refusal answers with an error.
func refusal(code int32, remark string) func(c, reply *protocol.Command) {
	return func(_, reply *protocol.Command) { reply.Code, reply.Remark = code, remark }
}

// typed answers with a header.
func typed(h interface{ Encode(*protocol.Ext) }) func(c, reply *protocol.Command) {
	return func(_, reply *protocol.Command) { h.Encode(&reply.Ext) }
}

// startScript starts a server with two topics, two groups and some messages.
func startScript(t *testing.T) *script {
	t.Helper()
	s := &script{}
	srv, err := remoting.New(remoting.Options{NoLoop: true, NewWorker: func(remoting.Driver) remoting.Worker { return s }})
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.addr = ln.Addr().String()
	s.answers = usualAnswers(s.addr)
	srv.Listen("broker", ln)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return s
}

func usualAnswers(addr string) map[int32]func(c, reply *protocol.Command) {
	broker := protocol.BrokerData{BrokerAddrs: map[int64]string{0: addr}, BrokerName: "broker-a", Cluster: "C"}
	topic := func(name string, n int32) protocol.TopicConfig {
		return protocol.TopicConfig{TopicName: name, ReadQueueNums: n, WriteQueueNums: n, Perm: 6, TopicFilterType: protocol.SingleTag}
	}
	orders := topic("orders", 2)
	orders.Attributes = map[string]string{"message.type": "FIFO"}
	queue := func(id int32) protocol.MessageQueue {
		return protocol.MessageQueue{BrokerName: "broker-a", QueueId: id, Topic: "orders"}
	}
	billing := protocol.NewSubscriptionGroupConfig("billing")
	const at = 1796082327709
	return map[int32]func(c, reply *protocol.Command){
		protocol.ReqGetBrokerClusterInfo: body(protocol.ClusterInfo{
			BrokerAddrTable: map[string]protocol.BrokerData{"broker-a": broker}, ClusterAddrTable: map[string][]string{"C": {"broker-a"}},
		}),
		protocol.ReqGetRouteinfoByTopic: func(c, reply *protocol.Command) {
			if name, _ := c.Ext.Get("topic"); string(name) != "orders" {
				reply.Code, reply.Remark = protocol.RespTopicNotExist, "No topic route info"
				return
			}
			reply.Body = protocol.AppendStandardJSON(nil, &protocol.TopicRouteData{
				BrokerDatas: []protocol.BrokerData{broker},
				QueueDatas:  []protocol.QueueData{{BrokerName: "broker-a", Perm: 6, ReadQueueNums: 2, WriteQueueNums: 2}},
			})
		},
		protocol.ReqGetAllTopicListFromNameserver: body(protocol.TopicList{TopicList: []string{"orders", "TBW102", "%RETRY%billing", "elsewhere"}}),
		protocol.ReqGetAllTopicConfig: body(protocol.TopicConfigWrapper{TopicConfigTable: map[string]protocol.TopicConfig{
			"orders": orders, "TBW102": topic("TBW102", 8), "%RETRY%billing": topic("%RETRY%billing", 1),
		}}),
		protocol.ReqGetTopicConfig:       body(protocol.TopicConfigAndQueueMapping{TopicConfig: orders}),
		protocol.ReqUpdateAndCreateTopic: nothing, protocol.ReqDeleteTopicInBroker: nothing, protocol.ReqDeleteTopicInNamesrv: nothing,
		protocol.ReqGetTopicStatsInfo: body(protocol.TopicStatsTable{OffsetTable: map[protocol.MessageQueue]protocol.TopicOffset{
			queue(0): {MinOffset: 0, MaxOffset: 10, LastUpdateTimestamp: at}, queue(1): {MinOffset: 5, MaxOffset: 5},
		}}),
		protocol.ReqGetAllSubscriptiongroupConfig: body(protocol.SubscriptionGroupWrapper{
			SubscriptionGroupTable: map[string]protocol.SubscriptionGroupConfig{"billing": billing, "TOOLS_CONSUMER": protocol.NewSubscriptionGroupConfig("TOOLS_CONSUMER")},
		}),
		protocol.ReqUpdateAndCreateSubscriptiongroup: nothing, protocol.ReqDeleteSubscriptiongroup: nothing,
		protocol.ReqGetConsumerConnectionList: func(c, reply *protocol.Command) {
			if g, _ := c.Ext.Get("consumerGroup"); string(g) != "billing" {
				reply.Code = protocol.RespConsumerNotOnline
				return
			}
			reply.Body = protocol.AppendJSON(nil, protocol.ConsumerConnection{
				ConnectionSet:    []protocol.Connection{{ClientAddr: "10.0.0.7:4711", ClientId: "10.0.0.7@1", Language: "JAVA", Version: 513}},
				ConsumeFromWhere: protocol.FromLastOffset, ConsumeType: protocol.ConsumePassively, MessageModel: protocol.Clustering,
				SubscriptionTable: map[string]protocol.SubscriptionData{"orders": {SubString: "new || paid", ExpressionType: "TAG"}},
			})
		},
		protocol.ReqGetConsumeStats: body(protocol.ConsumeStats{OffsetTable: map[protocol.MessageQueue]protocol.OffsetWrapper{
			queue(0): {BrokerOffset: 10, ConsumerOffset: 7, PullOffset: 9, LastTimestamp: at}, queue(1): {BrokerOffset: 5, ConsumerOffset: 5, PullOffset: 5},
		}}),
		protocol.ReqGetMinOffset: typed(&protocol.GetMinOffsetResponse{}), protocol.ReqGetMaxOffset: typed(&protocol.GetMaxOffsetResponse{Offset: 2}),
		protocol.ReqQueryConsumerOffset:       typed(&protocol.QueryConsumerOffsetResponse{Offset: 1}),
		protocol.ReqSearchOffsetByTimestamp:   typed(&protocol.SearchOffsetResponse{Offset: 2}),
		protocol.ReqInvokeBrokerToResetOffset: nothing,
		protocol.ReqSendMessageV2:             sent, protocol.ReqSendBatchMessage: sent,
		protocol.ReqPullMessage: pulled,
		protocol.ReqGetBrokerRuntimeInfo: body(protocol.KVTable{Table: map[string]string{
			"brokerVersionDesc": "V5_5_0", "putTps": "12.345 1.0 0.1", "getTransferredTps": "0.0 0.0 0.0", "msgPutTotalTodayNow": "77",
		}}),
		protocol.ReqGetBrokerConfig: func(_, reply *protocol.Command) {
			reply.Body = []byte("brokerName=broker-a\nbrokerClusterName=C\n")
		},
		protocol.ReqUpdateBrokerConfig: nothing,
		protocol.ReqViewMessageById:    func(_, reply *protocol.Command) { reply.Body = record(0, 1) },
		protocol.ReqQueryMessage: func(c, reply *protocol.Command) {
			if key, _ := c.Ext.Get("key"); string(key) == "k1" {
				reply.Body = record(0, 1)
			} else {
				reply.Code = protocol.RespQueryNotFound
			}
		},
	}
}

func sent(c, reply *protocol.Command) {
	var h protocol.SendMessageRequest
	if err := h.Decode(&c.Ext); err != nil {
		panic(err)
	}
	r := protocol.SendMessageResponse{MsgId: []byte("7F00000100002A9F0000000000001000"), QueueId: h.QueueId, QueueOffset: 7}
	r.Encode(&reply.Ext)
}

// record is a stored message.
func record(queue int32, offset int64) []byte {
	props := message.AppendProperty(nil, message.PropertyTags, "new")
	props = message.AppendProperty(props, message.PropertyKeys, "k1")
	props = message.AppendProperty(props, message.PropertyUniqueKey, "C00002020BB04E0E2F2A93FBE0940000")
	b := message.AppendRecord(nil, &message.Record{
		Topic: []byte("orders"), Body: []byte("hello\tyou"), Properties: props, QueueID: queue, QueueOffset: message.QueueOffset(offset),
		Position: message.Position(1000 + offset), BornTime: 1796082327000 + offset, StoreTime: 1796082327500 + offset,
	})
	return b
}

// pulled answers a pull of a queue with two messages.
func pulled(c, reply *protocol.Command) {
	var h protocol.PullMessageRequest
	if err := h.Decode(&c.Ext); err != nil {
		panic(err)
	}
	r := protocol.PullMessageResponse{NextBeginOffset: max(h.QueueOffset, 2), MaxOffset: 2}
	r.Encode(&reply.Ext)
	for offset := h.QueueOffset; offset < 2; offset++ {
		reply.Body = append(reply.Body, record(h.QueueId, offset)...)
	}
	if len(reply.Body) == 0 {
		reply.Code = protocol.RespPullNotFound
	}
}

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "%s; `go test -update` writes it", path)
}

// unstable replaces what differs between runs.
func (s *script) unstable(text string) string {
	return strings.ReplaceAll(text, s.addr, "127.0.0.1:99999")
}
