package remotingdoor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

// requirePulled checks code, remark and offsets of a pull's answer.
func requirePulled(t testing.TB, a *protocol.Command, code int32, remark string, next, low, high int64) {
	t.Helper()
	require.Equal(t, code, a.Code, a.Remark)
	require.Equal(t, remark, a.Remark)
	require.Equal(t, next, number(t, a, "nextBeginOffset"), "nextBeginOffset")
	require.Equal(t, low, number(t, a, "minOffset"), "minOffset")
	require.Equal(t, high, number(t, a, "maxOffset"), "maxOffset")
	require.Equal(t, "0", value(a, "suggestWhichBrokerId"))
	require.NotEmpty(t, value(a, "topicSysFlag"))
	require.NotEmpty(t, value(a, "groupSysFlag"))
	if code != 0 {
		require.Empty(t, a.Body)
	}
}

// remoting.md §6.5: what a pull finds by the bounds of the queue.
func TestAPullIsAnsweredByTheBoundsOfTheQueue(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, _ *rig, c *client) {
		c.makeTopic("T", 2)
		for i := range 3 {
			c.mustSend("T", 0, fmt.Sprint(i), props("TAGS", "TagA"))
		}
		for _, test := range []struct {
			queue  int
			offset int64
			change ext
			code   int32
			remark string
			next   int64
		}{
			{0, 0, nil, 0, "FOUND", 3},
			{0, 2, nil, 0, "FOUND", 3},
			{0, 0, ext{"maxMsgNums": 2}, 0, "FOUND", 2},
			{0, 0, ext{"maxMsgNums": 0}, 0, "FOUND", 1},
			{0, 0, ext{"maxMsgNums": -5}, 0, "FOUND", 1},
			{0, 3, nil, 19, "OFFSET_OVERFLOW_ONE", 3},
			{0, 4, nil, 21, "OFFSET_OVERFLOW_BADLY", 3},
			{0, 1 << 62, nil, 21, "OFFSET_OVERFLOW_BADLY", 3},
			{0, -1, nil, 21, "OFFSET_TOO_SMALL", 0},
			{0, -1 << 63, nil, 21, "OFFSET_TOO_SMALL", 0},
			{0, 0, ext{"subscription": "TagNone"}, 20, "NO_MATCHED_MESSAGE", 3},
			{0, 1, ext{"subscription": "TagNone || TagA"}, 0, "FOUND", 3},
			{1, 0, nil, 19, "NO_MESSAGE_IN_QUEUE", 0},
			{1, 5, nil, 21, "NO_MESSAGE_IN_QUEUE", 0},
			{1, -1, nil, 21, "NO_MESSAGE_IN_QUEUE", 0},
		} {
			high := int64(3)
			if test.queue == 1 {
				high = 0
			}
			for _, code := range []int32{protocol.ReqPullMessage, protocol.ReqLitePullMessage} {
				a := c.call(code, pullFields("G", "T", test.queue, test.offset, test.change), nil)
				requirePulled(t, a, test.code, test.remark, test.next, 0, high)
				if test.code == 0 {
					require.Len(t, records(t, a.Body), int(test.next-test.offset))
				}
			}
		}
	})
}

// remoting.md §6.5 rows 1 to 9: what is checked, in that order, before anything is looked up.
func TestAPullIsCheckedInOrder(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.putTopic("T", 2, 4, 6)
	c.putTopic("Hidden", 1, 1, 2)
	c.makeGroup("G", nil)
	c.makeGroup("Off", func(g *protocol.SubscriptionGroupConfig) { g.ConsumeEnable = false })
	check := func(t *testing.T, a *protocol.Command, code int32, remark string) {
		t.Helper()
		require.Equal(t, code, a.Code, a.Remark)
		require.Contains(t, a.Remark, remark)
		require.Zero(t, a.Ext.Len(), "error answers have no fields")
	}
	t.Run("group that is switched off", func(t *testing.T) { check(t, c.pull("Off", "Nothing", 0, 0, nil), 16, "Off") })
	t.Run("unknown topic", func(t *testing.T) { check(t, c.pull("G", "Nothing", 0, 0, nil), 17, "Nothing") })
	t.Run("topic without read permission", func(t *testing.T) { check(t, c.pull("G", "Hidden", 0, 0, nil), 16, "Hidden") })
	t.Run("queue that only the write number allows", func(t *testing.T) { check(t, c.pull("G", "T", 2, 0, nil), 29, "queueId[2]") })
	t.Run("negative queue", func(t *testing.T) { check(t, c.pull("G", "T", -1, 0, nil), 29, "queueId[-1]") })
	t.Run("bad expression", func(t *testing.T) {
		check(t, c.pull("G", "T", 0, 0, ext{"subscription": "||"}), 23, "subscription")
	})
	t.Run("expression of another type", func(t *testing.T) {
		check(t, c.pull("G", "T", 0, 0, ext{"subscription": "a > 1", "expressionType": "XPATH"}), 1, "does not support consumer to filter message by XPATH")
	})
	t.Run("group that nobody is in", func(t *testing.T) {
		check(t, c.pull("G", "T", 0, 0, ext{"sysFlag": 0}), 24, "group info not exist")
	})
	t.Run("group that may not be made", func(t *testing.T) {
		r.configure(func(c *broker.Config) { c.AutoCreateGroups = false })
		check(t, c.pull("New", "T", 0, 0, nil), 26, "New")
		check(t, c.pull("CID_RMQ_SYS_own", "Nothing", 0, 0, nil), 17, "Nothing") // groups of the system may
		r.configure(func(c *broker.Config) { c.AutoCreateGroups = true })
		check(t, c.pull("a.b", "T", 0, 0, nil), 26, "a.b")
	})
	t.Run("broker that may not be read", func(t *testing.T) {
		r.configure(func(c *broker.Config) { c.Permission = 2 })
		check(t, c.pull("New", "Nothing", 0, 0, nil), 16, "broker-a")
		r.configure(func(c *broker.Config) { c.Permission = 6 })
	})
}

// remoting.md §6.1: a pull makes the group that it is for.
func TestAPullMakesItsGroup(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		c.mustSend("T", 0, "x", "")
		require.Equal(t, int32(0), c.pull("New", "T", 0, 0, nil).Code)
		g, ok := r.b.Group("New")
		require.True(t, ok)
		require.Equal(t, int32(16), g.RetryMaxTimes)
	})
}

// remoting.md §6.5: limits of an answer; one message at least.
func TestAnAnswerHasLimits(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.MaxPullMessages, c.MaxPullBytes = 40, 4000 }})
	c := r.client(t)
	c.makeTopic("T", 2)
	big := strings.Repeat("x", 1500)
	for range 5 {
		c.mustSend("T", 0, big, "")
	}
	for range 60 {
		c.mustSend("T", 1, "", "")
	}
	a := c.pull("G", "T", 0, 0, nil)
	requirePulled(t, a, 0, "FOUND", 2, 0, 5)
	require.Len(t, records(t, a.Body), 2)
	a = c.pull("G", "T", 0, 0, ext{"maxMsgBytes": 1})
	require.Len(t, records(t, a.Body), 2, "the client's own limit of bytes does not count for pulls")
	r.configure(func(c *broker.Config) { c.MaxPullBytes = 100 })
	a = c.pull("G", "T", 0, 3, nil)
	requirePulled(t, a, 0, "FOUND", 4, 0, 5)
	r.configure(func(c *broker.Config) { c.MaxPullBytes = 1 << 20 })
	require.Len(t, records(t, c.pull("G", "T", 1, 0, ext{"maxMsgNums": 1000}).Body), 40)
}

// remoting.md §6.5: when nothing matches, the scan is bounded and goes on where it ended.
func TestAScanThatFindsNothingIsBounded(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.MaxScan = 100 }})
	c := r.client(t)
	c.makeTopic("T", 1)
	for i := range 250 {
		tag := "Other"
		if i == 240 {
			tag = "TagA"
		}
		c.mustSend("T", 0, fmt.Sprint(i), props("TAGS", tag))
	}
	only := ext{"subscription": "TagA"}
	requirePulled(t, c.pull("G", "T", 0, 0, only), 20, "NO_MATCHED_MESSAGE", 100, 0, 250)
	requirePulled(t, c.pull("G", "T", 0, 100, only), 20, "NO_MATCHED_MESSAGE", 200, 0, 250)
	a := c.pull("G", "T", 0, 200, only)
	requirePulled(t, a, 0, "FOUND", 250, 0, 250)
	require.Equal(t, []string{"240"}, bodies(records(t, a.Body)))
	more := ext{"subscription": "TagA", "maxMsgNums": 240}
	requirePulled(t, c.pull("G", "T", 0, 0, more), 20, "NO_MATCHED_MESSAGE", 240, 0, 250)
}

// semantics §13: filters by tag, exactly: a hash that two tags share lets nothing wrong through.
func TestAPullIsFilteredByTag(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	for _, tag := range []string{"Aa", "BB", "", "标签", "c", "Aa"} {
		c.mustSend("T", 0, "["+tag+"]", props("TAGS", tag))
	}
	for _, test := range []struct {
		expression string
		want       []string
	}{
		{"*", []string{"[Aa]", "[BB]", "[]", "[标签]", "[c]", "[Aa]"}},
		{"", []string{"[Aa]", "[BB]", "[]", "[标签]", "[c]", "[Aa]"}},
		{"Aa", []string{"[Aa]", "[Aa]"}}, // BB has the same hash
		{" BB || c||", []string{"[BB]", "[c]"}},
		{"标签", []string{"[标签]"}},
	} {
		a := c.pull("G", "T", 0, 0, ext{"subscription": test.expression})
		requirePulled(t, a, 0, "FOUND", 6, 0, 6)
		require.Equal(t, test.want, bodies(records(t, a.Body)), test.expression)
	}
	requirePulled(t, c.pull("G", "T", 0, 4, ext{"subscription": "BB"}), 20, "NO_MATCHED_MESSAGE", 6, 0, 6)
}

// remoting.md §6.5 rows 10 to 14: a pull that brings no subscription is filtered by the client's heartbeat.
func TestAPullWithoutSubscriptionIsFilteredByTheHeartbeat(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		c.makeTopic("Other", 1)
		c.mustSend("T", 0, "a", props("TAGS", "TagA"))
		c.mustSend("T", 0, "b", props("TAGS", "TagB"))
		bare := ext{"sysFlag": 0, "subVersion": 5}
		require.Equal(t, int32(24), c.pull("G", "T", 0, 0, bare).Code, "the group was made, but nobody is in it")
		c.beat(heartbeat("c1", consumer("G", subscription("T", "TagB", 5))))
		require.Equal(t, []string{"b"}, bodies(records(t, c.pull("G", "T", 0, 0, bare).Body)))
		a := c.pull("G", "Other", 0, 0, bare)
		require.Equal(t, int32(24), a.Code)
		require.Contains(t, a.Remark, "subscription not exist")

		// A member that has not said who it is is served by what another one subscribes.
		stranger := r.client(t)
		require.Equal(t, []string{"b"}, bodies(records(t, stranger.pull("G", "T", 0, 0, bare).Body)))
	})
}

// quirk 1: a pull that overtakes the heartbeat with its version is served.
func TestAPullThatOvertakesItsHeartbeatIsServed(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.mustSend("T", 0, "a", props("TAGS", "TagA"))
	c.mustSend("T", 0, "b", props("TAGS", "TagB"))
	c.beat(heartbeat("c1", consumer("G", subscription("T", "TagA", 5))))
	a := c.pull("G", "T", 0, 0, ext{"sysFlag": 0, "subVersion": 6})
	require.Equal(t, int32(0), a.Code, a.Remark)
	require.Equal(t, []string{"a", "b"}, bodies(records(t, a.Body)), "what the new subscription wants is not known yet: the client filters")
	a = c.pull("G", "T", 0, 0, ext{"sysFlag": 0, "subVersion": 4})
	require.Equal(t, []string{"a"}, bodies(records(t, a.Body)))
}

// C040: members of a group with different subscriptions do not spoil each other's.
func TestEachMemberIsServedByItsOwnSubscription(t *testing.T) {
	r := start(t, rigOptions{})
	one, two := r.client(t), r.client(t)
	one.makeTopic("T1", 1)
	one.makeTopic("T2", 1)
	for _, topic := range []string{"T1", "T2"} {
		one.mustSend(topic, 0, "a", props("TAGS", "a"))
		one.mustSend(topic, 0, "b", props("TAGS", "b"))
	}
	one.beat(heartbeat("c1", consumer("G", subscription("T1", "a", 1))))
	two.beat(heartbeat("c2", consumer("G", subscription("T1", "*", 2), subscription("T2", "b", 2))))
	one.beat(heartbeat("c1", consumer("G", subscription("T1", "a", 1))))
	pull := func(c *client, topic string) []string {
		return bodies(records(t, c.pull("G", topic, 0, 0, ext{"sysFlag": 0, "subVersion": 1}).Body))
	}
	require.Equal(t, []string{"a"}, pull(one, "T1"))
	require.Equal(t, []string{"a", "b"}, pull(two, "T1"))
	require.Equal(t, []string{"b"}, pull(two, "T2"))
}

// remoting.md §6.5 row 11: a group that may not broadcast.
func TestABroadcastGroupThatMayNotIsRefused(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.makeGroup("G", func(g *protocol.SubscriptionGroupConfig) { g.ConsumeBroadcastEnable = false })
	d := consumer("G", subscription("T", "*", 1))
	d.MessageModel = protocol.Broadcasting
	c.beat(heartbeat("c1", d))
	a := c.pull("G", "T", 0, 0, ext{"sysFlag": 0, "subVersion": 1})
	require.Equal(t, int32(16), a.Code)
	require.Contains(t, a.Remark, "broadcast")
	c.makeGroup("G", nil)
	require.Equal(t, int32(19), c.pull("G", "T", 0, 0, ext{"sysFlag": 0, "subVersion": 1}).Code)
}

// remoting.md §6.5, Commit: with the first look, whatever that finds.
func TestAPullCommitsWhatWasConsumed(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, _ *rig, c *client) {
		c.makeTopic("T", 2)
		c.makeGroup("G", nil)
		for range 5 {
			c.mustSend("T", 0, "x", "")
		}
		commit := func(at, offset int64) *protocol.Command {
			return c.pull("G", "T", 0, offset, ext{"sysFlag": flagSubscription | flagCommit, "commitOffset": at})
		}
		commit(2, 2)
		c.requireCommitted("G", "T", 0, 2)
		require.Equal(t, int32(19), commit(3, 5).Code)
		c.requireCommitted("G", "T", 0, 3)
		require.Equal(t, int32(21), commit(4, 99).Code)
		c.requireCommitted("G", "T", 0, 4)
		commit(1, 0)
		c.requireCommitted("G", "T", 0, 4)
		commit(-1, 0)
		c.requireCommitted("G", "T", 0, 4)
		c.pull("G", "T", 0, 0, ext{"commitOffset": 5})
		c.requireCommitted("G", "T", 0, 4)
	})
}

// C206, C221: progress never gets beyond the end of a queue, where new messages would be passed over.
func TestACommitBeyondTheEndCountsAsTheEnd(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.makeGroup("G", nil)
	c.mustSend("T", 0, "x", "")
	c.pull("G", "T", 0, 1, ext{"sysFlag": flagSubscription | flagCommit, "commitOffset": 1000})
	c.requireCommitted("G", "T", 0, 1)
	require.Equal(t, int32(0), c.commit("G", "T", 0, 1<<62).Code)
	c.requireCommitted("G", "T", 0, 1)
}

// remoting.md §4.1, §6.13: code 33 gives the stored bytes, as a pull does.
func TestAMessageIsFoundByItsPosition(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, _ *rig, c *client) {
		c.makeTopic("T", 1)
		for i := range 3 {
			c.mustSend("T", 0, strings.Repeat(fmt.Sprint(i), 100), props("TAGS", "TagA"))
		}
		for _, rec := range c.read("T", 0, 0) {
			a := c.ok(protocol.ReqViewMessageById, ext{"topic": "T", "offset": int64(rec.Position)}, nil)
			require.Equal(t, message.AppendRecord(nil, &rec), a.Body)
			for _, off := range []int64{1, -1, 20} {
				a := c.call(protocol.ReqViewMessageById, ext{"topic": "T", "offset": int64(rec.Position) + off}, nil)
				require.Equal(t, int32(1), a.Code)
				require.Contains(t, a.Remark, "can not find message by the offset")
			}
		}
		for _, off := range []int64{-1, 1 << 62, -1 << 63} {
			require.Equal(t, int32(1), c.call(protocol.ReqViewMessageById, ext{"offset": off}, nil).Code)
		}
	})
}

// remoting.md §1.6: a one-way pull is not answered.
func TestAOnewayPullIsNotAnswered(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.mustSend("T", 0, "x", "")
	c.makeGroup("G", nil)
	c.oneway(protocol.ReqPullMessage, pullFields("G", "T", 0, 0, ext{"sysFlag": flagSubscription | flagCommit, "commitOffset": 1}), nil)
	c.oneway(protocol.ReqPullMessage, pullFields("G", "T", 0, 1, ext{"sysFlag": flagSubscription | flagSuspend}), nil)
	c.oneway(protocol.ReqPullMessage, pullFields("G", "Nothing", 0, 1, nil), nil)
	eventually(t, func() bool { return c.committed("G", "T", 0).Code == 0 }, "it commits all the same")
	require.NoError(t, c.Err())
	require.Zero(t, r.b.Info().Waiting)
}
