package remotingdoor_test

import (
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

// quickLevels makes every delay level short.
func quickLevels(c *broker.Config) {
	for i := range c.DelayLevels {
		c.DelayLevels[i] = time.Duration(i+1) * 10 * time.Millisecond
	}
}

func backFields(group string, at message.Position, level int, change ext) ext {
	f := ext{"group": group, "offset": int64(at), "delayLevel": level, "originMsgId": "FROMCLIENT", "originTopic": "T", "unitMode": false}
	maps.Copy(f, change)
	return f
}

func (c *client) sendBack(group string, at message.Position, level int, change ext) *protocol.Command {
	c.t.Helper()
	return c.call(protocol.ReqConsumerSendMsgBack, backFields(group, at, level, change), nil)
}

// await waits until there is a message at an offset, and returns it.
func (c *client) await(topic string, queue int, offset int64) message.Record {
	c.t.Helper()
	var rs []message.Record
	eventually(c.t, func() bool {
		a := c.pull("READER", topic, queue, offset, nil)
		if a.Code != 0 {
			return false
		}
		rs = records(c.t, a.Body)
		return true
	}, "a message in "+topic)
	return rs[0]
}

// remoting.md §6.9; the properties are those of vector java-retry/18.
func TestAMessageThatIsSentBackComesAgain(t *testing.T) {
	everyWay(t, rigOptions{config: quickLevels}, func(t *testing.T, _ *rig, c *client) {
		c.makeTopic("T", 2)
		c.join("c1", "G", "T")
		c.ok(protocol.ReqSendMessage, sendFields("T", 1, props("KEYS", "rk", "UNIQ_KEY", "U", "WAIT", "true", "TAGS", "TagA", "own", "v"), ext{"flag": 3, "sysFlag": 0x301}), []byte("again"))
		first := c.await("T", 1, 0)
		require.Equal(t, int32(0), c.sendBack("G", first.Position, 0, nil).Code)

		again := c.await("%RETRY%G", 0, 0)
		require.Equal(t, "again", string(again.Body))
		require.Equal(t, int32(1), again.ReconsumeTimes)
		require.Equal(t, int32(3), again.Flag)
		require.Equal(t, int32(0x301), again.SysFlag)
		require.Equal(t, first.BornTime, again.BornTime)
		require.Equal(t, first.BornHost, again.BornHost)
		id := string(message.AppendOffsetID(nil, storeHost, first.Position))
		want := map[string]string{
			"CLUSTER": "DefaultCluster", "DELAY": "3", "KEYS": "rk", "MSG_REGION": "DefaultRegion", "ORIGIN_MESSAGE_ID": id, "REAL_QID": "0",
			"REAL_TOPIC": "%RETRY%G", "RETRY_TOPIC": "T", "TAGS": "TagA", "TRACE_ON": "true", "UNIQ_KEY": "U", "WAIT": "false", "own": "v",
		}
		require.Equal(t, want, properties(again))

		require.Equal(t, int32(0), c.sendBack("G", again.Position, 0, nil).Code)
		third := c.await("%RETRY%G", 0, 1)
		require.Equal(t, int32(2), third.ReconsumeTimes)
		want["DELAY"] = "4" // 3 + the attempts before
		require.Equal(t, want, properties(third), "topic and id are those of the first attempt")
	})
}

// remoting.md §6.9, semantics §16.2: levels.
func TestASendBackSaysWhenOrNever(t *testing.T) {
	r := start(t, rigOptions{config: quickLevels})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.makeGroup("G", nil)
	c.mustSend("T", 0, "x", "")
	first := c.await("T", 0, 0)
	for i, test := range []struct {
		level int
		want  string
	}{{1, "1"}, {18, "18"}, {99, "99"}} {
		require.Equal(t, int32(0), c.sendBack("G", first.Position, test.level, nil).Code)
		require.Equal(t, test.want, properties(c.await("%RETRY%G", 0, int64(i)))["DELAY"])
	}
	require.Equal(t, int32(0), c.sendBack("G", first.Position, -1, nil).Code)
	dead := c.await("%DLQ%G", 0, 0)
	require.Equal(t, "x", string(dead.Body), "never: it goes to the dead letters")
	require.Equal(t, "GIVEN_UP", properties(dead)["DLQ_REASON"])
}

// remoting.md §6.9, quirk 11, C063, C069: the limit of attempts, and dead letters.
func TestTooManyAttemptsMakeADeadLetter(t *testing.T) {
	for _, test := range []struct {
		name    string
		tried   int
		version int32
		fields  ext
		dead    bool
	}{
		{"two below the group's limit", 1, 513, nil, false},
		{"one below the group's limit", 2, 513, nil, false},
		{"the group's limit", 3, 513, nil, true},
		{"the client's own limit", 1, 513, ext{"maxReconsumeTimes": 1}, true},
		{"below the client's own limit", 3, 513, ext{"maxReconsumeTimes": 4}, false},
		{"the client wants no retry", 0, 513, ext{"maxReconsumeTimes": 0}, true},
		{"the client has no opinion", 2, 513, ext{"maxReconsumeTimes": -1}, false},
		{"the client has no opinion, too many", 3, 513, ext{"maxReconsumeTimes": -1}, true},
		{"a client too old to have one", 2, 120, ext{"maxReconsumeTimes": 0}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := start(t, rigOptions{config: quickLevels})
			c := r.client(t)
			c.makeTopic("T", 1)
			c.makeGroup("G", func(g *protocol.SubscriptionGroupConfig) { g.RetryMaxTimes = 3 })
			timed := props("KEYS", "k", "TIMER_DELAY_SEC", "3600", "TIMER_OUT_MS", "1", "DELAY", "0")
			c.ok(protocol.ReqSendMessage, sendFields("T", 0, timed, ext{"reconsumeTimes": test.tried}), []byte("x"))
			first := c.await("T", 0, 0)
			_, ok := r.b.Topic("%DLQ%G")
			require.False(t, ok)
			c.version = test.version
			require.Equal(t, int32(0), c.sendBack("G", first.Position, 0, test.fields).Code)
			before := time.Now().UnixMilli()
			if !test.dead {
				again := c.await("%RETRY%G", 0, 0)
				require.Equal(t, int32(test.tried+1), again.ReconsumeTimes)
				_, last := properties(again)["LAST_ATTEMPT"]
				require.Equal(t, test.tried != 1, last, "the last attempt is marked")
				_, ok := r.b.Topic("%DLQ%G")
				require.False(t, ok, "made when there is a dead letter")
				return
			}
			dead := c.await("%DLQ%G", 0, 0)
			require.Equal(t, int32(test.tried+1), dead.ReconsumeTimes)
			p := properties(dead)
			require.Equal(t, "T", p["RETRY_TOPIC"])
			require.Equal(t, "0", p["DELAY"])
			require.Equal(t, string(message.AppendOffsetID(nil, storeHost, first.Position)), p["ORIGIN_MESSAGE_ID"])
			require.NotContains(t, p, "DLQ_ORIGIN_TOPIC")
			require.NotContains(t, p, "LAST_ATTEMPT")
			require.Equal(t, "MAX_ATTEMPTS", p["DLQ_REASON"])
			require.Equal(t, fmt.Sprint(test.tried+1), p["DLQ_ATTEMPTS"])
			require.Contains(t, p["DLQ_CLIENT"], "127.0.0.1:")
			when, err := strconv.ParseInt(p["DLQ_TIME"], 10, 64)
			require.NoError(t, err)
			require.InDelta(t, before, when, 60_000)
			topic, _ := r.b.Topic("%DLQ%G")
			require.Equal(t, int32(6), topic.Perm, "dead letters can be read (C069)")
			require.Equal(t, int32(1), topic.ReadQueues)
		})
	}
}

// remoting.md §6.9: checks, in this order.
func TestASendBackIsChecked(t *testing.T) {
	r := start(t, rigOptions{config: quickLevels})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.mustSend("T", 0, "x", "")
	at := c.await("T", 0, 0).Position
	c.makeGroup("Closed", nil)
	c.putTopic("%RETRY%Closed", 1, 1, 4)
	c.makeGroup("None", func(g *protocol.SubscriptionGroupConfig) { g.RetryQueueNums = 0 })

	a := c.sendBack("G", at+1, 0, nil)
	require.Equal(t, int32(1), a.Code)
	require.Contains(t, a.Remark, "look message by offset failed")
	require.Equal(t, int32(1), c.sendBack("G", 1<<60, 0, nil).Code)
	require.Equal(t, int32(16), c.sendBack("Closed", at+1, 0, nil).Code)
	require.Equal(t, int32(0), c.sendBack("None", at+1, 0, nil).Code, "nothing is done")
	require.Equal(t, int32(1), c.call(protocol.ReqConsumerSendMsgBack, ext{"group": "G"}, nil).Code)
	r.configure(func(c *broker.Config) { c.Permission = 4 })
	require.Equal(t, int32(16), c.sendBack("None", at, 0, nil).Code)
	r.configure(func(c *broker.Config) { c.AutoCreateGroups = false })
	require.Equal(t, int32(26), c.sendBack("Unknown", at, 0, nil).Code)
	r.configure(func(c *broker.Config) { c.Permission = 6 })
	c.oneway(protocol.ReqConsumerSendMsgBack, backFields("G", at, 1, nil), nil)
	c.await("%RETRY%G", 0, 0)
	require.NoError(t, c.Err())
}

// C067: every copy can be consumed, whatever group and retry topic say.
func TestRetryCopiesGoWhereTheyAreConsumed(t *testing.T) {
	for _, test := range []struct{ group, topic, most int }{{3, 3, 3}, {4, 1, 1}, {1, 4, 1}} {
		r := start(t, rigOptions{config: quickLevels})
		c := r.client(t)
		c.makeTopic("T", 1)
		c.makeGroup("G", func(g *protocol.SubscriptionGroupConfig) { g.RetryQueueNums = int32(test.group) })
		c.makeTopic("%RETRY%G", test.topic)
		c.mustSend("T", 0, "x", "")
		at := c.await("T", 0, 0).Position
		const copies = 30
		for range copies {
			require.Equal(t, int32(0), c.sendBack("G", at, 1, nil).Code)
		}
		eventually(t, func() bool {
			n := 0
			for q := range test.most {
				n += len(c.read("%RETRY%G", q, 0))
			}
			return n == copies
		}, fmt.Sprint(test))
	}
}

// remoting.md §6.2 rows 6, 9, 10; C062, C068: what a consumer sends to its retry topic itself.
func TestASendToARetryTopicIsCounted(t *testing.T) {
	for _, test := range []struct {
		name    string
		version int32
		fields  ext
		dead    bool
	}{
		{"neither count nor limit", 513, nil, false},
		{"the group's limit", 513, ext{"reconsumeTimes": 16}, false},
		{"beyond the group's limit", 513, ext{"reconsumeTimes": 17}, true},
		{"the client's limit", 513, ext{"reconsumeTimes": 2, "maxReconsumeTimes": 2}, false},
		{"beyond the client's limit", 513, ext{"reconsumeTimes": 3, "maxReconsumeTimes": 2}, true},
		{"limit of a client too old to have one", 120, ext{"reconsumeTimes": 3, "maxReconsumeTimes": 2}, false},
		{"no limit", 513, ext{"reconsumeTimes": 1000, "maxReconsumeTimes": 1<<31 - 1}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := start(t, rigOptions{config: quickLevels})
			c := r.client(t)
			c.version = test.version
			for i := range int64(2) { // the first makes what is missing
				f := sendFields("%RETRY%G", 0, props("RETRY_TOPIC", "T", "DELAY", "1", "TAGS", "TagA"), test.fields)
				a := c.ok(protocol.ReqSendMessage, f, []byte("x"))
				require.Equal(t, "0", value(a, "queueId"))
				_, ok := r.b.Group("G")
				require.True(t, ok)
				_, ok = r.b.Topic("%DLQ%G")
				require.Equal(t, test.dead, ok)
				if !test.dead {
					require.Equal(t, "1", properties(c.await("%RETRY%G", 0, i))["DELAY"])
					continue
				}
				dead := c.await("%DLQ%G", 0, i)
				p := properties(dead)
				require.Equal(t, "-1", p["DELAY"])
				require.Equal(t, "T", p["RETRY_TOPIC"])
				require.Equal(t, "TagA", p["TAGS"])
				require.Equal(t, "MAX_ATTEMPTS", p["DLQ_REASON"])
				require.Equal(t, fmt.Sprint(test.fields["reconsumeTimes"]), p["DLQ_ATTEMPTS"])
				require.Contains(t, p["DLQ_CLIENT"], "127.0.0.1:")
			}
		})
	}
}

// remoting.md §6.2 row 10: a group that consumes in order sends only what it gives up.
func TestASendToTheRetryTopicOfAnOrderedGroupIsADeadLetter(t *testing.T) {
	r := start(t, rigOptions{config: quickLevels})
	c := r.client(t)
	c.makeGroup("G", nil)
	require.NotEmpty(t, c.lock("G", "c1", "T", 0))
	c.ok(protocol.ReqSendMessage, sendFields("%RETRY%G", 0, "", ext{"reconsumeTimes": 1, "maxReconsumeTimes": 100}), []byte("given up"))
	dead := c.await("%DLQ%G", 0, 0)
	require.Equal(t, "given up", string(dead.Body))
	require.Equal(t, "GIVEN_UP", properties(dead)["DLQ_REASON"])
	c.unlock("G", "c1", "T", 0)
	c.ok(protocol.ReqSendMessage, sendFields("%RETRY%G", 0, "", ext{"reconsumeTimes": 1}), []byte("again"))
	require.Equal(t, "again", string(c.await("%RETRY%G", 0, 0).Body))
}

// remoting.md §6.2 row 9: the group of a retry topic must be there, or may be made.
func TestARetryTopicNeedsItsGroup(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeGroup("G", nil)
	c.mustSend("%RETRY%G", 0, "x", "")
	c.ok(protocol.ReqDeleteSubscriptiongroup, ext{"groupName": "G"}, nil)
	c.mustSend("%RETRY%G", 0, "y", "")
	_, ok := r.b.Group("G")
	require.True(t, ok, "made again")
	c.ok(protocol.ReqDeleteSubscriptiongroup, ext{"groupName": "G"}, nil)
	r.configure(func(c *broker.Config) { c.AutoCreateGroups = false })
	require.Equal(t, int32(26), c.send("%RETRY%G", 0, "z", "").Code)
	require.Equal(t, int32(26), c.send("%RETRY%Unknown", 0, "z", "").Code)
	_, ok = r.b.Topic("%RETRY%Unknown")
	require.False(t, ok)
}

// semantics §1: dead letters can be sent to like to any topic, once they are there.
func TestDeadLetterTopicsAreNotMadeByStrangers(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	require.Equal(t, int32(0), c.send("%DLQ%G", 0, "x", "").Code, "the template makes it, as it does for any name")
}

// semantics §38: a namespace is a part of the names, all the way.
func TestNamespacesArePartsOfNames(t *testing.T) {
	everyWay(t, rigOptions{config: quickLevels}, func(t *testing.T, r *rig, c *client) {
		const topic, group = "MQ_INST_1_abc%T", "MQ_INST_1_abc%G"
		c.mustSend(topic, 0, "x", "")
		c.join("c1", group, topic)
		a := c.pull(group, topic, 0, 0, ext{"sysFlag": flagCommit, "subVersion": 1, "commitOffset": 0})
		rec := records(t, a.Body)[0]
		require.Equal(t, topic, string(rec.Topic))
		require.Equal(t, int32(0), c.sendBack(group, rec.Position, 1, nil).Code)
		again := c.await("%RETRY%"+group, 0, 0)
		require.Equal(t, topic, properties(again)["RETRY_TOPIC"])
		require.Equal(t, int32(0), c.sendBack(group, again.Position, -1, nil).Code)
		require.Equal(t, "x", string(c.await("%DLQ%"+group, 0, 0).Body))
		require.Equal(t, int32(0), c.commit(group, topic, 0, 1).Code)
		c.requireCommitted(group, topic, 0, 1)
		require.Equal(t, []string{group}, r.b.GroupsOf(topic)[:1])
	})
}
