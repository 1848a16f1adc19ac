package remotingdoor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/shard"
)

// coldIndex keeps next to nothing of the queue index in memory.
func coldIndex(o *broker.Options) {
	o.IndexMemory = 1
	o.Shard.CheckpointBytes = 20_000
}

// untilCold waits until a pull of a queue's beginning has to read the disk.
func (r *rig) untilCold(c *client, topic string) {
	r.t.Helper()
	eventually(r.t, func() bool {
		r.b.Shard().CheckpointNow()
		before := r.b.Stats.ColdPulls.Load()
		c.pull("READER", topic, 0, 0, nil)
		return r.b.Stats.ColdPulls.Load() > before
	}, "the index has left the memory")
}

// remoting.md §6.5: what is not in memory is answered like what is.
func TestAColdPullIsAnsweredLikeAHotOne(t *testing.T) {
	everyWay(t, rigOptions{broker: coldIndex, config: func(c *broker.Config) { c.MaxScan = 100 }}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		const n = 1000
		for i := range n / 10 {
			var members []batchMember
			for k := range 10 {
				tag := "Odd"
				if k%2 == 0 {
					tag = "Even"
				}
				members = append(members, batchMember{0, fmt.Sprint(10*i + k), props("TAGS", tag)})
			}
			c.ok(protocol.ReqSendBatchMessage, batchFields("T", 0, ""), batch(members...))
		}
		r.untilCold(c, "T")
		read := func(subscription string, each int) (got []string) {
			for at := int64(0); at < n; {
				a := c.pull("G", "T", 0, at, ext{"subscription": subscription, "maxMsgNums": each})
				require.Contains(t, []int32{0, 20}, a.Code, a.Remark)
				next := number(t, a, "nextBeginOffset")
				require.Greater(t, next, at)
				require.Equal(t, "0", value(a, "minOffset"))
				require.Equal(t, fmt.Sprint(n), value(a, "maxOffset"))
				require.Equal(t, "0", value(a, "suggestWhichBrokerId"))
				if a.Code == 0 {
					rs := records(t, a.Body)
					require.LessOrEqual(t, len(rs), each)
					got = append(got, bodies(rs)...)
				}
				at = next
			}
			return got
		}
		all, even := make([]string, n), []string(nil)
		for i := range all {
			all[i] = fmt.Sprint(i)
			if i%2 == 0 {
				even = append(even, all[i])
			}
		}
		for _, each := range []int{1 << 10, 32, 7} {
			require.Equal(t, all, read("*", each))
			require.Equal(t, even, read("Even", each))
		}
		require.Empty(t, read("Nothing", 32))
		requirePulled(t, c.pull("G", "T", 0, 0, ext{"subscription": "Nothing"}), 20, "NO_MATCHED_MESSAGE", 100, 0, n)
		require.Positive(t, r.b.Stats.ColdPulls.Load())

		require.Equal(t, "0", value(c.ok(protocol.ReqSearchOffsetByTimestamp, ext{"topic": "T", "queueId": 0, "timestamp": 1}, nil), "offset"))
		require.NotEqual(t, "-1", value(c.ok(protocol.ReqGetEarliestMsgStoretime, ext{"topic": "T", "queueId": 0}, nil), "timestamp"))
		a := c.call(protocol.ReqQueryConsumerOffset, ext{"consumerGroup": "New", "topic": "T", "queueId": 0}, nil)
		require.Equal(t, "0", value(a, "offset"))
		require.Equal(t, int32(0), c.commit("G", "T", 0, 500).Code)
		require.Equal(t, int64(500), number(t, c.committed("G", "T", 0), "offset"))
		stats := parse[protocol.ConsumeStats](t, c.call(protocol.ReqGetConsumeStats, ext{"consumerGroup": "G", "topic": "T"}, nil))
		require.Positive(t, stats.OffsetTable[queueOf("T", 0)].LastTimestamp)
	})
}

// architecture §7: cold reads are limited, and answered all the same.
func TestManyColdPullsAreAnswered(t *testing.T) {
	r := start(t, rigOptions{broker: coldIndex, config: func(c *broker.Config) { c.ColdReads = 1 }})
	c := r.client(t)
	c.makeTopic("T", 1)
	for range 200 {
		c.mustSend("T", 0, strings.Repeat("x", 300), "")
	}
	r.untilCold(c, "T")
	var answers []<-chan *protocol.Command
	for i := range 100 {
		answers = append(answers, c.later(protocol.ReqPullMessage, pullFields("READER", "T", 0, int64(i), nil), nil))
	}
	for i, a := range answers {
		got := wait(t, a)
		require.Equal(t, int32(0), got.Code, got.Remark)
		require.Equal(t, int64(i), int64(records(t, got.Body)[0].QueueOffset))
	}
}

// semantics §9.2, §10; C153, C154, C142: retention takes the oldest segments; readers are told where to go on.
func TestRetentionMovesTheStartOfQueues(t *testing.T) {
	const segment = 128 << 10
	r := start(t, rigOptions{
		broker: coldIndex,
		shard:  func(o *shard.Options) { o.SegmentBytes, o.RingBytes, o.CheckpointBytes = segment, 1<<20, 20_000 },
		config: func(c *broker.Config) { c.RetentionBytes, c.RetentionPeriod = 3*segment, 10*time.Millisecond },
	})
	c := r.client(t)
	c.makeTopic("T", 2)
	c.makeTopic("Old", 1)
	c.mustSend("Old", 0, "only", "")
	require.Equal(t, int32(0), c.commit("Late", "T", 0, 0).Code)
	first := c.read("Old", 0, 0)[0].Position
	body := strings.Repeat("x", 2000)
	for range 600 {
		c.mustSend("T", 0, body, "")
	}
	low := func(topic string, queue int) int64 {
		return number(t, c.ok(protocol.ReqGetMinOffset, ext{"topic": topic, "queueId": queue}, nil), "offset")
	}
	eventually(t, func() bool { return low("T", 0) > 300 && low("Old", 0) == 1 }, "the oldest segments are given up")
	eventually(t, func() bool {
		r.b.Shard().CheckpointNow()
		return r.b.Shard().Log().Start() > 300*2000
	}, "and gone")
	at := low("T", 0)
	requirePulled(t, c.pull("Late", "T", 0, 0, nil), 21, "OFFSET_TOO_SMALL", at, at, 600)
	requirePulled(t, c.pull("Late", "Old", 0, 0, nil), 21, "OFFSET_TOO_SMALL", 1, 1, 1)
	requirePulled(t, c.pull("Late", "Old", 0, 1, nil), 19, "OFFSET_OVERFLOW_ONE", 1, 1, 1)
	got := 0
	for next := at; next < 600; {
		a := c.pull("Late", "T", 0, next, nil)
		require.Equal(t, int32(0), a.Code, a.Remark)
		got += len(records(t, a.Body))
		next = number(t, a, "nextBeginOffset")
	}
	require.Equal(t, 600-int(at), got, "all that is left is there")
	a := c.call(protocol.ReqViewMessageById, ext{"offset": int64(first)}, nil)
	require.Equal(t, int32(1), a.Code)
	require.Equal(t, int32(1), c.sendBack("Late", first, 0, nil).Code)

	search := func(topic string, when int64) int64 {
		return number(t, c.ok(protocol.ReqSearchOffsetByTimestamp, ext{"topic": topic, "queueId": 0, "timestamp": when}, nil), "offset")
	}
	require.Equal(t, low("T", 0), search("T", 1), "the first that can be read")
	c.makeGroup("G", nil)
	body1 := parse[protocol.ResetOffsetBody](t, c.call(protocol.ReqInvokeBrokerToResetOffset, resetFields("G", "Old", -1, -1, 1), nil))
	require.Equal(t, int64(1), body1.OffsetTable[queueOf("Old", 0)], "never before the smallest (C142)")
	body1 = parse[protocol.ResetOffsetBody](t, c.call(protocol.ReqInvokeBrokerToResetOffset, resetFields("G", "T", 0, -1, 1), nil))
	require.Equal(t, low("T", 0), body1.OffsetTable[queueOf("T", 0)])
	require.Equal(t, int32(22), c.call(protocol.ReqQueryConsumerOffset, ext{"consumerGroup": "New", "topic": "T", "queueId": 0}, nil).Code, "the start is gone, so it is not young")

	at = low("T", 0)
	r.restart()
	c = r.client(t)
	eventually(t, func() bool { return low("T", 0) >= at && low("Old", 0) == 1 }, "kept over a restart")
	require.Equal(t, int64(1), c.mustSend("Old", 0, "next", ""), "offsets go on")
}

// A message that waits for its time keeps its segment, and is delivered.
func TestRetentionWaitsForDelayedMessages(t *testing.T) {
	const segment = 128 << 10
	r := start(t, rigOptions{
		shard:  func(o *shard.Options) { o.SegmentBytes, o.RingBytes, o.CheckpointBytes = segment, 1<<20, 20_000 },
		config: func(c *broker.Config) { c.RetentionBytes, c.RetentionPeriod = segment, 10*time.Millisecond },
	})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.makeTopic("Later", 1)
	require.Equal(t, int32(0), c.send("Later", 0, "later", props("TIMER_DELAY_MS", "2500")).Code)
	body := strings.Repeat("x", 2000)
	for range 300 {
		c.mustSend("T", 0, body, "")
	}
	eventually(t, func() bool {
		return number(t, c.ok(protocol.ReqGetMinOffset, ext{"topic": "T", "queueId": 0}, nil), "offset") > 100
	}, "the oldest segments are given up")
	r.b.Shard().CheckpointNow()
	require.Equal(t, "later", string(c.await("Later", 0, 0).Body))
	eventually(t, func() bool {
		r.b.Shard().CheckpointNow()
		return r.b.Shard().Log().Start() > segment
	}, "then the segments go")
}
