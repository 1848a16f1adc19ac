package remotingdoor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
)

// remoting.md §6.6: version 1 of the heartbeat.
func TestAHeartbeatMakesAMember(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		a := c.beat(heartbeat("c1@1", consumer("G", subscription("T", "TagA", 7))))
		require.Equal(t, "true", value(a, "IS_SUPPORT_HEART_BEAT_V2"))
		require.Equal(t, "true", value(a, "IS_SUB_CHANGE"))
		require.Equal(t, "G", wait(t, c.notices), "the members are told, itself included")

		g, ok := r.b.Group("G")
		require.True(t, ok, "the group is made")
		require.Equal(t, int32(1), g.RetryQueues)
		retry, ok := r.b.Topic("%RETRY%G")
		require.True(t, ok, "and its retry topic, before the answer")
		require.Equal(t, int32(1), retry.ReadQueues)
		require.Equal(t, int32(6), retry.Perm)

		list := c.ok(protocol.ReqGetConsumerListByGroup, ext{"consumerGroup": "G"}, nil)
		require.JSONEq(t, `{"consumerIdList":["c1@1"]}`, string(list.Body))
		none := c.call(protocol.ReqGetConsumerListByGroup, ext{"consumerGroup": "Nobody"}, nil)
		require.Equal(t, int32(1), none.Code)
		require.Equal(t, "no consumer for this group, Nobody", none.Remark)
		require.Empty(t, none.Body)
	})
}

// remoting.md §6.6: the retry topic has as many queues as the group says.
func TestTheRetryTopicFollowsTheGroup(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeGroup("Three", func(g *protocol.SubscriptionGroupConfig) { g.RetryQueueNums = 3 })
	c.makeGroup("None", func(g *protocol.SubscriptionGroupConfig) { g.RetryQueueNums = 0 })
	c.join("c1", "Three", "T")
	c.join("c1", "None", "T")
	retry, _ := r.b.Topic("%RETRY%Three")
	require.Equal(t, int32(3), retry.WriteQueues)
	_, ok := r.b.Topic("%RETRY%None")
	require.False(t, ok)

	// C067: more queues for the group are more queues for its retry topic.
	c.makeGroup("Three", func(g *protocol.SubscriptionGroupConfig) { g.RetryQueueNums = 5 })
	retry, _ = r.b.Topic("%RETRY%Three")
	require.Equal(t, int32(5), retry.WriteQueues)
	require.Equal(t, int32(5), retry.ReadQueues)
}

// remoting.md §6.6: who comes, who goes, and who changes its subscription is told to all members.
func TestMembersAreToldOfChanges(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, one *client) {
		two := r.client(t)
		two.encoding = one.encoding
		one.join("c1", "G", "T")
		require.Equal(t, "G", wait(t, one.notices))
		two.join("c2", "G", "T")
		require.Equal(t, "G", wait(t, one.notices))
		require.Equal(t, "G", wait(t, two.notices))
		require.Equal(t, []string{"c1", "c2"}, r.b.MemberIDs("G"))

		two.join("c2", "G", "T") // the same again
		two.beat(heartbeat("c2", consumer("G", subscription("T", "*", 2))))
		two.beat(heartbeat("c2", consumer("G", subscription("T", "TagA", 3))))
		require.Equal(t, "G", wait(t, one.notices), "another expression")
		require.Equal(t, "G", wait(t, two.notices))
		two.beat(heartbeat("c2", consumer("G", subscription("T", "TagA", 3), subscription("U", "*", 3))))
		require.Equal(t, "G", wait(t, one.notices), "another topic")
		require.Equal(t, "G", wait(t, two.notices))

		two.ok(protocol.ReqUnregisterClient, ext{"clientID": "c2", "consumerGroup": "G"}, nil)
		require.Equal(t, "G", wait(t, one.notices), "one has left")
		require.Equal(t, []string{"c1"}, r.b.MemberIDs("G"))
		two.join("c2", "G", "T")
		require.Equal(t, "G", wait(t, one.notices))
		two.close()
		require.Equal(t, "G", wait(t, one.notices), "one is gone")
		eventually(t, func() bool { return len(r.b.MemberIDs("G")) == 1 }, "one is left")
		require.Empty(t, one.notices)
	})
}

// remoting.md §6.6: broadcast consumers and groups that do not want it are not told.
func TestSomeAreNotToldOfChanges(t *testing.T) {
	r := start(t, rigOptions{})
	one, two := r.client(t), r.client(t)
	d := consumer("Broad", subscription("T", "*", 1))
	d.MessageModel = protocol.Broadcasting
	one.makeGroup("Silent", func(g *protocol.SubscriptionGroupConfig) { g.NotifyConsumerIdsChangedEnable = false })
	for i, c := range []*client{one, two} {
		c.beat(heartbeat(fmt.Sprint("c", i), d, consumer("Silent", subscription("T", "*", 1)), consumer("Loud", subscription("T", "*", 1))))
	}
	require.Equal(t, "Loud", wait(t, one.notices))
	require.Equal(t, "Loud", wait(t, one.notices))
	require.Equal(t, "Loud", wait(t, two.notices))
	one.committed("G", "T", 0) // what was sent before has come
	two.committed("G", "T", 0)
	require.Empty(t, one.notices)
	require.Empty(t, two.notices)
	require.Len(t, r.b.Members("Broad"), 2)
}

// remoting.md §6.6: version 2 leaves out subscriptions that the broker has.
func TestAHeartbeatOfVersionTwoKeepsSubscriptions(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		c.mustSend("T", 0, "a", props("TAGS", "TagA"))
		c.mustSend("T", 0, "b", props("TAGS", "TagB"))
		full := heartbeat("c1", consumer("G", subscription("T", "TagA", 1)))
		full.HeartbeatFingerprint = 4711
		bare := heartbeat("c1", protocol.ConsumerData{GroupName: "G", ConsumeType: protocol.ConsumePassively, MessageModel: protocol.Clustering, SubscriptionDataSet: []protocol.SubscriptionData{}})
		bare.HeartbeatFingerprint, bare.WithoutSub = 4711, true

		require.Equal(t, "true", value(c.beat(bare), "IS_SUB_CHANGE"), "they are not known: all are asked for")
		require.Equal(t, "false", value(c.beat(full), "IS_SUB_CHANGE"))
		for range 3 {
			require.Equal(t, "false", value(c.beat(bare), "IS_SUB_CHANGE"))
		}
		pull := ext{"sysFlag": 0, "subVersion": 1}
		require.Equal(t, []string{"a"}, bodies(records(t, c.pull("G", "T", 0, 0, pull).Body)), "they are kept")
		bare.HeartbeatFingerprint = 4712
		require.Equal(t, "true", value(c.beat(bare), "IS_SUB_CHANGE"), "they have changed")
		full.ConsumerDataSet[0] = consumer("G", subscription("T", "TagB", 2))
		full.HeartbeatFingerprint = 4712
		require.Equal(t, "false", value(c.beat(full), "IS_SUB_CHANGE"))
		require.Equal(t, []string{"b"}, bodies(records(t, c.pull("G", "T", 0, 0, pull).Body)))

		again := r.client(t) // a new connection knows nothing
		require.Equal(t, "true", value(again.beat(bare), "IS_SUB_CHANGE"))
	})
}

// remoting.md §6.6: the newest version of a subscription wins; topics that are not named any more are gone.
func TestTheNewestSubscriptionWins(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	of := func(topic string) *broker.Subscription { return r.b.Members("G")[0].Consumer.Of([]byte(topic)) }
	c.beat(heartbeat("c1", consumer("G", subscription("T", "TagA", 5), subscription("U", "*", 5))))
	c.beat(heartbeat("c1", consumer("G", subscription("T", "TagB", 4))))
	require.Equal(t, "TagA", of("T").Expression)
	require.Nil(t, of("U"))
	c.beat(heartbeat("c1", consumer("G", subscription("T", "TagB", 6))))
	require.Equal(t, "TagB", of("T").Expression)
}

// remoting.md §6.6, §14.2, §14.3: what C++ and old Go clients write is understood.
func TestHeartbeatsAreReadLeniently(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.mustSend("T", 0, "x", props("TAGS", "TagA"))
	for i, body := range []string{
		`{"clientID":"cpp","consumerDataSet":[{"consumeFromWhere":4,"consumeType":1,"groupName":"G0","messageModel":1,"subscriptionDataSet":[{"subString":"TagA","subVersion":"12","topic":"T"}],"unitMode":false}],"producerDataSet":[]}` + "\n",
		`{"clientID":"go","producerDataSet":[{"groupName":"P"}],"consumerDataSet":[{"groupName":"G1","consumeType":"CONSUME_PASSIVELY","messageModel":"Clustering","consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET","subscriptionDataSet":[{"classFilterMode":false,"topic":"T","subString":"TagA","tagsSet":["TagA"],"codeSet":["2598919"],"subVersion":12,"expressionType":"TAG"}],"unitMode":false}]}`,
		`{clientID:'odd',consumerDataSet:[{groupName:'G2',subscriptionDataSet:[{topic:'T',subString:'TagA',subVersion:12}]}]}`,
	} {
		client := r.client(t)
		client.ok(protocol.ReqHeartBeat, nil, []byte(body))
		group := fmt.Sprint("G", i)
		require.Len(t, r.b.Members(group), 1, group)
		a := client.pull(group, "T", 0, 0, ext{"sysFlag": 0, "subVersion": 12})
		require.Equal(t, []string{"x"}, bodies(records(t, a.Body)), group)
	}
	require.Equal(t, "CONSUME_FROM_FIRST_OFFSET", r.b.Members("G0")[0].Consumer.From)
	require.Equal(t, "CLUSTERING", r.b.Members("G1")[0].Consumer.Model)
}

func TestBadHeartbeatsAreRefused(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	for _, body := range []string{"", "{", "[]", `{"consumerDataSet":[]}`, `{"clientID":"c","consumerDataSet":7}`, "\xff\xfe"} {
		a := c.call(protocol.ReqHeartBeat, nil, []byte(body))
		require.Equal(t, int32(1), a.Code, body)
		require.NotEmpty(t, a.Remark)
	}
	c.oneway(protocol.ReqHeartBeat, nil, []byte("{"))
	c.join("c1", "G", "T")
	require.NoError(t, c.Err())
}

// remoting.md §3: a group that may not be made is no reason to refuse the others of the same client.
func TestAHeartbeatGoesOnWithoutAGroupThatMayNotBe(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.AutoCreateGroups = false }})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.makeGroup("Known", nil)
	c.beat(heartbeat("c1", consumer("Unknown", subscription("T", "*", 1)), consumer("a.b", subscription("T", "*", 1)), consumer("Known", subscription("T", "*", 1))))
	_, ok := r.b.Topic("%RETRY%Known")
	require.True(t, ok)
	_, ok = r.b.Group("Unknown")
	require.False(t, ok)
	require.Equal(t, int32(19), c.pull("Known", "T", 0, 0, ext{"sysFlag": 0}).Code)
	require.Equal(t, int32(26), c.pull("Unknown", "T", 0, 0, ext{"sysFlag": 0}).Code)
}

// remoting.md §6.6: silence for the time of expiry ends a membership; the next heartbeat begins it again.
func TestASilentClientExpires(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.ClientExpiry = time.Hour }})
	c, other := r.client(t), r.client(t)
	c.join("c1", "G", "T")
	other.join("c2", "G", "T")
	require.Equal(t, "G", wait(t, other.notices))
	r.b.ExpireClients(time.Now().Add(-time.Minute))
	require.Len(t, r.b.Members("G"), 2)
	r.b.ExpireClients(time.Now())
	require.Empty(t, r.b.Members("G"))
	require.Empty(t, r.b.Producers("CLIENT_INNER_PRODUCER"))
	c.join("c1", "G", "T")
	require.Equal(t, []string{"c1"}, r.b.MemberIDs("G"))
}

// One connection may speak for one client after another.
func TestAConnectionThatChangesItsClient(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.join("c1", "G", "T")
	c.join("c2", "G", "T")
	eventually(t, func() bool { return len(r.b.MemberIDs("G")) == 1 }, "the first one is gone")
	require.Equal(t, []string{"c2"}, r.b.MemberIDs("G"))
	c.close()
	eventually(t, func() bool { return len(r.b.MemberIDs("G")) == 0 }, "so is the second one")
}

// remoting.md §1.7: old clients have two connections; the id counts once.
func TestAClientWithTwoConnectionsIsOneMember(t *testing.T) {
	r := start(t, rigOptions{})
	one, two := r.client(t), r.client(t)
	one.join("c1", "G", "T")
	two.join("c1", "G", "T")
	require.Equal(t, []string{"c1"}, r.b.MemberIDs("G"))
	two.close()
	eventually(t, func() bool { return len(r.b.Members("G")) == 1 }, "one connection is left")
	require.Equal(t, []string{"c1"}, r.b.MemberIDs("G"))
}

// remoting.md §2.3: 35 takes out of the groups it names, and nobody but the client itself may ask.
func TestAClientLeavesTheGroupsItNames(t *testing.T) {
	r := start(t, rigOptions{})
	c, stranger := r.client(t), r.client(t)
	c.beat(heartbeat("c1", consumer("G1", subscription("T", "*", 1)), consumer("G2", subscription("T", "*", 1))))
	stranger.ok(protocol.ReqUnregisterClient, ext{"clientID": "c1", "consumerGroup": "G1"}, nil)
	require.Len(t, r.b.Members("G1"), 1)
	c.ok(protocol.ReqUnregisterClient, ext{"clientID": "c1", "producerGroup": "CLIENT_INNER_PRODUCER"}, nil)
	require.Empty(t, r.b.Producers("CLIENT_INNER_PRODUCER"))
	require.Len(t, r.b.Members("G1"), 1)
	c.ok(protocol.ReqUnregisterClient, ext{"clientID": "c1", "consumerGroup": "G1"}, nil)
	require.Empty(t, r.b.Members("G1"))
	require.Len(t, r.b.Members("G2"), 1)
	require.Equal(t, int32(1), c.call(protocol.ReqUnregisterClient, nil, nil).Code, "without a client id")
}

// C004: a client's version may be any number.
func TestOddVersionsAreDescribed(t *testing.T) {
	r := start(t, rigOptions{})
	for i, v := range []int32{-1, 0, 1 << 30} {
		c := r.client(t)
		c.version = v
		group := fmt.Sprint("G", i)
		c.join("c1", group, "T")
		require.Equal(t, int32(0), c.call(protocol.ReqGetConsumerConnectionList, ext{"consumerGroup": group}, nil).Code)
	}
	c := r.client(t)
	c.version, c.encoding = -1, protocol.Binary // two bytes, 0xFFFF
	c.join("c1", "GB", "T")
	require.Equal(t, int32(0), c.call(protocol.ReqGetConsumerConnectionList, ext{"consumerGroup": "GB"}, nil).Code)
}
