package remotingdoor_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/shard"
)

// remoting.md §6.7, code 15 and 14.
func TestAnOffsetIsKept(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 3)
		for range 9 {
			c.mustSend("T", 2, "x", "")
		}
		require.Equal(t, int32(0), c.commit("G", "T", 2, 4).Code, "the group is made")
		_, ok := r.b.Group("G")
		require.True(t, ok)
		c.requireCommitted("G", "T", 2, 4)
		require.Equal(t, int32(22), c.committed("G", "T", 0).Code, "not in other queues")
		require.Equal(t, int32(22), c.committed("H", "T", 2).Code, "not for other groups")
		c.oneway(protocol.ReqUpdateConsumerOffset, ext{"consumerGroup": "G", "topic": "T", "queueId": 2, "commitOffset": 7}, nil)
		eventually(t, func() bool { return value(c.committed("G", "T", 2), "offset") == "7" }, "also one-way")
		require.Equal(t, int32(0), c.commit("G", "T", 2, 7).Code, "the same again is answered")
		r.restart()
		r.client(t).requireCommitted("G", "T", 2, 7)
	})
}

// remoting.md §6.7, code 15: what is refused.
func TestACommitIsChecked(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 2)
	for _, group := range []string{"New", "Known"} {
		if group == "Known" {
			c.makeGroup(group, nil)
		}
		a := c.commit(group, "Nothing", 0, 1)
		require.Equal(t, int32(17), a.Code, a.Remark)
		require.Equal(t, int32(29), c.commit(group, "T", 2, 1).Code)
		require.Equal(t, int32(29), c.commit(group, "T", -1, 1).Code)
		require.Equal(t, int32(0), c.commit(group, "T", 0, -1).Code, "so Go clients say that there is nothing")
	}
	for _, missing := range []string{"queueId", "commitOffset"} {
		f := ext{"consumerGroup": "Known", "topic": "T", "queueId": 0, "commitOffset": 1}
		delete(f, missing)
		require.Equal(t, int32(29), c.call(protocol.ReqUpdateConsumerOffset, f, nil).Code, missing)
	}
	r.configure(func(c *broker.Config) { c.AutoCreateGroups = false })
	a := c.commit("Newer", "T", 0, 1)
	require.Equal(t, int32(26), a.Code, a.Remark)
	require.Empty(t, r.b.Offsets())
}

// architecture §1, C146, C213: an offset never goes back because of what comes late.
func TestAnOffsetNeverGoesBackByItself(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		for range 9 {
			c.mustSend("T", 0, "x", "")
		}
		c.join("c1", "G", "T")
		late := r.client(t)
		late.join("c2", "G", "T")
		require.Equal(t, int32(0), late.commit("G", "T", 0, 4).Code)
		require.Equal(t, int32(0), c.commit("G", "T", 0, 5).Code)
		require.Equal(t, int32(0), late.commit("G", "T", 0, 3).Code, "it comes late, which is no error")
		c.requireCommitted("G", "T", 0, 5)
		c.pull("G", "T", 0, 2, ext{"sysFlag": flagCommit, "commitOffset": 2, "subVersion": 1})
		c.requireCommitted("G", "T", 0, 5)
		second := r.client(t) // of the same client, as old ones have for the other port
		require.Equal(t, int32(0), second.commit("G", "T", 0, 2).Code)
		c.requireCommitted("G", "T", 0, 5)
		require.Equal(t, int32(0), second.commit("G", "T", 0, 6).Code)
		c.requireCommitted("G", "T", 0, 6)
	})
}

// A pull consumer that seeks back commits what it then consumes.
func TestTheClientThatCommittedLastMayTakeItsOffsetBack(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, _ *rig, c *client) {
		c.makeTopic("T", 1)
		for range 9 {
			c.mustSend("T", 0, "x", "")
		}
		c.join("c1", "G", "T")
		require.Equal(t, int32(0), c.commit("G", "T", 0, 5).Code)
		require.Equal(t, int32(0), c.commit("G", "T", 0, 3).Code)
		c.requireCommitted("G", "T", 0, 3)
	})
}

// semantics §44, old tool style: tools write offsets while consumers are stopped.
func TestAToolTakesAnOffsetBackWhileNobodyConsumes(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		for range 9 {
			c.mustSend("T", 0, "x", "")
		}
		c.join("c1", "G", "T")
		require.Equal(t, int32(0), c.commit("G", "T", 0, 5).Code)
		c.close()
		eventually(t, func() bool { return len(r.b.Members("G")) == 0 }, "nobody is left")
		tool := r.client(t)
		require.Equal(t, int32(0), tool.commit("G", "T", 0, 2).Code)
		tool.requireCommitted("G", "T", 0, 2)
		r.restart()
		r.client(t).requireCommitted("G", "T", 0, 2)
	})
}

// remoting.md §6.7, quirk 2: a new group begins at 0 in a young queue.
func TestANewGroupBeginsAtTheStartOfAYoungQueue(t *testing.T) {
	everyWay(t, rigOptions{broker: func(o *broker.Options) { o.YoungBytes = 200_000 }}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 2)
		query := func(c *client, queue int, zero any) *protocol.Command {
			f := ext{"consumerGroup": "G", "topic": "T", "queueId": queue}
			if zero != nil {
				f["setZeroIfNotFound"] = zero
			}
			return c.call(protocol.ReqQueryConsumerOffset, f, nil)
		}
		none := query(c, 0, nil)
		require.Equal(t, int32(22), none.Code, "an empty queue has no first message")
		require.Equal(t, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first", none.Remark)
		c.mustSend("T", 0, "first", "")
		for _, zero := range []any{nil, true} {
			a := query(c, 0, zero)
			require.Equal(t, int32(0), a.Code)
			require.Equal(t, "0", value(a, "offset"))
		}
		require.Equal(t, int32(22), query(c, 0, false).Code)
		require.Equal(t, int32(22), query(c, 1, nil).Code)
		require.Equal(t, int32(22), query(c, 9, nil).Code)
		require.Equal(t, int32(22), query(c, -1, nil).Code)

		r.restart()
		encoding := c.encoding
		c = r.client(t)
		c.encoding = encoding
		require.Equal(t, "0", value(query(c, 0, nil), "offset"), "also when its index is not in memory")
		for range 5 {
			c.mustSend("T", 0, strings.Repeat("x", 50_000), "")
		}
		require.Equal(t, int32(22), query(c, 0, nil).Code, "it is not young any more")
	})
}

// remoting.md §6.7, codes 30, 31 and 32.
func TestTheBoundsOfAQueueAreTold(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, _ *rig, c *client) {
		c.makeTopic("T", 2)
		for range 3 {
			c.mustSend("T", 1, "x", "")
		}
		ask := func(code int32, topic string, queue int, field string) string {
			return value(c.ok(code, ext{"topic": topic, "queueId": queue}, nil), field)
		}
		require.Equal(t, "3", ask(protocol.ReqGetMaxOffset, "T", 1, "offset"))
		require.Equal(t, "0", ask(protocol.ReqGetMinOffset, "T", 1, "offset"))
		stored := c.read("T", 1, 0)[0].StoreTime
		require.Equal(t, fmt.Sprint(stored), ask(protocol.ReqGetEarliestMsgStoretime, "T", 1, "timestamp"))
		for _, queue := range []struct {
			topic string
			id    int
		}{{"T", 0}, {"T", 7}, {"T", -1}, {"Nothing", 0}} {
			require.Equal(t, "0", ask(protocol.ReqGetMaxOffset, queue.topic, queue.id, "offset"))
			require.Equal(t, "0", ask(protocol.ReqGetMinOffset, queue.topic, queue.id, "offset"))
			require.Equal(t, "-1", ask(protocol.ReqGetEarliestMsgStoretime, queue.topic, queue.id, "timestamp"))
		}
	})
}

// C159: asking makes nothing.
func TestQuestionsMakeNothing(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	_, topics, _ := r.b.Topics()
	c.call(protocol.ReqGetMaxOffset, ext{"topic": "Nothing", "queueId": 0}, nil)
	c.call(protocol.ReqSearchOffsetByTimestamp, ext{"topic": "Nothing", "queueId": 0, "timestamp": 1}, nil)
	c.call(protocol.ReqQueryConsumerOffset, ext{"consumerGroup": "Nobody", "topic": "Nothing", "queueId": 0}, nil)
	c.call(protocol.ReqGetTopicStatsInfo, ext{"topic": "Nothing"}, nil)
	c.call(protocol.ReqGetConsumeStats, ext{"consumerGroup": "Nobody"}, nil)
	_, after, _ := r.b.Topics()
	require.Equal(t, topics, after)
	_, ok := r.b.Group("Nobody")
	require.False(t, ok)
}

// remoting.md §6.7, code 29; C140, C141.
func TestAnOffsetIsFoundByTime(t *testing.T) {
	clock := new(settableClock)
	r := start(t, rigOptions{shard: func(o *shard.Options) { o.Now = clock.now }})
	c := r.client(t)
	c.makeTopic("T", 2)
	for _, at := range []int64{1000, 2000, 3000} {
		clock.set(at)
		var members []batchMember
		for range 10 {
			members = append(members, batchMember{0, "x", ""})
		}
		c.ok(protocol.ReqSendBatchMessage, batchFields("T", 0, ""), batch(members...))
	}
	search := func(topic string, queue int, at int64, boundary string) string {
		f := ext{"topic": topic, "queueId": queue, "timestamp": at}
		if boundary != "" {
			f["boundaryType"] = boundary
		}
		return value(c.ok(protocol.ReqSearchOffsetByTimestamp, f, nil), "offset")
	}
	for _, test := range []struct {
		at           int64
		lower, upper string
	}{
		{-1, "0", "0"}, {0, "0", "0"}, {999, "0", "0"}, {1000, "0", "9"}, {1001, "10", "9"}, {1999, "10", "9"}, {2000, "10", "19"},
		{2001, "20", "19"}, {3000, "20", "29"}, {3001, "30", "29"}, {1 << 62, "30", "29"},
	} {
		require.Equal(t, test.lower, search("T", 0, test.at, ""), "first at %d or later", test.at)
		require.Equal(t, test.lower, search("T", 0, test.at, "lower"))
		require.Equal(t, test.upper, search("T", 0, test.at, "UPPER"), "last at %d or earlier", test.at)
	}
	require.Equal(t, "0", search("T", 1, 2000, ""), "an empty queue")
	require.Equal(t, "0", search("T", 9, 2000, ""))
	require.Equal(t, "0", search("Nothing", 0, 2000, "UPPER"))
}

func resetFields(group, topic string, queue int, offset, timestamp int64) ext {
	return ext{"group": group, "topic": topic, "queueId": queue, "offset": offset, "timestamp": timestamp, "isForce": true}
}

// remoting.md §2.9, semantics §44: code 222, and what it does to the group's next requests.
func TestAResetBindsTheGroup(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		c.join("c1", "G", "T")
		for range 9 {
			c.mustSend("T", 0, "x", "")
		}
		require.Equal(t, int32(0), c.commit("G", "T", 0, 8).Code)
		a := r.client(t).ok(protocol.ReqInvokeBrokerToResetOffset, resetFields("G", "T", 0, 2, 0), nil)
		require.True(t, bytes.Equal([]byte(`{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:2}}`), a.Body), "%s", a.Body)
		c.requireCommitted("G", "T", 0, 2)
		require.Equal(t, int32(0), c.commit("G", "T", 0, 9).Code, "a commit that does not know of it is void")
		c.requireCommitted("G", "T", 0, 2)

		r.restart() // it is in the log
		encoding := c.encoding
		c = r.client(t)
		c.encoding = encoding
		c.join("c1", "G", "T")
		c.requireCommitted("G", "T", 0, 2)
		pull := c.pull("G", "T", 0, 8, ext{"sysFlag": flagCommit | flagSuspend, "commitOffset": 8, "subVersion": 1})
		requirePulled(t, pull, 21, "OFFSET_RESET", 2, 0, 9)
		c.requireCommitted("G", "T", 0, 2)
		require.Equal(t, int32(0), c.pull("G", "T", 0, 2, ext{"sysFlag": 0, "subVersion": 1}).Code, "once is enough")
		require.Equal(t, int32(0), c.commit("G", "T", 0, 4).Code)
		c.requireCommitted("G", "T", 0, 4)
	})
}

// remoting.md §2.9: where a reset goes.
func TestAResetGoesWhereItIsTold(t *testing.T) {
	clock := new(settableClock)
	r := start(t, rigOptions{shard: func(o *shard.Options) { o.Now = clock.now }})
	c := r.client(t)
	c.putTopic("T", 3, 4, 6)
	c.makeGroup("G", nil)
	for i := range 3 {
		clock.set(int64(1000 * (i + 1)))
		for q := range 2 {
			c.mustSend("T", q, "x", "")
		}
	}
	for _, test := range []struct {
		name   string
		fields ext
		code   int32
		want   map[int]int64
	}{
		{"unknown topic", resetFields("G", "Nothing", 0, 1, 0), 17, nil},
		{"unknown group", resetFields("Nobody", "T", 0, 1, 0), 26, nil},
		{"offset below the smallest", resetFields("G", "T", 0, -5, 1000), 1, nil},
		{"offset of one queue", resetFields("G", "T", 1, 2, 0), 0, map[int]int64{1: 2}},
		{"the end", resetFields("G", "T", 1, 3, 0), 0, map[int]int64{1: 3}},
		{"one beyond the end", resetFields("G", "T", 1, 4, 0), 0, map[int]int64{1: 4}},
		{"two beyond the end", resetFields("G", "T", 1, 5, 0), 1, nil},
		{"no such queue", resetFields("G", "T", 4, 0, 0), 1, nil},
		{"time for one queue", resetFields("G", "T", 1, -1, 2000), 0, map[int]int64{1: 1}},
		{"time for all read queues", resetFields("G", "T", -1, -1, 2000), 0, map[int]int64{0: 1, 1: 1, 2: 0}},
		{"time in the past", resetFields("G", "T", -1, -1, 1), 0, map[int]int64{0: 0, 1: 0, 2: 0}},
		{"time in the future", resetFields("G", "T", -1, -1, 9999), 0, map[int]int64{0: 3, 1: 3, 2: 0}},
		{"skip everything", resetFields("G", "T", -1, -1, -1), 0, map[int]int64{0: 3, 1: 3, 2: 0}},
		{"without queue and offset", ext{"group": "G", "topic": "T", "timestamp": 2000, "isForce": false}, 0, map[int]int64{0: 1, 1: 1, 2: 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := c.call(protocol.ReqInvokeBrokerToResetOffset, test.fields, nil)
			require.Equal(t, test.code, a.Code, a.Remark)
			if test.code != 0 {
				require.NotEmpty(t, a.Remark)
				return
			}
			var body protocol.ResetOffsetBody
			require.NoError(t, protocol.ParseJSON(a.Body, &body))
			got := map[int]int64{}
			for q, at := range body.OffsetTable {
				got[int(q.QueueId)] = at
				c.requireCommitted("G", "T", int(q.QueueId), at)
			}
			require.Equal(t, test.want, got)
		})
	}
}

// remoting.md §14.2: a C++ tool gets the list form.
func TestAResetOfACPPToolIsAnsweredInItsForm(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.makeGroup("G", nil)
	c.language = protocol.LanguageCPP
	a := c.ok(protocol.ReqInvokeBrokerToResetOffset, resetFields("G", "T", -1, -1, -1), nil)
	require.JSONEq(t, `{"offsetTable":[{"brokerName":"broker-a","offset":0,"queueId":0,"topic":"T"}]}`, string(a.Body))
}

// C156, C157: offsets of all kinds go with the topic.
func TestOffsetsGoWithTheirTopic(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	for range 100 {
		c.mustSend("T", 0, "x", "")
	}
	require.Equal(t, int32(0), c.commit("G", "T", 0, 100).Code)
	c.ok(protocol.ReqInvokeBrokerToResetOffset, resetFields("G", "T", 0, 50, 0), nil)
	c.ok(protocol.ReqDeleteTopicInBroker, ext{"topic": "T"}, nil)
	c.makeTopic("T", 1)
	require.Equal(t, int32(22), c.committed("G", "T", 0).Code)
	for i := range 5 {
		require.Equal(t, int64(i), c.mustSend("T", 0, "y", ""))
	}
	require.Equal(t, int32(0), c.pull("G", "T", 0, 0, nil).Code, "no reset is left")
	a := c.ok(protocol.ReqGetConsumeStats, ext{"consumerGroup": "G", "topic": "T"}, nil)
	var stats protocol.ConsumeStats
	require.NoError(t, protocol.ParseJSON(a.Body, &stats))
	require.Equal(t, protocol.OffsetWrapper{BrokerOffset: 5}, stats.OffsetTable[protocol.MessageQueue{BrokerName: "broker-a", Topic: "T"}])
	r.restart() // C158
	require.Len(t, r.client(t).read("T", 0, 0), 5)
}

// C160, quirk 6: offsets go with their group if that is asked for, by the word of either generation of tools.
func TestOffsetsGoWithTheirGroupWhenAsked(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.mustSend("T", 0, "x", "")
	for _, test := range []struct {
		fields ext
		code   int32
	}{{ext{}, 0}, {ext{"cleanOffset": false}, 0}, {ext{"cleanOffset": true}, 22}, {ext{"removeOffset": true}, 22}} {
		require.Equal(t, int32(0), c.commit("G", "T", 0, 1).Code)
		test.fields["groupName"] = "G"
		c.ok(protocol.ReqDeleteSubscriptiongroup, test.fields, nil)
		require.Equal(t, test.code, c.committed("G", "T", 0).Code, "%v", test.fields)
	}
}

// remoting.md §2.9, code 43.
func TestAllOffsetsAreTold(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 3)
	for q := range 3 {
		c.mustSend("T", q, "x", "")
	}
	c.commit("G", "T", 0, 1)
	c.commit("G", "T", 2, 1)
	c.commit("H", "T", 0, 0)
	a := c.ok(protocol.ReqGetAllConsumerOffset, nil, nil)
	var body protocol.ConsumerOffsets
	require.NoError(t, protocol.ParseJSON(a.Body, &body))
	require.Equal(t, map[string]map[int32]int64{"T@G": {0: 1, 2: 1}, "T@H": {0: 0}}, body.OffsetTable)
}
