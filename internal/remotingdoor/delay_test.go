package remotingdoor_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/shard"
)

// remoting.md §6.4; the properties are those of vector java-delay/15.
func TestAMessageIsDelayedByLevel(t *testing.T) {
	everyWay(t, rigOptions{config: quickLevels}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 2)
		sent := time.Now().UnixMilli()
		a := c.send("T", 1, "later", props("UNIQ_KEY", "U", "WAIT", "true", "DELAY", "2", "TAGS", "L1"))
		require.Equal(t, int32(0), a.Code, a.Remark)
		require.Equal(t, "1", value(a, "queueId"), "the one that was asked for")
		require.Equal(t, "0", value(a, "queueOffset"), "that of the place where it is parked")
		require.Equal(t, "U", value(a, "transactionId"))
		parked := c.read("SCHEDULE_TOPIC_XXXX", 1, 0)
		require.Len(t, parked, 1)
		require.Equal(t, "T", properties(parked[0])["REAL_TOPIC"])

		got := c.await("T", 1, 0)
		require.GreaterOrEqual(t, got.StoreTime, sent+20, "never early")
		require.Equal(t, map[string]string{
			"CLUSTER": "DefaultCluster", "DELAY": "2", "MSG_REGION": "DefaultRegion", "REAL_QID": "1", "REAL_TOPIC": "T", "TAGS": "L1",
			"TRACE_ON": "true", "UNIQ_KEY": "U", "WAIT": "true",
		}, properties(got))
		require.Equal(t, "later", string(got.Body))
		require.Equal(t, int64(1700000000000), got.BornTime)
		require.Equal(t, parked[0].BornHost, got.BornHost)
		require.NotEqual(t, parked[0].Position, got.Position)
		require.Equal(t, []string{"later"}, bodies(records(t, c.pull("G", "T", 1, 0, ext{"subscription": "L1"}).Body)), "found by its tag again")
		require.Zero(t, r.b.Info().Timers)
	})
}

// semantics §23: levels beyond the largest count as it; 0 and less are none; what is no level is refused.
func TestLevelsAreBounded(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.DelayLevels = []time.Duration{10 * time.Millisecond, 20 * time.Millisecond} }})
	c := r.client(t)
	c.makeTopic("T", 1)
	for i, level := range []string{"0", "-3"} {
		c.mustSend("T", 0, fmt.Sprint(i), props("DELAY", level))
	}
	require.Len(t, c.read("T", 0, 0), 2, "not delayed")
	c.mustSend("T", 0, "big", props("DELAY", "3"))
	require.Len(t, c.read("SCHEDULE_TOPIC_XXXX", 1, 0), 1)
	require.Equal(t, "3", properties(c.await("T", 0, 2))["DELAY"])
	for _, level := range []string{"x", "1.5", "99999999999999999999"} { // C089: never made immediate
		require.Equal(t, int32(13), c.send("T", 0, "x", props("DELAY", level)).Code)
	}
}

// remoting.md §6.4; the properties are those of vector java-delay/14.
func TestAMessageIsTimed(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 4)
		now := time.Now().UnixMilli()
		due := strconv.FormatInt(now+100, 10)
		for queue, p := range []string{
			props("TIMER_DELIVER_MS", due), props("TIMER_DELAY_MS", "100"),
			props("TIMER_DELIVER_MS", "1", "TIMER_DELAY_MS", "100"), // milliseconds beat the time
			props("TIMER_DELIVER_MS", "1", "TIMER_DELAY_MS", "1", "TIMER_DELAY_SEC", "1"),
		} {
			a := c.send("T", queue, "later", p+props("UNIQ_KEY", "U", "WAIT", "true", "TAGS", "T"))
			require.Equal(t, int32(0), a.Code, a.Remark)
			require.Equal(t, strconv.Itoa(queue), value(a, "queueId"))
			require.Equal(t, strconv.Itoa(queue), value(a, "queueOffset"), "all are parked in one queue")
		}
		require.Equal(t, int64(4), r.b.Info().Timers)
		got := c.await("T", 0, 0)
		require.GreaterOrEqual(t, got.StoreTime, now+100, "never early")
		p := properties(got)
		require.Equal(t, due, p["TIMER_OUT_MS"])
		enqueued, err := strconv.ParseInt(p["TIMER_ENQUEUE_MS"], 10, 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, enqueued, now)
		dequeued, err := strconv.ParseInt(p["TIMER_DEQUEUE_MS"], 10, 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, dequeued, now+100)
		for _, name := range []string{"TIMER_OUT_MS", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS"} {
			delete(p, name)
		}
		require.Equal(t, map[string]string{
			"CLUSTER": "DefaultCluster", "MSG_REGION": "DefaultRegion", "REAL_QID": "0", "REAL_TOPIC": "T", "TAGS": "T", "TIMER_DELIVER_MS": due,
			"TRACE_ON": "true", "UNIQ_KEY": "U", "WAIT": "true",
		}, p)
		require.GreaterOrEqual(t, c.await("T", 1, 0).StoreTime, now+100)
		require.GreaterOrEqual(t, c.await("T", 2, 0).StoreTime, now+100)
		require.GreaterOrEqual(t, c.await("T", 3, 0).StoreTime, now+1000)
		require.Zero(t, r.b.Info().Timers)
	})
}

// semantics §23 and §24: a level beats a timer, whose properties go; one that was timed before is not timed again.
func TestALevelBeatsATimer(t *testing.T) {
	r := start(t, rigOptions{config: quickLevels})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.mustSend("T", 0, "x", props("DELAY", "1", "TIMER_DELAY_SEC", "3600", "TIMER_DELAY_MS", "5", "TIMER_DELIVER_MS", "7"))
	p := properties(c.await("T", 0, 0))
	require.Equal(t, "1", p["DELAY"])
	for name := range p {
		require.False(t, strings.HasPrefix(name, "TIMER_"), name)
	}
	c.mustSend("T", 0, "y", props("TIMER_DELAY_SEC", "3600", "TIMER_OUT_MS", "7"))
	require.Len(t, c.read("T", 0, 0), 2)
}

// semantics §24; C072, C073: times that are past, too far, or no times at all.
func TestTimesHaveLimits(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.MaxTimer = 30 * 24 * time.Hour }})
	c := r.client(t)
	c.makeTopic("T", 1)
	now := time.Now().UnixMilli()
	maxSec := int64(30 * 24 * 3600)
	delivered := 0
	for _, test := range []struct {
		name, value string
		code        int32
		delayed     bool
	}{
		{"TIMER_DELAY_SEC", "0", 0, false},
		{"TIMER_DELAY_SEC", "-1", 0, false},
		{"TIMER_DELAY_SEC", strconv.FormatInt(math.MinInt64, 10), 0, false},
		{"TIMER_DELAY_SEC", strconv.FormatInt(maxSec, 10), 0, true},
		{"TIMER_DELAY_SEC", strconv.FormatInt(maxSec+1, 10), 13, false},
		{"TIMER_DELAY_SEC", strconv.FormatInt(math.MaxInt64, 10), 13, false},
		{"TIMER_DELAY_SEC", strconv.FormatInt(math.MaxInt64/1000+1, 10), 13, false},
		{"TIMER_DELAY_MS", "-5", 0, false},
		{"TIMER_DELAY_MS", strconv.FormatInt(math.MinInt64, 10), 0, false},
		{"TIMER_DELAY_MS", strconv.FormatInt(maxSec*1000, 10), 0, true},
		{"TIMER_DELAY_MS", strconv.FormatInt(maxSec*1000+1, 10), 13, false},
		{"TIMER_DELAY_MS", strconv.FormatInt(math.MaxInt64, 10), 13, false},
		{"TIMER_DELIVER_MS", "-5", 0, false},
		{"TIMER_DELIVER_MS", strconv.FormatInt(now, 10), 0, false},
		{"TIMER_DELIVER_MS", strconv.FormatInt(now+3600_000, 10), 0, true},
		{"TIMER_DELIVER_MS", strconv.FormatInt(now+maxSec*1000+60_000, 10), 13, false},
		{"TIMER_DELIVER_MS", strconv.FormatInt(math.MaxInt64, 10), 13, false},
		{"TIMER_DELAY_SEC", "soon", 13, false},
		{"TIMER_DELAY_MS", "1.5", 13, false},
		{"TIMER_DELIVER_MS", "99999999999999999999", 13, false},
	} {
		before := r.b.Info().Timers
		a := c.send("T", 0, "x", props(test.name, test.value))
		require.Equal(t, test.code, a.Code, "%s=%s: %s", test.name, test.value, a.Remark)
		require.Equal(t, "true", value(a, "TRACE_ON"))
		if test.code == 13 && test.value[0] != 's' && !strings.Contains(test.value, ".") && len(test.value) < 20 {
			require.Contains(t, a.Remark, fmt.Sprint("max delay ", maxSec*1000, "ms"), "the true limit is named")
		}
		if test.code == 0 && !test.delayed {
			delivered++
		}
		pending := r.b.Info().Timers - before
		require.Equal(t, test.delayed, pending == 1, "%s=%s", test.name, test.value)
		require.Len(t, c.read("T", 0, 0), delivered)
	}
}

// architecture §3, C088, C216: delays are in the log, so they outlive restarts, and each ends once.
func TestDelaysOutliveARestart(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	now := time.Now()
	for i := range 40 {
		due := now.Add(time.Duration(100+i*20) * time.Millisecond)
		c.mustSend("T", 0, fmt.Sprint(i), props("TIMER_DELIVER_MS", fmt.Sprint(due.UnixMilli())))
	}
	for range 3 {
		c.await("T", 0, int64(len(c.read("T", 0, 0))))
		r.restart()
		c = r.client(t)
	}
	c.await("T", 0, 39)
	eventually(t, func() bool { return r.b.Info().Timers == 0 }, "none is pending")
	r.restart()
	c = r.client(t)
	rs := records(t, c.pull("G", "T", 0, 0, ext{"maxMsgNums": 100}).Body)
	require.Len(t, rs, 40, "each once")
	for i, rec := range rs {
		require.Equal(t, fmt.Sprint(i), string(rec.Body), "in the order of their times")
	}
}

// C077, C081 in small: many that are due at once, of any size.
func TestManyThatAreDueAtOnceAreDelivered(t *testing.T) {
	r := start(t, rigOptions{shard: func(o *shard.Options) { o.RingBytes, o.SegmentBytes = 4<<20, 8<<20 }})
	c := r.client(t)
	c.makeTopic("T", 1)
	due := fmt.Sprint(time.Now().Add(time.Second).UnixMilli())
	var members []<-chan *protocol.Command
	for range 600 {
		members = append(members, c.later(protocol.ReqSendMessage, sendFields("T", 0, props("TIMER_DELIVER_MS", due), nil), []byte("small")))
	}
	for range 10 { // together more than an entry of the log may have
		members = append(members, c.later(protocol.ReqSendMessage, sendFields("T", 0, props("TIMER_DELIVER_MS", due), nil), make([]byte, 200<<10)))
	}
	for _, m := range members {
		require.Equal(t, int32(0), wait(t, m).Code)
	}
	c.await("T", 0, 609)
	eventually(t, func() bool { return r.b.Info().Timers == 0 }, "none is pending")
	require.Equal(t, int64(610), number(t, c.ok(protocol.ReqGetMaxOffset, ext{"topic": "T", "queueId": 0}, nil), "offset"))
}

// C168: a topic that shrinks while messages are delayed loses none of them; one that is gone takes them along.
func TestATopicMayChangeWhileMessagesAreDelayed(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 8)
	c.makeTopic("Gone", 1)
	due := props("TIMER_DELAY_MS", "150")
	require.Equal(t, int32(0), c.send("Gone", 0, "gone", due).Code)
	require.Equal(t, int32(0), c.send("T", 7, "x", due).Code)
	c.makeTopic("T", 2)
	c.ok(protocol.ReqDeleteTopicInBroker, ext{"topic": "Gone"}, nil)
	require.Equal(t, "x", string(c.await("T", 1, 0).Body), "queue 7 of 2 is queue 1")
	eventually(t, func() bool { return r.b.Info().Timers == 0 }, "none is pending")
	_, ok := r.b.Topic("Gone")
	require.False(t, ok)
}

// A delivered message wakes who waits for it.
func TestADelayedMessageWakesTheWaitingPull(t *testing.T) {
	everyWay(t, rigOptions{config: quickLevels}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		c.makeGroup("G", nil)
		waits := c.pullLater("G", "T", 0, 0, nil)
		r.untilWaiting(1)
		r.client(t).mustSend("T", 0, "later", props("DELAY", "3"))
		a := wait(t, waits)
		require.Equal(t, []string{"later"}, bodies(records(t, a.Body)))
	})
}

// remoting.md §6.2: a batch is not delayed (clients refuse to make such).
func TestMembersOfABatchAreNotDelayed(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.ok(protocol.ReqSendBatchMessage, batchFields("T", 0, props("DELAY", "3")), batch(batchMember{0, "a", props("DELAY", "3")}))
	require.Len(t, c.read("T", 0, 0), 1)
}
