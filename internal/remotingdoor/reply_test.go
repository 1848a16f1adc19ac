package remotingdoor_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/message"
)

const replyTopic = "DefaultCluster_REPLY_TOPIC"

// requester is a client with a producer that is given replies; it answers as it is told, not at all when answer returns nil.
func (r *rig) requester(t testing.TB, id string, answer func(*protocol.Command) *protocol.Command) (c *client, pushed chan *protocol.Command) {
	t.Helper()
	c, pushed = &client{t: t, version: 513}, make(chan *protocol.Command, 100)
	rc, err := remoting.Dial(context.Background(), r.addr, remoting.ClientOptions{
		Timeout: patience,
		OnRequest: func(_ *remoting.Client, cmd *protocol.Command) *protocol.Command {
			pushed <- copyOf(cmd)
			return answer(cmd)
		},
	})
	require.NoError(t, err)
	c.Client = rc
	t.Cleanup(c.close)
	c.beat(heartbeat(id))
	return c, pushed
}

// takes is a requester that takes every reply.
func takes(c *protocol.Command) *protocol.Command { return c.Reply(protocol.RespSuccess, "") }

// forClient are the properties of a reply to a client.
func forClient(id string) string {
	return props("UNIQ_KEY", "K1", "MSG_TYPE", "reply", "CORRELATION_ID", "X", "TTL", "3000", "REPLY_TO_CLIENT", id)
}

func replyFields(properties string, change ext) ext {
	return sendFields(replyTopic, 0, properties, change)
}

// propertiesOf are those of a pushed reply.
func propertiesOf(c *protocol.Command) map[string]string {
	m := map[string]string{}
	for k, v := range message.Properties([]byte(value(c, "properties"))) {
		m[string(k)] = string(v)
	}
	return m
}

// remoting.md §6.11: the client that asked gets the reply, then it is stored, and the answer says where.
func TestAReplyReachesWhoAsked(t *testing.T) {
	for _, code := range []int32{protocol.ReqSendReplyMessage, protocol.ReqSendReplyMessageV2} {
		everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
			_, pushed := r.requester(t, "asker", takes)
			before := time.Now().UnixMilli()
			a := c.ok(code, replyFields(forClient("asker"), ext{"flag": 5, "sysFlag": 1, "reconsumeTimes": 2, "unitMode": true}), []byte("h\u00e9llo \x00\xff"))
			p := wait(t, pushed)
			require.Equal(t, int32(protocol.ReqPushReplyMessageToClient), p.Code)
			require.False(t, p.IsOneway())
			require.Equal(t, "h\u00e9llo \x00\xff", string(p.Body))
			var h protocol.PushReplyMessageRequest
			require.NoError(t, h.Decode(&p.Ext))
			require.Equal(t, [3]string{"PG", replyTopic, "TBW102"}, [3]string{h.ProducerGroup, h.Topic, h.DefaultTopic})
			require.Equal(t, [5]int32{4, 0, 1, 5, 2}, [5]int32{h.DefaultTopicQueueNums, h.QueueId, h.SysFlag, h.Flag, h.ReconsumeTimes})
			require.True(t, h.UnitMode)
			require.Equal(t, c.Local().String(), h.BornHost)
			require.Equal(t, storeHost.String(), h.StoreHost)
			require.Equal(t, int64(1700000000000), h.BornTimestamp)
			require.GreaterOrEqual(t, h.StoreTimestamp, before)
			given := propertiesOf(p)
			at, err := strconv.ParseInt(given["PUSH_REPLY_TIME"], 10, 64)
			require.NoError(t, err)
			require.InDelta(t, time.Now().UnixMilli(), at, 20_000)
			delete(given, "PUSH_REPLY_TIME")
			require.Equal(t, map[string]string{
				"UNIQ_KEY": "K1", "MSG_TYPE": "reply", "CORRELATION_ID": "X", "TTL": "3000", "REPLY_TO_CLIENT": "asker",
				"MSG_REGION": "DefaultRegion", "TRACE_ON": "true",
			}, given)

			rec := c.read(replyTopic, 0, 0)[0]
			require.Equal(t, "h\u00e9llo \x00\xff", string(rec.Body))
			require.NotContains(t, properties(rec), "PUSH_REPLY_TIME")
			require.Equal(t, "asker", properties(rec)["REPLY_TO_CLIENT"])
			require.Equal(t, string(message.AppendOffsetID(nil, storeHost, rec.Position)), value(a, "msgId"))
			require.Equal(t, [3]string{"0", "0", ""}, [3]string{value(a, "queueId"), value(a, "queueOffset"), value(a, "transactionId")})
			require.Equal(t, int64(1), r.b.Stats.Replies.Load())
		})
	}
}

// What Apache's broker pushed and answered for the same reply, recorded.
func TestARecordedReplyIsPushedLikeByApache(t *testing.T) {
	all := readExchanges(t, "testdata/pushed/java-request.jsonl")
	require.Len(t, all, 2)
	request, want := all[0].frames(t)
	wantPushed, taken := all[1].frames(t)
	r := start(t, rigOptions{})
	_, pushed := r.requester(t, "192.0.2.2@vec", takes)
	got, err := r.client(t).Call(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, want.Code, got.Code)
	require.Equal(t, slices.Sorted(maps.Keys(fieldsOf(want))), slices.Sorted(maps.Keys(fieldsOf(got))))
	require.Zero(t, taken.Code)

	p := wait(t, pushed)
	require.Equal(t, [4]any{wantPushed.Code, wantPushed.Flag, wantPushed.Version, wantPushed.Language}, [4]any{p.Code, p.Flag, p.Version, p.Language})
	require.Equal(t, wantPushed.Body, p.Body)
	w, g := fieldsOf(wantPushed), fieldsOf(p)
	for _, inEachRun := range []string{"bornHost", "storeHost", "storeTimestamp", "properties"} {
		require.Contains(t, g, inEachRun)
		delete(w, inEachRun)
		delete(g, inEachRun)
	}
	require.Equal(t, w, g)
	wp, gp := propertiesOf(wantPushed), propertiesOf(p)
	require.Contains(t, gp, "PUSH_REPLY_TIME")
	delete(wp, "PUSH_REPLY_TIME")
	delete(gp, "PUSH_REPLY_TIME")
	require.Equal(t, wp, gp)
}

// remoting.md §6.11, C032: who replies is told when nobody could be given the reply; it is stored all the same.
func TestAReplyThatNobodyTakesIsAnError(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.beat(protocol.HeartbeatData{ClientID: "no producer", ConsumerDataSet: []protocol.ConsumerData{consumer("G", subscription("T", "*", 1))}})
	r.requester(t, "refuses", func(c *protocol.Command) *protocol.Command { return c.Reply(protocol.RespSystemError, "not mine") })
	left, _ := r.requester(t, "left", takes)
	left.ok(protocol.ReqUnregisterClient, ext{"clientID": "left", "producerGroup": "CLIENT_INNER_PRODUCER"}, nil)
	gone, _ := r.requester(t, "gone", takes)
	gone.close()
	eventually(t, func() bool { return len(r.b.Producers("CLIENT_INNER_PRODUCER")) == 1 }, "it is noticed")
	for i, test := range []struct{ properties, remark string }{
		{props("MSG_TYPE", "reply"), "reply message properties[REPLY_TO_CLIENT] is null"},
		{forClient("nobody"), "push reply message fail, channel of <nobody> not found"},
		{forClient("no producer"), "push reply message fail, channel of <no producer> not found"},
		{forClient("left"), "push reply message fail, channel of <left> not found"},
		{forClient("gone"), "push reply message fail, channel of <gone> not found"},
		{forClient("refuses"), "push reply message to refuses fail: it answered code 1: not mine"},
	} {
		a := c.call(protocol.ReqSendReplyMessage, replyFields(test.properties, nil), []byte("x"))
		require.Equal(t, int32(protocol.RespSystemError), a.Code)
		require.Contains(t, a.Remark, test.remark)
		require.Equal(t, "DefaultRegion", value(a, "MSG_REGION"))
		require.Equal(t, "true", value(a, "TRACE_ON"))
		require.Len(t, c.read(replyTopic, 0, 0), i+1)
	}
	require.Zero(t, r.b.Stats.Replies.Load())
	require.Equal(t, int64(6), r.b.Stats.RefusedFor[broker.ReplyFailed].Load())
}

// A requester that says nothing keeps the replier waiting, and nobody else; when its connection ends, the replier is told.
func TestASilentRequesterStopsNobody(t *testing.T) {
	for _, v := range variants[:3:3] {
		t.Run(v.name, func(t *testing.T) {
			r := start(t, rigOptions{noLoop: v.noLoop, broker: func(o *broker.Options) { o.PoolSize = 1 }})
			c := r.client(t)
			c.makeTopic("T", 1)
			silent, pushed := r.requester(t, "silent", func(*protocol.Command) *protocol.Command { return nil })
			var answers []<-chan *protocol.Command
			for range 20 {
				answers = append(answers, c.later(protocol.ReqSendReplyMessage, replyFields(forClient("silent"), nil), []byte("x")))
			}
			for range answers {
				wait(t, pushed)
			}
			require.Equal(t, 20, r.b.Gauges().Replies)
			c.mustSend("T", 0, "hot", "")
			c.ok(protocol.ReqGetAllTopicConfig, nil, nil) // cold
			silent.mustSend("T", 0, "its own", "")
			_, other := r.requester(t, "other", takes)
			c.ok(protocol.ReqSendReplyMessage, replyFields(forClient("other"), nil), []byte("y"))
			require.Equal(t, "y", string(wait(t, other).Body))

			silent.close()
			for _, a := range answers {
				got := wait(t, a)
				require.Equal(t, int32(protocol.RespSystemError), got.Code)
				require.Contains(t, got.Remark, "push reply message to silent fail: ")
			}
			eventually(t, func() bool { return r.b.Gauges().Replies == 0 }, "nothing is left")
		})
	}
}

// remoting.md §1.7: of several connections of a client, the one that was heard of last.
func TestAReplyGoesToTheNewestConnection(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	one, first := r.requester(t, "asker", takes)
	_, second := r.requester(t, "asker", takes)
	send := func(body string) {
		c.ok(protocol.ReqSendReplyMessage, replyFields(forClient("asker"), nil), []byte(body))
	}
	send("a")
	require.Equal(t, "a", string(wait(t, second).Body))
	one.beat(heartbeat("asker"))
	send("b")
	require.Equal(t, "b", string(wait(t, first).Body))
	one.close()
	eventually(t, func() bool { return len(r.b.Producers("CLIENT_INNER_PRODUCER")) == 1 }, "it is noticed")
	send("c")
	require.Equal(t, "c", string(wait(t, second).Body))
}

// One client may ask and reply over the same connection, as Java's does when it has both.
func TestAClientMayReplyToItself(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		self, pushed := r.requester(t, "self", takes)
		self.encoding = c.encoding
		for i := range 50 {
			self.ok(protocol.ReqSendReplyMessageV2, replyFields(forClient("self"), nil), fmt.Append(nil, i))
			require.Equal(t, fmt.Sprint(i), string(wait(t, pushed).Body))
		}
	})
}

// storeReplyMessageEnable: without it there is no trace of a reply; the answer is the one that clients can decode.
func TestRepliesNeedNotBeStored(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.StoreReplies = false }})
	c := r.client(t)
	_, pushed := r.requester(t, "asker", takes)
	a := c.ok(protocol.ReqSendReplyMessage, replyFields(forClient("asker"), nil), []byte("x"))
	require.Equal(t, "x", string(wait(t, pushed).Body))
	require.Equal(t, [3]string{"0", "0", "0"}, [3]string{value(a, "msgId"), value(a, "queueId"), value(a, "queueOffset")})
	require.Equal(t, int32(1), c.call(protocol.ReqSendReplyMessage, replyFields(forClient("nobody"), nil), []byte("x")).Code)
	require.Empty(t, c.read(replyTopic, 0, 0))
	require.Equal(t, int32(29), c.call(protocol.ReqSendReplyMessage, replyFields(forClient("asker"), ext{"queueId": 1}), []byte("x")).Code, "checked all the same")

	r.configure(func(c *broker.Config) { c.StoreReplies = true })
	c.ok(protocol.ReqSendReplyMessage, replyFields(forClient("asker"), nil), []byte("y"))
	require.Equal(t, []string{"y"}, bodies(c.read(replyTopic, 0, 0)))
}

// remoting.md §6.11: a reply is checked like a send; nobody is given one that is refused.
func TestAReplyIsCheckedLikeASend(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.MaxMessageBytes = 100 }})
	c := r.client(t)
	_, pushed := r.requester(t, "asker", takes)
	good := forClient("asker")
	for _, test := range []struct {
		name   string
		fields ext
		body   string
		code   int32
		remark string
	}{
		{"name that cannot be", replyFields(good, ext{"topic": "a.b"}), "x", 29, "a.b"},
		{"forbidden topic", replyFields(good, ext{"topic": "SCHEDULE_TOPIC_XXXX"}), "x", 16, "forbidden"},
		{"unknown topic without a template", replyFields(good, ext{"topic": "Other", "defaultTopic": "None"}), "x", 17, "Other"},
		{"queue that is not there", replyFields(good, ext{"queueId": 1}), "x", 29, "queueId[1]"},
		{"large body", replyFields(good, nil), strings.Repeat("x", 101), 13, "max-message-bytes"},
		{"large properties", replyFields(good+props("p", strings.Repeat("x", 40_000)), nil), "x", 13, "32767"},
		{"part of a transaction", replyFields(good+props("TRAN_MSG", "true"), ext{"sysFlag": 4}), "x", 13, "TRAN_MSG"},
		{"no number", replyFields(good, ext{"queueId": "one"}), "x", 1, "queueId"},
	} {
		for _, code := range []int32{protocol.ReqSendReplyMessage, protocol.ReqSendReplyMessageV2} {
			a := c.call(code, test.fields, []byte(test.body))
			require.Equal(t, test.code, a.Code, "%s: %s", test.name, a.Remark)
			require.Contains(t, a.Remark, test.remark, test.name)
			require.Equal(t, "DefaultRegion", value(a, "MSG_REGION"))
		}
	}
	require.Empty(t, c.read(replyTopic, 0, 0))
	c.ok(protocol.ReqSendReplyMessage, replyFields(good, ext{"queueId": -1}), []byte("any queue"))
	c.ok(protocol.ReqSendReplyMessage, replyFields(good, ext{"topic": "Made"}), []byte("made"))
	c.ok(protocol.ReqSendReplyMessage, replyFields(good, ext{"batch": true}), []byte("no batch"))
	for _, body := range []string{"any queue", "made", "no batch"} {
		require.Equal(t, body, string(wait(t, pushed).Body))
	}
	c.oneway(protocol.ReqSendReplyMessage, replyFields(good, nil), []byte("one-way"))
	require.Equal(t, "one-way", string(wait(t, pushed).Body))
	require.NoError(t, c.Err())
}

// Every queue has a limit, and its refusal names the setting.
func TestTooManyRepliesAreRefused(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.MaxReplies, c.MaxMessageBytes = 3, 1000 }})
	c := r.client(t)
	silent, pushed := r.requester(t, "silent", func(*protocol.Command) *protocol.Command { return nil })
	send := func(n int) <-chan *protocol.Command {
		return c.later(protocol.ReqSendReplyMessage, replyFields(forClient("silent"), nil), make([]byte, n))
	}
	for range 3 {
		send(10)
		wait(t, pushed)
	}
	a := wait(t, send(10))
	require.Equal(t, int32(protocol.RespSystemBusy), a.Code)
	require.Contains(t, a.Remark, "[OVERLOAD]")
	require.Contains(t, a.Remark, "max-replies")
	r.configure(func(c *broker.Config) { c.MaxReplies = 100 })
	var refused *protocol.Command
	for refused == nil {
		select {
		case refused = <-send(1000):
		case <-pushed:
		}
	}
	require.Equal(t, int32(protocol.RespSystemBusy), refused.Code)
	require.Contains(t, refused.Remark, "max-message-bytes")
	require.Less(t, r.b.Gauges().Replies, 20)
	require.Equal(t, 100, r.b.Gauges().ReplyLimit)
	silent.close()
	eventually(t, func() bool { return r.b.Gauges().Replies == 0 }, "all of them have ended")
}

// A broker that stops does not wait for those who say nothing.
func TestStoppingEndsRepliesOnTheirWay(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	_, pushed := r.requester(t, "silent", func(*protocol.Command) *protocol.Command { return nil })
	answer := c.later(protocol.ReqSendReplyMessage, replyFields(forClient("silent"), nil), []byte("x"))
	wait(t, pushed)
	begin := time.Now()
	r.stop()
	require.Less(t, time.Since(begin), 9*time.Second)
	if a, ok := <-answer; ok {
		require.Equal(t, int32(protocol.RespSystemError), a.Code)
	}
}
