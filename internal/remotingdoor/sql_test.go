package remotingdoor_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
)

// bySQL is a subscription by a condition.
func bySQL(topic, condition string, version int64) protocol.SubscriptionData {
	return protocol.SubscriptionData{
		Topic: topic, SubString: condition, SubVersion: version, ExpressionType: protocol.ExpressionSQL92, TagsSet: []string{}, CodeSet: []int32{},
	}
}

// sqlPull is a pull that is filtered by the heartbeat, as push consumers send it.
func sqlPull(version int64) ext {
	return ext{"sysFlag": 0, "subVersion": version, "subscription": "", "expressionType": "SQL92"}
}

// sqlFields is a pull that brings its condition along, as pull consumers send it.
func sqlFields(condition string) ext {
	return ext{"subscription": condition, "expressionType": "SQL92"}
}

func (c *client) check(s protocol.SubscriptionData) *protocol.Command {
	c.t.Helper()
	return c.call(protocol.ReqCheckClientConfig, nil, protocol.AppendJSON(nil, &protocol.CheckClientRequest{ClientId: "c1", Group: "G", SubscriptionData: s}))
}

// C109: SQL92 works without a switch; semantics §14: what matches comes, and nothing else.
func TestC109APullIsFilteredBySQL(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, _ *rig, c *client) {
		c.makeTopic("T", 1)
		for i, p := range []string{
			props("color", "red", "price", "10"), props("color", "red", "price", "3"), props("color", "blue", "price", "10"),
			props("color", "red", "price", "abc"), props("color", "red"), "", props("price", "11", "color", "red", "TAGS", "TagA"),
		} {
			c.mustSend("T", 0, fmt.Sprint(i), p)
		}
		const condition = "color = 'red' AND price > 3"
		require.Equal(t, int32(0), c.check(bySQL("T", condition, 1)).Code)
		c.beat(heartbeat("c1", consumer("G", bySQL("T", condition, 5))))
		for _, fields := range []ext{sqlPull(5), sqlFields(condition)} {
			a := c.pull("G", "T", 0, 0, fields)
			requirePulled(t, a, 0, "FOUND", 7, 0, 7)
			require.Equal(t, []string{"0", "6"}, bodies(records(t, a.Body)))
			requirePulled(t, c.pull("G", "T", 0, 1, with(fields, ext{"maxMsgNums": 1})), 0, "FOUND", 7, 0, 7)
			a = c.pull("G", "T", 0, 0, with(fields, ext{"maxMsgNums": 1}))
			require.Equal(t, []string{"0"}, bodies(records(t, a.Body)))
			require.Equal(t, int64(6), number(t, a, "nextBeginOffset"), "where the next that matches is")
			requirePulled(t, c.pull("G", "T", 0, 7, fields), 19, "OFFSET_OVERFLOW_ONE", 7, 0, 7)
		}
		requirePulled(t, c.pull("G", "T", 0, 0, sqlFields("nothing IS NOT NULL")), 20, "NO_MATCHED_MESSAGE", 7, 0, 7)
		requirePulled(t, c.pull("G", "T", 0, 0, sqlFields("TAGS = 'TagA'")), 0, "FOUND", 7, 0, 7)
	})
}

func with(f, change ext) ext {
	out := ext{}
	for _, m := range []ext{f, change} {
		maps.Copy(out, m)
	}
	return out
}

// semantics §11, §14, C108: a bad expression is refused with the place, in each of the three ways in which it may come.
func TestC108ABadConditionIsRefusedWithThePlace(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.mustSend("T", 0, "x", props("a", "1"))
	for condition, where := range map[string]string{
		"a BETWEEN AND": "line 1, column 11: unexpected AND", "a/b/c = 'x'": "line 1, column 2: ", "a LIKE 'x'": "line 1, column 3: ",
		"": "line 1, column 1: the expression is empty", "*": "line 1, column 1: ",
		strings.Repeat("a = 1 OR ", 300) + "a = 2": "more than 1000 operators",
	} {
		a := c.check(bySQL("T", condition, 1))
		require.Equal(t, int32(23), a.Code, condition)
		require.Contains(t, a.Remark, where)
		a = c.pull("G", "T", 0, 0, sqlFields(condition))
		require.Equal(t, int32(23), a.Code, condition)
		require.Contains(t, a.Remark, "parse the consumer's subscription failed")
		require.Contains(t, a.Remark, where)
	}
	c.beat(heartbeat("c1", consumer("G", bySQL("T", "a >", 5), subscription("U", "*", 5))))
	a := c.pull("G", "T", 0, 0, sqlPull(5))
	require.Equal(t, int32(27), a.Code, a.Remark)
	require.Contains(t, a.Remark, "line 1, column 4: ")
	c.makeTopic("U", 1)
	require.Equal(t, int32(19), c.pull("G", "U", 0, 0, ext{"sysFlag": 0, "subVersion": 5}).Code, "other topics are not disturbed")

	a = c.check(protocol.SubscriptionData{Topic: "T", SubString: "a > 1", ExpressionType: "XPATH"})
	require.Equal(t, int32(1), a.Code)
	require.Contains(t, a.Remark, "does not support consumer to filter message by XPATH")
	require.Equal(t, int32(0), c.check(subscription("T", "TagA", 1)).Code)
}

// C112: properties of all kinds of values, over the wire.
func TestC112PropertiesAreComparedByWhatTheyStandBeside(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	for _, price := range []string{"10", "3", "abc", ""} {
		c.mustSend("T", 0, "["+price+"]", props("color", "red2", "price", price, "vip", "TRUE", "rate", "2.5", "name", "it's 日本語"))
	}
	const name = "name CONTAINS 'it''s' AND name ENDSWITH '語'"
	want := map[string][]string{
		name: {"[10]", "[3]", "[abc]", "[]"},
		"(color in ('red1','red2','red4') and price>3)":   {"[10]"},
		"price BETWEEN 3 AND 10":                          {"[10]", "[3]"},
		"price <> '3'":                                    {"[10]", "[abc]"},
		"price IS NULL":                                   {"[]"},
		"NOT (price > 5)":                                 {"[3]"},
		"price > 5 OR price = 'abc'":                      {"[10]"},
		"vip = TRUE AND rate > 2.0 AND price IS NOT NULL": {"[10]", "[3]", "[abc]"},
	}
	for _, nothing := range []string{"rate > 2", "UNIQ_KEY IS NOT NULL AND TAGS IS NULL AND vip = 1"} {
		want[nothing] = nil
	}
	for condition, want := range want {
		a := c.pull("G", "T", 0, 0, sqlFields(condition))
		var got []string
		if a.Code == 0 {
			got = bodies(records(t, a.Body))
		}
		require.Equal(t, want, got, condition)
	}
}

// remoting.md §6.5, Hold; C043: only what matches wakes who waits, and that at once.
func TestC043APullBySQLWaitsForWhatItWants(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		producer := r.client(t)
		c.beat(heartbeat("c1", consumer("G", bySQL("T", "n > 2 AND n < 5", 5))))
		fields := with(sqlPull(5), ext{"sysFlag": flagSuspend})
		waits := c.pullLater("G", "T", 0, 0, fields)
		r.untilWaiting(1)
		for i := range 3 {
			producer.mustSend("T", 0, "no", props("n", fmt.Sprint(i)))
		}
		requireQuiet(t, waits)
		producer.mustSend("T", 0, "yes", props("n", "3"))
		a := wait(t, waits)
		requirePulled(t, a, 0, "FOUND", 4, 0, 4)
		require.Equal(t, []string{"yes"}, bodies(records(t, a.Body)))

		waits = c.pullLater("G", "T", 0, 4, with(fields, ext{"suspendTimeoutMillis": 300}))
		r.untilWaiting(1)
		producer.mustSend("T", 0, "no", "")
		requirePulled(t, wait(t, waits), 20, "NO_MATCHED_MESSAGE", 5, 0, 5)
	})
}

// sendMany puts messages into a queue, hundreds at a time; properties says what each has.
func (c *client) sendMany(topic string, n int, body string, properties func(i int) string) {
	c.t.Helper()
	for from := 0; from < n; from += 500 {
		var members []batchMember
		for i := from; i < min(from+500, n); i++ {
			members = append(members, batchMember{0, body, properties(i)})
		}
		c.ok(protocol.ReqSendBatchMessage, batchFields(topic, 0, ""), batch(members...))
	}
}

// More arrives at once than a waiting pull may look at: what it wants, at the end, is not left lying.
func TestAWaitingPullGoesOnWhereItsBudgetEnded(t *testing.T) {
	for _, fields := range []ext{sqlFields("n = 399"), {"subscription": "Tag399"}} {
		r := start(t, rigOptions{config: func(c *broker.Config) { c.MaxScan = 100 }})
		c := r.client(t)
		c.makeTopic("T", 1)
		c.makeGroup("G", nil)
		at, end := int64(0), time.Now().Add(patience)
		waits := c.pullLater("G", "T", 0, at, with(fields, ext{"suspendTimeoutMillis": 100_000}))
		r.untilWaiting(1)
		r.client(t).sendMany("T", 400, "x", func(i int) string { return props("n", fmt.Sprint(i), "TAGS", fmt.Sprint("Tag", i)) })
		for {
			a := wait(t, waits)
			next := number(t, a, "nextBeginOffset")
			require.Greater(t, next, at)
			at = next
			if a.Code == 0 {
				require.Equal(t, int64(399), int64(records(t, a.Body)[0].QueueOffset))
				break
			}
			require.Equal(t, int32(20), a.Code)
			require.True(t, time.Now().Before(end))
			waits = c.pullLater("G", "T", 0, at, with(fields, ext{"suspendTimeoutMillis": 100_000}))
		}
		require.Equal(t, int64(400), at)
	}
}

// The budget of a scan: entries and bytes; each pull gets further.
func TestAScanBySQLIsBounded(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.MaxScan, c.MaxScanBytes = 200, 64<<10 }})
	c := r.client(t)
	c.makeTopic("Small", 1)
	c.makeTopic("Large", 1)
	c.sendMany("Small", 1000, "x", func(i int) string { return props("n", fmt.Sprint(i)) })
	for i := range 10 {
		c.mustSend("Large", 0, strings.Repeat("x", 40<<10), props("n", fmt.Sprint(i)))
	}
	walk := func(topic, condition string, n int64) (steps []int64, found int) {
		for at := int64(0); at < n; {
			a := c.pull("G", topic, 0, at, sqlFields(condition))
			require.Contains(t, []int32{0, 20}, a.Code, a.Remark)
			next := number(t, a, "nextBeginOffset")
			require.Greater(t, next, at)
			if a.Code == 0 {
				found += len(records(t, a.Body))
			}
			steps = append(steps, next-at)
			at = next
		}
		return steps, found
	}
	steps, found := walk("Small", "n = 998", 1000)
	require.Equal(t, 1, found)
	require.Less(t, steps[0], int64(64), "a record counts more than its bytes")
	require.Greater(t, steps[0], int64(8))
	steps, found = walk("Large", "n >= 8", 10)
	require.Equal(t, 2, found)
	require.Equal(t, int64(2), steps[0])
	r.configure(func(c *broker.Config) { c.MaxScanBytes = 1 })
	steps, found = walk("Large", "n >= 8", 10)
	require.Equal(t, 2, found)
	require.Equal(t, slices.Repeat([]int64{1}, 10), steps, "one in any case")
	r.configure(func(c *broker.Config) { c.MaxScanBytes = 64 << 20 })
	steps, found = walk("Small", "n = 998", 1000)
	require.Equal(t, 1, found)
	require.Equal(t, int64(200), steps[0])
}

// One wanted among 100,000: the consumer gets it by and by, and those who send meanwhile are not kept waiting.
func TestARareConditionStarvesNobody(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.makeTopic("Other", 1)
	const n = 100_000
	c.sendMany("T", n, strings.Repeat("x", 100), func(i int) string { return props("n", fmt.Sprint(i), "color", "red") })
	var consumers []<-chan int
	stop := make(chan struct{})
	for range 4 {
		found := make(chan int, 1)
		consumers = append(consumers, found)
		rare := r.client(t)
		go func() {
			pulls := 0
			for at := int64(0); ; pulls++ {
				a, err := rare.Call(t.Context(), rare.command(protocol.ReqPullMessage, pullFields("G", "T", 0, at, sqlFields(fmt.Sprint("n = ", n-1))), nil))
				if err != nil || a.Code == 0 {
					found <- pulls
					return
				}
				at = int64(atoi(value(a, "nextBeginOffset")))
			}
		}()
	}
	var slowest time.Duration
	go func() {
		for _, found := range consumers {
			pulls := <-found
			if pulls < n/800-1 || pulls > n/200 {
				t.Errorf("found after %d pulls", pulls)
			}
		}
		close(stop)
	}()
	for sends := 0; ; sends++ {
		select {
		case <-stop:
			require.Positive(t, sends)
			t.Logf("%d sends meanwhile, the slowest took %v", sends, slowest)
			require.Less(t, slowest, time.Second)
			return
		default:
		}
		at := time.Now()
		c.mustSend("Other", 0, "x", "")
		slowest = max(slowest, time.Since(at))
	}
}

// When many scans come in one pass, those that would keep the others waiting go to the pool; they are answered the same.
func TestScansOfOnePassShareABudget(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.MaxScan, c.MaxScanBytes = 100, 500<<10 }})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.sendMany("T", 100, "x", func(i int) string { return props("n", fmt.Sprint(i)) })
	c.makeGroup("G", nil)
	var answers []<-chan *protocol.Command
	for range 200 {
		answers = append(answers, c.later(protocol.ReqPullMessage, pullFields("G", "T", 0, 0, sqlFields("n = 77")), nil))
	}
	for _, ch := range answers {
		a := wait(t, ch)
		requirePulled(t, a, 0, "FOUND", 100, 0, 100)
		require.Equal(t, int64(77), int64(records(t, a.Body)[0].QueueOffset))
	}
	t.Logf("%d of 200 on the pool", r.b.Stats.ColdPulls.Load())
	r.configure(func(c *broker.Config) { c.MaxScanBytes = 1 }) // four records a pass
	answers = nil
	before := r.b.Stats.ColdPulls.Load()
	for range 200 {
		answers = append(answers, c.later(protocol.ReqPullMessage, pullFields("G", "T", 0, 0, sqlFields("n = 0")), nil))
	}
	for _, ch := range answers {
		requirePulled(t, wait(t, ch), 0, "FOUND", 1, 0, 100)
	}
	require.Positive(t, r.b.Stats.ColdPulls.Load()-before)
}

// remoting.md §6.5: what is not in memory is filtered like what is.
func TestAColdPullBySQLIsAnsweredLikeAHotOne(t *testing.T) {
	r := start(t, rigOptions{broker: coldIndex, config: func(c *broker.Config) { c.MaxScan = 100 }})
	c := r.client(t)
	c.makeTopic("T", 1)
	const n = 1000
	var want []string
	for i := range n {
		if i%2 == 0 && i > 500 {
			want = append(want, fmt.Sprint(i))
		}
	}
	for from := 0; from < n; from += 10 {
		var members []batchMember
		for i := from; i < from+10; i++ {
			members = append(members, batchMember{0, fmt.Sprint(i), props("n", fmt.Sprint(i), "even", fmt.Sprint(i%2 == 0))})
		}
		c.ok(protocol.ReqSendBatchMessage, batchFields("T", 0, ""), batch(members...))
	}
	r.untilCold(c, "T")
	before := r.b.Stats.ColdPulls.Load()
	for _, each := range []int{1 << 10, 32, 7} {
		var got []string
		for at := int64(0); at < n; {
			a := c.pull("G", "T", 0, at, with(sqlFields("even = TRUE AND n > 500"), ext{"maxMsgNums": each}))
			require.Contains(t, []int32{0, 20}, a.Code, a.Remark)
			next := number(t, a, "nextBeginOffset")
			require.Greater(t, next, at)
			if a.Code == 0 {
				rs := records(t, a.Body)
				require.LessOrEqual(t, len(rs), each)
				got = append(got, bodies(rs)...)
			}
			at = next
		}
		require.Equal(t, want, got)
	}
	require.Greater(t, r.b.Stats.ColdPulls.Load(), before)
}

// quirk 1: a pull that overtakes the heartbeat of a changed condition neither gets what is not wanted nor passes anything over: it waits for the heartbeat.
func TestAPullBySQLThatOvertakesItsHeartbeatWaitsForIt(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		for i := range 4 {
			c.mustSend("T", 0, fmt.Sprint(i), props("n", fmt.Sprint(i)))
		}
		for version, old := range []protocol.SubscriptionData{bySQL("T", "n < 2", 10), subscription("T", "*", 20), bySQL("T", "n ><", 30)} {
			base := int64(10 * (version + 1))
			c.beat(heartbeat("c1", consumer("G", old)))
			requirePulled(t, c.pull("G", "T", 0, 0, sqlPull(base+1)), 19, "OFFSET_OVERFLOW_ONE", 0, 0, 4)
			waits := c.pullLater("G", "T", 0, 0, with(sqlPull(base+1), ext{"sysFlag": flagSuspend}))
			r.untilWaiting(1)
			requireQuiet(t, waits)
			c.beat(heartbeat("c1", consumer("G", bySQL("T", "n >= 2", base+1))))
			a := wait(t, waits)
			requirePulled(t, a, 0, "FOUND", 4, 0, 4)
			require.Equal(t, []string{"2", "3"}, bodies(records(t, a.Body)))

			waits = c.pullLater("G", "T", 0, 0, with(sqlPull(base+2), ext{"sysFlag": flagSuspend}))
			r.untilWaiting(1)
			c.beat(heartbeat("c1", consumer("G", bySQL("T", "n >", base+2))))
			require.Equal(t, int32(27), wait(t, waits).Code, "it is told that the new one is wrong")

			waits = c.pullLater("G", "T", 0, 0, with(sqlPull(base+3), ext{"sysFlag": flagSuspend, "suspendTimeoutMillis": 100}))
			requirePulled(t, wait(t, waits), 19, "OFFSET_OVERFLOW_ONE", 0, 0, 4)
			require.Zero(t, r.b.Info().Waiting)
		}
	})
}

// A subscription that changes while a pull waits holds for what comes from then on.
func TestAWaitingPullFollowsAChangedSubscription(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		producer := r.client(t)
		for topic, subs := range map[string][2]protocol.SubscriptionData{
			"T": {bySQL("T", "n = 1", 5), bySQL("T", "n = 2", 6)}, "U": {subscription("U", "Tag1", 5), subscription("U", "Tag2", 6)},
			"V": {subscription("V", "Tag1", 5), bySQL("V", "n = 2", 6)}, "W": {bySQL("W", "n = 1", 5), subscription("W", "*", 6)},
		} {
			c.makeTopic(topic, 1)
			c.beat(heartbeat("c1", consumer("G", subs[0])))
			f := ext{"sysFlag": flagSuspend, "subVersion": 5, "subscription": "", "expressionType": subs[0].ExpressionType}
			waits := c.pullLater("G", topic, 0, 0, f)
			r.untilWaiting(1)
			c.beat(heartbeat("c1", consumer("G", subs[1])))
			requireQuiet(t, waits)
			producer.mustSend(topic, 0, "two", props("n", "2", "TAGS", "Tag2"))
			a := wait(t, waits)
			requirePulled(t, a, 0, "FOUND", 1, 0, 1)
			require.Equal(t, []string{"two"}, bodies(records(t, a.Body)), topic)
			waits = c.pullLater("G", topic, 0, 1, with(f, ext{"subVersion": 6, "expressionType": subs[1].ExpressionType}))
			r.untilWaiting(1)
			c.beat(heartbeat("c1", consumer("G", subscription("X", "*", 7))))
			require.Equal(t, int32(24), wait(t, waits).Code, "it subscribes the topic no more")
		}
	})
}

// C040: each member is served by its own condition.
func TestC040EachMemberIsServedByItsOwnCondition(t *testing.T) {
	r := start(t, rigOptions{})
	one, two := r.client(t), r.client(t)
	one.makeTopic("T", 1)
	for i := range 4 {
		one.mustSend("T", 0, fmt.Sprint(i), props("n", fmt.Sprint(i)))
	}
	one.beat(heartbeat("c1", consumer("G", bySQL("T", "n < 2", 5))))
	two.beat(heartbeat("c2", consumer("G", bySQL("T", "n >= 2", 5))))
	one.beat(heartbeat("c1", consumer("G", bySQL("T", "n < 2", 5))))
	require.Equal(t, []string{"0", "1"}, bodies(records(t, one.pull("G", "T", 0, 0, sqlPull(5)).Body)))
	require.Equal(t, []string{"2", "3"}, bodies(records(t, two.pull("G", "T", 0, 0, sqlPull(5)).Body)))
}
