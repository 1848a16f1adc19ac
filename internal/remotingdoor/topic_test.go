package remotingdoor_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
)

func (c *client) topicConfig(name string) string {
	c.t.Helper()
	return string(c.ok(protocol.ReqGetTopicConfig, ext{"topic": name, "lo": true}, nil).Body)
}

// remoting.md §2.7, code 17 and 351.
func TestATopicIsMadeAndChanged(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		a := c.call(protocol.ReqGetTopicConfig, ext{"topic": "T"}, nil)
		require.Equal(t, int32(17), a.Code)
		require.Equal(t, "No topic in this broker. topic: T", a.Remark)
		c.ok(protocol.ReqUpdateAndCreateTopic, topicFields("T", 3, 5, 6, ext{"order": true, "topicFilterType": "MULTI_TAG", "topicSysFlag": 2, "attributes": "+message.type=FIFO,+reserve.time=5"}), nil)
		want := `{"attributes":{"message.type":"FIFO","reserve.time":"5"},"order":true,"perm":6,"readQueueNums":3,"topicFilterType":"MULTI_TAG","topicName":"T","topicSysFlag":2,"writeQueueNums":5}`
		require.JSONEq(t, want, c.topicConfig("T"))
		_, before, _ := r.b.Topics()
		c.ok(protocol.ReqUpdateAndCreateTopic, topicFields("T", 3, 5, 6, ext{"order": true, "topicFilterType": "MULTI_TAG", "topicSysFlag": 2}), nil)
		_, after, _ := r.b.Topics()
		require.Equal(t, before, after, "the same again is no change; attributes stay")
		c.ok(protocol.ReqUpdateAndCreateTopic, topicFields("T", 9, 7, 4, ext{"attributes": "-reserve.time,+message.type=NORMAL"}), nil)
		want = `{"attributes":{"message.type":"NORMAL"},"order":false,"perm":4,"readQueueNums":9,"topicFilterType":"SINGLE_TAG","topicName":"T","topicSysFlag":0,"writeQueueNums":7}`
		require.JSONEq(t, want, c.topicConfig("T"))
		r.restart()
		c = r.client(t)
		require.JSONEq(t, want, c.topicConfig("T"))
	})
}

// remoting.md §2.7, C155: names and numbers are checked when a topic is made.
func TestABadTopicIsRefused(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	for _, test := range []struct {
		name   string
		fields ext
		code   int32
		remark string
	}{
		{"name with a dot", topicFields("a.b", 1, 1, 6, nil), 29, "a.b"},
		{"blank name", topicFields(" ", 1, 1, 6, nil), 29, "blank"},
		{"128 bytes", topicFields(strings.Repeat("t", 128), 1, 1, 6, nil), 29, "too long"},
		{"retry topic of 256 bytes", topicFields("%RETRY%"+strings.Repeat("t", 249), 1, 1, 6, nil), 29, "too long"},
		{"template", topicFields("TBW102", 1, 1, 6, nil), 29, "The topic[TBW102] is conflict with system topic."},
		{"timer topic", topicFields("rmq_sys_wheel_timer", 1, 1, 6, nil), 29, "conflict"},
		{"topic of the cluster", topicFields("DefaultCluster", 1, 1, 6, nil), 29, "conflict"},
		{"topic of the broker", topicFields("broker-a", 1, 1, 6, nil), 29, "conflict"},
		{"reply topic", topicFields("DefaultCluster_REPLY_TOPIC", 1, 1, 6, nil), 29, "conflict"},
		{"negative queues", topicFields("T", -1, 1, 6, nil), 29, "queues"},
		{"too many queues", topicFields("T", 1, 1<<30, 6, nil), 29, "queues"},
		{"permission", topicFields("T", 1, 1, 8, nil), 29, "permission"},
		{"number that is none", topicFields("T", 1, 1, 6, ext{"readQueueNums": "many"}), 1, "readQueueNums"},
		{"number that is too large", topicFields("T", 1, 1, 6, ext{"readQueueNums": "4294967296"}), 1, "readQueueNums"},
		{"unknown attribute", topicFields("T", 1, 1, 6, ext{"attributes": "+colour=red"}), 1, "colour"},
		{"attribute's value", topicFields("T", 1, 1, 6, ext{"attributes": "+message.type=ODD"}), 1, "ODD"},
		{"attribute twice", topicFields("T", 1, 1, 6, ext{"attributes": "+message.type=FIFO,+message.type=FIFO"}), 1, "message.type"},
		{"attribute added and removed", topicFields("T", 1, 1, 6, ext{"attributes": "+message.type=FIFO,-message.type"}), 1, "message.type"},
		{"attribute without a sign", topicFields("T", 1, 1, 6, ext{"attributes": "message.type=FIFO"}), 1, "message.type"},
		{"sign in an attribute's name", topicFields("T", 1, 1, 6, ext{"attributes": "++message.type=FIFO"}), 1, "message.type"},
		{"removal of nothing", topicFields("T", 1, 1, 6, ext{"attributes": "-message.type"}), 1, "message.type"},
		{"batch queues", topicFields("T", 1, 1, 6, ext{"attributes": "+queue.type=BatchCQ"}), 1, "not supported"},
		{"compaction", topicFields("T", 1, 1, 6, ext{"attributes": "+cleanup.policy=COMPACTION"}), 1, "not supported"},
		{"nothing at all", nil, 1, "topic"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := c.call(protocol.ReqUpdateAndCreateTopic, test.fields, nil)
			require.Equal(t, test.code, a.Code, a.Remark)
			require.Contains(t, a.Remark, test.remark)
		})
	}
	_, ok := r.b.Topic("T")
	require.False(t, ok)
	long := "%RETRY%" + strings.Repeat("g", 120)
	c.makeTopic(long, 1)

	c.ok(protocol.ReqUpdateAndCreateTopic, topicFields("Fixed", 1, 1, 6, ext{"attributes": "+queue.type=SimpleCQ"}), nil)
	for _, change := range []string{"+queue.type=SimpleCQ", "-queue.type"} {
		a := c.call(protocol.ReqUpdateAndCreateTopic, topicFields("Fixed", 1, 1, 6, ext{"attributes": change}), nil)
		require.Equal(t, int32(1), a.Code)
		require.Contains(t, a.Remark, "unchangeable")
	}
}

// remoting.md §2.7, code 18.
func TestManyTopicsAreMadeAtOnce(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	list := protocol.TopicConfigList{TopicConfigList: []protocol.TopicConfig{
		{TopicName: "A", ReadQueueNums: 2, WriteQueueNums: 2, Perm: 6, TopicFilterType: protocol.SingleTag, Attributes: map[string]string{"+message.type": "FIFO"}},
		{TopicName: "B", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6, TopicFilterType: protocol.SingleTag},
	}}
	c.ok(protocol.ReqUpdateAndCreateTopicList, nil, protocol.AppendJSON(nil, &list))
	a, _ := r.b.Topic("A")
	require.Equal(t, map[string]string{"message.type": "FIFO"}, a.Attributes)
	_, ok := r.b.Topic("B")
	require.True(t, ok)
	list.TopicConfigList = append(list.TopicConfigList[1:], protocol.TopicConfig{TopicName: "a.b", Perm: 6})
	require.Equal(t, int32(29), c.call(protocol.ReqUpdateAndCreateTopicList, nil, protocol.AppendJSON(nil, &list)).Code)
	require.Equal(t, int32(1), c.call(protocol.ReqUpdateAndCreateTopicList, nil, []byte("{")).Code)
}

// remoting.md §2.7, code 215; C156, C158, C212.
func TestATopicIsDeleted(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	for _, system := range []string{"TBW102", "SCHEDULE_TOPIC_XXXX", "DefaultCluster", "broker-a"} {
		a := c.call(protocol.ReqDeleteTopicInBroker, ext{"topic": system}, nil)
		require.Equal(t, int32(29), a.Code, a.Remark)
	}
	require.Equal(t, int32(29), c.call(protocol.ReqDeleteTopicInBroker, ext{"topic": "a.b"}, nil).Code)
	c.ok(protocol.ReqDeleteTopicInBroker, ext{"topic": "Nothing"}, nil)

	c.makeTopic("T", 2)
	c.makeTopic("%RETRY%G_T", 1)
	c.makeTopic("%RETRY%H_T", 1)
	c.mustSend("T", 1, "old", "")
	require.Equal(t, int32(0), c.commit("G", "T", 1, 1).Code)
	c.ok(protocol.ReqDeleteTopicInBroker, ext{"topic": "T"}, nil)
	for topic, there := range map[string]bool{"T": false, "%RETRY%G_T": false, "%RETRY%H_T": true} {
		_, ok := r.b.Topic(topic)
		require.Equal(t, there, ok, topic)
	}
	require.Equal(t, int32(17), c.pull("G", "T", 1, 0, nil).Code)
	require.Equal(t, int32(0), c.call(protocol.ReqGetMaxOffset, ext{"topic": "T", "queueId": 1}, nil).Code)
	r.restart()
	c = r.client(t)
	_, ok := r.b.Topic("T")
	require.False(t, ok)
	c.makeTopic("T", 2)
	require.Equal(t, int64(0), c.mustSend("T", 1, "new", ""))
	require.Equal(t, []string{"new"}, bodies(c.read("T", 1, 0)))
}

// remoting.md §2.7, code 21: the whole table, or pages of it.
func TestTheTableOfTopicsIsTold(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 3)
	a := c.ok(protocol.ReqGetAllTopicConfig, nil, nil)
	var all protocol.TopicConfigWrapper
	require.NoError(t, protocol.ParseJSON(a.Body, &all))
	require.Equal(t, len(all.TopicConfigTable), int(number(t, a, "totalTopicNum")))
	require.Equal(t, int32(3), all.TopicConfigTable["T"].ReadQueueNums)
	require.Equal(t, int32(7), all.TopicConfigTable["TBW102"].Perm)
	require.Equal(t, int32(1024), all.TopicConfigTable["BenchmarkTest"].ReadQueueNums)
	require.Equal(t, int32(18), all.TopicConfigTable["SCHEDULE_TOPIC_XXXX"].WriteQueueNums)
	require.Positive(t, all.DataVersion.Counter)
	require.Positive(t, all.DataVersion.Timestamp)

	version, err := json.Marshal(map[string]int64{"counter": all.DataVersion.Counter, "timestamp": all.DataVersion.Timestamp, "stateVersion": 0})
	require.NoError(t, err)
	got := map[string]bool{}
	for seq := 0; seq < len(all.TopicConfigTable); seq += 4 {
		a := c.ok(protocol.ReqGetAllTopicConfig, ext{"topicSeq": seq, "maxTopicNum": 4, "dataVersion": string(version)}, nil)
		var page protocol.TopicConfigWrapper
		require.NoError(t, protocol.ParseJSON(a.Body, &page))
		require.LessOrEqual(t, len(page.TopicConfigTable), 4)
		require.Equal(t, len(all.TopicConfigTable), int(number(t, a, "totalTopicNum")))
		for name := range page.TopicConfigTable {
			require.False(t, got[name], name)
			got[name] = true
		}
	}
	require.Len(t, got, len(all.TopicConfigTable))
	a = c.ok(protocol.ReqGetAllTopicConfig, ext{"topicSeq": 4, "maxTopicNum": 1, "dataVersion": `{"counter":1}`}, nil)
	var first protocol.TopicConfigWrapper
	require.NoError(t, protocol.ParseJSON(a.Body, &first))
	require.Contains(t, first.TopicConfigTable, "BenchmarkTest", "the table has changed: it begins anew")
	for _, f := range []ext{{"topicSeq": -5}, {"topicSeq": 1 << 30, "dataVersion": string(version)}, {"maxTopicNum": -1}} {
		c.ok(protocol.ReqGetAllTopicConfig, f, nil)
	}
}

// remoting.md §2.8, code 305.
func TestSystemTopicsAreTold(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	a := c.ok(protocol.ReqGetSystemTopicListFromBroker, nil, nil)
	var list protocol.TopicList
	require.NoError(t, protocol.ParseJSON(a.Body, &list))
	require.Subset(t, list.TopicList, []string{
		"TBW102", "SCHEDULE_TOPIC_XXXX", "BenchmarkTest", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRACE_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC",
		"SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT", "DefaultCluster", "broker-a", "DefaultCluster_REPLY_TOPIC", "rmq_sys_wheel_timer",
		"rmq_sys_REVIVE_LOG_DefaultCluster", "rmq_sys_SYNC_BROKER_MEMBER_broker-a",
	})
	require.NotContains(t, list.TopicList, "T")
}

// semantics §2.5, C232: numbers may go down; what is in the queues stays, and comes back with them.
func TestQueuesComeBackWithWhatIsInThem(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 4)
	c.mustSend("T", 3, "x", "")
	c.putTopic("T", 2, 2, 6)
	require.Equal(t, int32(29), c.pull("G", "T", 3, 0, nil).Code)
	require.Equal(t, int32(29), c.send("T", 3, "y", "").Code)
	r.restart()
	c = r.client(t)
	c.putTopic("T", 12, 16, 6)
	require.Equal(t, []string{"x"}, bodies(c.read("T", 3, 0)))
	require.Equal(t, int64(0), c.mustSend("T", 15, "z", ""))
}

// remoting.md §2.7, codes 200, 225, 201 and 352.
func TestAGroupIsMadeAndChanged(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		body := `{"attributes":{"priority.factor":"5"},"brokerId":3,"consumeBroadcastEnable":false,"consumeEnable":false,"consumeFromMinEnable":false,"consumeMessageOrderly":true,"consumeTimeoutMinute":7,"groupName":"G","groupRetryPolicy":{"exponentialRetryPolicy":{"initial":5000,"max":7200000,"multiplier":2},"type":"EXPONENTIAL"},"groupSysFlag":4,"notifyConsumerIdsChangedEnable":false,"retryMaxTimes":5,"retryQueueNums":2,"whichBrokerWhenConsumeSlowly":9}`
		c.ok(protocol.ReqUpdateAndCreateSubscriptiongroup, nil, []byte(body))
		get := func(c *client) string {
			return string(c.ok(protocol.ReqGetSubscriptiongroupConfig, ext{"group": "G"}, nil).Body)
		}
		require.JSONEq(t, body, get(c))
		_, before, _ := r.b.Groups()
		c.ok(protocol.ReqUpdateAndCreateSubscriptiongroup, nil, []byte(body))
		_, after, _ := r.b.Groups()
		require.Equal(t, before, after, "the same again is no change")
		r.restart()
		c = r.client(t)
		require.JSONEq(t, body, get(c))

		a := c.ok(protocol.ReqGetAllSubscriptiongroupConfig, nil, nil)
		var all protocol.SubscriptionGroupWrapper
		require.NoError(t, protocol.ParseJSON(a.Body, &all))
		require.Equal(t, int32(5), all.SubscriptionGroupTable["G"].RetryMaxTimes)
		require.Contains(t, all.SubscriptionGroupTable, "TOOLS_CONSUMER")
		require.Equal(t, len(all.SubscriptionGroupTable), int(number(t, a, "totalGroupNum")))
		a = c.ok(protocol.ReqGetAllSubscriptiongroupConfig, ext{"groupSeq": 0, "maxGroupNum": 3, "dataVersion": ""}, nil)
		var page protocol.SubscriptionGroupWrapper
		require.NoError(t, protocol.ParseJSON(a.Body, &page))
		require.Len(t, page.SubscriptionGroupTable, 3)
	})
}

func TestABadGroupIsRefused(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	for _, body := range []string{
		`{"groupName":"a.b"}`, `{"groupName":" "}`, `{}`, `{"groupName":"` + strings.Repeat("g", 121) + `"}`, `{"groupName":"G","retryQueueNums":-1}`, `{"groupName":"G","retryQueueNums":1000000}`,
	} {
		require.Equal(t, int32(29), c.call(protocol.ReqUpdateAndCreateSubscriptiongroup, nil, []byte(body)).Code, body)
		require.Equal(t, int32(29), c.call(protocol.ReqUpdateAndCreateSubscriptiongroupList, nil, []byte(`{"groupConfigList":[{"groupName":"Good"},`+body+`]}`)).Code, body)
	}
	require.Equal(t, int32(1), c.call(protocol.ReqUpdateAndCreateSubscriptiongroup, nil, []byte("{")).Code)
	require.Equal(t, int32(1), c.call(protocol.ReqUpdateAndCreateSubscriptiongroup, nil, nil).Code)
	g, ok := r.b.Group("Good")
	require.True(t, ok)
	require.True(t, g.ConsumeEnable, "what an old tool does not say is on")
}

// remoting.md §2.7: asking for a group makes it, when that is allowed.
func TestAskingForAGroupMakesIt(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	a := c.ok(protocol.ReqGetSubscriptiongroupConfig, ext{"group": "New"}, nil)
	require.JSONEq(t, `{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,"consumeMessageOrderly":false,"consumeTimeoutMinute":15,"groupName":"New","groupRetryPolicy":{"type":"CUSTOMIZED"},"groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}`, string(a.Body))
	r.configure(func(c *broker.Config) { c.AutoCreateGroups = false })
	require.Equal(t, int32(26), c.call(protocol.ReqGetSubscriptiongroupConfig, ext{"group": "Newer"}, nil).Code)
	require.Equal(t, int32(0), c.call(protocol.ReqGetSubscriptiongroupConfig, ext{"group": "CID_RMQ_SYS_x"}, nil).Code)
}

// remoting.md §2.7, code 207.
func TestAGroupIsDeleted(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeGroup("G", nil)
	c.ok(protocol.ReqDeleteSubscriptiongroup, ext{"groupName": "G", "cleanOffset": true}, nil)
	_, ok := r.b.Group("G")
	require.False(t, ok)
	c.ok(protocol.ReqDeleteSubscriptiongroup, ext{"groupName": "G"}, nil)
	require.Equal(t, int32(1), c.call(protocol.ReqDeleteSubscriptiongroup, nil, nil).Code)
	r.restart()
	_, ok = r.b.Group("G")
	require.False(t, ok)
}

// Many administrators at once do not undo each other's changes.
func TestChangesOfOneTopicDoNotGetLost(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	attributes := []string{"+message.type=FIFO", "+reserve.time=5", "+lite.topic.expiration=7"}
	var answers []<-chan *protocol.Command
	for _, a := range attributes {
		answers = append(answers, r.client(t).later(protocol.ReqUpdateAndCreateTopic, topicFields("T", 1, 1, 6, ext{"attributes": a}), nil))
	}
	for _, a := range answers {
		got := wait(t, a)
		require.Equal(t, int32(0), got.Code, got.Remark)
	}
	topic, _ := r.b.Topic("T")
	require.Len(t, topic.Attributes, 3, fmt.Sprint(topic.Attributes))
}
