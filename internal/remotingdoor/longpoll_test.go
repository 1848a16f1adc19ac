package remotingdoor_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
)

// untilWaiting waits until so many pulls are parked.
func (r *rig) untilWaiting(n int64) {
	r.t.Helper()
	eventually(r.t, func() bool { return r.b.Info().Waiting == n }, fmt.Sprint(n, " waiting pulls"))
}

func requireQuiet(t testing.TB, ch <-chan *protocol.Command) {
	t.Helper()
	select {
	case a := <-ch:
		require.FailNow(t, "answered too early", "%d %s", a.Code, a.Remark)
	default:
	}
}

// remoting.md §6.5, Hold; C043: what arrives wakes who waits for it, at once; nobody else is woken.
func TestAnArrivalWakesTheWaitingPull(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 2)
		c.makeGroup("G", nil)
		producer, bystander := r.client(t), r.client(t)
		other := bystander.pullLater("G", "T", 1, 0, nil)
		r.untilWaiting(1)
		var took []time.Duration
		for i := range int64(50) {
			waits := c.pullLater("G", "T", 0, i, nil)
			r.untilWaiting(2)
			start := time.Now()
			producer.mustSend("T", 0, fmt.Sprint(i), "")
			a := wait(t, waits)
			took = append(took, time.Since(start))
			requirePulled(t, a, 0, "FOUND", i+1, 0, i+1)
			require.Equal(t, []string{fmt.Sprint(i)}, bodies(records(t, a.Body)))
			requireQuiet(t, other)
		}
		slices.Sort(took)
		t.Logf("from send to answer: median %v, longest %v", took[len(took)/2], took[len(took)-1])
		require.Less(t, took[len(took)/2], 50*time.Millisecond, "nothing waits for a timer")
		bystander.close()
		r.untilWaiting(0)
	})
}

// C043: no arrival is missed between looking and parking.
func TestNoArrivalIsMissedWhileAPullParks(t *testing.T) {
	for _, noLoop := range []bool{false, true} {
		r := start(t, rigOptions{noLoop: noLoop})
		c, producer := r.client(t), r.client(t)
		c.makeTopic("T", 1)
		c.makeGroup("G", nil)
		for i := range int64(300) {
			waits := c.pullLater("G", "T", 0, i, nil)
			producer.oneway(protocol.ReqSendMessage, sendFields("T", 0, "", nil), []byte("x"))
			requirePulled(t, wait(t, waits), 0, "FOUND", i+1, 0, i+1)
		}
	}
}

// remoting.md §6.5: many who wait for one queue are all woken.
func TestAllWhoWaitForAQueueAreWoken(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	var waits []<-chan *protocol.Command
	for i := range 30 {
		group := fmt.Sprint("G", i)
		c.makeGroup(group, nil)
		waits = append(waits, r.client(t).pullLater(group, "T", 0, 0, nil))
	}
	r.untilWaiting(30)
	c.mustSend("T", 0, "x", "")
	for _, w := range waits {
		requirePulled(t, wait(t, w), 0, "FOUND", 1, 0, 1)
	}
	require.Zero(t, r.b.Info().Waiting)
}

// remoting.md §6.5: answered with 19 when the time is over.
func TestAWaitingPullEndsWithItsTime(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 2)
		c.mustSend("T", 0, "x", "")
		c.makeGroup("G", nil)
		short := ext{"suspendTimeoutMillis": 250}
		start := time.Now()
		one, two := c.pullLater("G", "T", 0, 1, short), c.pullLater("G", "T", 1, 0, short)
		a, b := wait(t, one), wait(t, two)
		require.GreaterOrEqual(t, time.Since(start), 250*time.Millisecond)
		requirePulled(t, a, 19, "OFFSET_OVERFLOW_ONE", 1, 0, 1)
		requirePulled(t, b, 19, "NO_MESSAGE_IN_QUEUE", 0, 0, 0)
		require.Zero(t, r.b.Info().Waiting)
	})
}

// remoting.md §6.5: only a pull that may find something later waits.
func TestOnlyAPullAtTheEndWaits(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 2)
	c.mustSend("T", 0, "x", props("TAGS", "TagA"))
	long := ext{"sysFlag": flagSubscription | flagSuspend, "suspendTimeoutMillis": 100_000}
	requirePulled(t, c.pull("G", "T", 0, 2, long), 21, "OFFSET_OVERFLOW_BADLY", 1, 0, 1)
	requirePulled(t, c.pull("G", "T", 0, -1, long), 21, "OFFSET_TOO_SMALL", 0, 0, 1)
	requirePulled(t, c.pull("G", "T", 1, 7, long), 21, "NO_MESSAGE_IN_QUEUE", 0, 0, 0)
	long["subscription"] = "TagB"
	requirePulled(t, c.pull("G", "T", 0, 0, long), 20, "NO_MATCHED_MESSAGE", 1, 0, 1)
	for _, ms := range []int{0, -1} {
		requirePulled(t, c.pull("G", "T", 0, 1, ext{"sysFlag": flagSubscription | flagSuspend, "suspendTimeoutMillis": ms}), 19, "OFFSET_OVERFLOW_ONE", 1, 0, 1)
	}
	require.Zero(t, r.b.Info().Waiting)
}

// remoting.md §6.5: a filtered consumer is not woken by what it does not want; it learns in the end where to go on.
func TestAFilteredPullWaitsForWhatItWants(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		c.makeGroup("G", nil)
		producer := r.client(t)
		only := ext{"subscription": "TagA", "suspendTimeoutMillis": 15_000}
		waits := c.pullLater("G", "T", 0, 0, only)
		r.untilWaiting(1)
		for range 5 {
			producer.mustSend("T", 0, "b", props("TAGS", "TagB"))
		}
		requireQuiet(t, waits)
		producer.mustSend("T", 0, "a", props("TAGS", "TagA"))
		a := wait(t, waits)
		requirePulled(t, a, 0, "FOUND", 6, 0, 6)
		require.Equal(t, []string{"a"}, bodies(records(t, a.Body)))

		only["suspendTimeoutMillis"] = 300
		waits = c.pullLater("G", "T", 0, 6, only)
		r.untilWaiting(1)
		producer.mustSend("T", 0, "b", props("TAGS", "TagB"))
		requirePulled(t, wait(t, waits), 20, "NO_MATCHED_MESSAGE", 7, 0, 7)
	})
}

// architecture §7: what waits is bounded, and that is said with the setting's name.
func TestThereIsALimitToWaitingPulls(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.MaxWaiters = 2 }})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.makeGroup("G", nil)
	one, two := c.pullLater("G", "T", 0, 0, nil), c.pullLater("G", "T", 0, 0, nil)
	a := wait(t, c.pullLater("G", "T", 0, 0, nil))
	require.Equal(t, int32(2), a.Code)
	require.Contains(t, a.Remark, "[OVERLOAD]system busy")
	require.Contains(t, a.Remark, "max-waiters")
	c.mustSend("T", 0, "x", "")
	require.Equal(t, int32(0), wait(t, one).Code)
	require.Equal(t, int32(0), wait(t, two).Code)
}

// Who is gone waits for nothing.
func TestAConnectionThatEndsTakesItsWaitingPullsAlong(t *testing.T) {
	for _, noLoop := range []bool{false, true} {
		r := start(t, rigOptions{noLoop: noLoop})
		c, gone := r.client(t), r.client(t)
		c.makeTopic("T", 1)
		c.makeGroup("G", nil)
		for range 3 {
			gone.pullLater("G", "T", 0, 0, nil)
		}
		r.untilWaiting(3)
		gone.close()
		r.untilWaiting(0)
		c.mustSend("T", 0, "x", "")
		require.Len(t, c.read("T", 0, 0), 1)
	}
}

// C159, C156: who waits in a topic that is deleted is told; in the next one of that name nothing is left of it.
func TestAWaitingPullIsToldThatItsTopicIsDeleted(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		c.makeGroup("G", nil)
		waits := c.pullLater("G", "T", 0, 0, nil)
		r.untilWaiting(1)
		r.client(t).ok(protocol.ReqDeleteTopicInBroker, ext{"topic": "T"}, nil)
		a := wait(t, waits)
		require.Equal(t, int32(17), a.Code)
		require.Contains(t, a.Remark, "deleted")
		c.makeTopic("T", 1)
		waits = c.pullLater("G", "T", 0, 0, nil)
		r.untilWaiting(1)
		c.mustSend("T", 0, "new", "")
		requirePulled(t, wait(t, waits), 0, "FOUND", 1, 0, 1)
	})
}

// semantics §44: a reset reaches the pulls that wait, at once.
func TestAWaitingPullIsToldOfAReset(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		c.makeGroup("G", nil)
		c.makeGroup("Other", nil)
		for range 3 {
			c.mustSend("T", 0, "x", "")
		}
		waits, other := c.pullLater("G", "T", 0, 3, nil), c.pullLater("Other", "T", 0, 3, nil)
		r.untilWaiting(2)
		r.client(t).ok(protocol.ReqInvokeBrokerToResetOffset, ext{"group": "G", "topic": "T", "queueId": 0, "offset": 1, "timestamp": 0, "isForce": true}, nil)
		requirePulled(t, wait(t, waits), 21, "OFFSET_RESET", 1, 0, 3)
		requireQuiet(t, other)
		require.Equal(t, int32(0), c.pull("G", "T", 0, 1, nil).Code, "once is enough")
	})
}

// remoting.md §6.5: a pull for a group that has to be made first waits like any other.
func TestAPullThatMakesItsGroupWaits(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		waits := c.pullLater("New", "T", 0, 0, ext{"sysFlag": flagSubscription | flagSuspend | flagCommit})
		r.untilWaiting(1)
		_, ok := r.b.Group("New")
		require.True(t, ok)
		r.client(t).mustSend("T", 0, "x", "")
		requirePulled(t, wait(t, waits), 0, "FOUND", 1, 0, 1)
	})
}

// The group that a pull misses may be there when the pull comes to make it.
func TestAPullWaitsThoughAnotherRequestMakesItsGroup(t *testing.T) {
	r := start(t, rigOptions{})
	member := r.client(t)
	member.makeTopic("T", 1)
	pullers := []*client{r.client(t), r.client(t), r.client(t)}
	for i := range 40 {
		group := fmt.Sprint("New", i)
		h := heartbeat("c", consumer(group, subscription("T", "*", 1)))
		beat := member.later(protocol.ReqHeartBeat, nil, protocol.AppendJSON(nil, &h))
		for _, c := range pullers {
			c.pullLater(group, "T", 0, 0, nil)
		}
		require.Equal(t, int32(0), wait(t, beat).Code)
		r.untilWaiting(int64(len(pullers) * (i + 1)))
	}
}

// A driver for one connection leaves nothing behind in the broker.
func TestManyShortConnectionsLeaveNothingBehind(t *testing.T) {
	r := start(t, rigOptions{noLoop: true})
	admin := r.client(t)
	admin.makeTopic("T", 1)
	admin.makeGroup("G", nil)
	var clients []*client
	for i := range 50 {
		c := r.client(t)
		c.join(fmt.Sprint("c", i), "G", "T")
		c.pullLater("G", "T", 0, 0, nil)
		clients = append(clients, c)
	}
	r.untilWaiting(50)
	for _, c := range clients {
		c.close()
	}
	r.untilWaiting(0)
	eventually(t, func() bool { return len(r.b.Members("G")) == 0 && len(r.b.Producers("CLIENT_INNER_PRODUCER")) == 0 }, "nobody is left")
	require.Empty(t, r.b.ConsumerGroups())
}
