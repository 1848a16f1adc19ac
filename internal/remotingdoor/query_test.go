package remotingdoor_test

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

func queryFields(topic, key string, most int, more ext) ext {
	e := ext{"topic": topic, "key": key, "maxNum": most, "beginTimestamp": 0, "endTimestamp": int64(math.MaxInt64)}
	maps.Copy(e, more)
	return e
}

// bodies are what a query finds, in its order.
func (c *client) bodies(topic, key string, most int, more ext) (found []string) {
	c.t.Helper()
	a := c.call(protocol.ReqQueryMessage, queryFields(topic, key, most, more), nil)
	if a.Code == protocol.RespQueryNotFound {
		require.Equal(c.t, "can not find message, maybe time range not correct", a.Remark)
		require.Empty(c.t, a.Body)
		number(c.t, a, "indexLastUpdatePhyoffset")
		return nil
	}
	require.Equal(c.t, int32(0), a.Code, a.Remark)
	require.Positive(c.t, number(c.t, a, "indexLastUpdateTimestamp"))
	require.Positive(c.t, number(c.t, a, "indexLastUpdatePhyoffset"))
	for _, r := range records(c.t, a.Body) {
		found = append(found, string(r.Body))
	}
	return found
}

// remoting.md §6.13, semantics.md §32.
func TestMessagesAreFoundByTheirKeys(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 2)
		c.makeTopic("U", 1)
		c.mustSend("T", 0, "one", props("KEYS", "order-1 customer-7", "UNIQ_KEY", "AA01"))
		c.mustSend("T", 1, "two", props("KEYS", "order-2 customer-7", "UNIQ_KEY", "AA02", "TAGS", "TagA"))
		c.mustSend("U", 0, "other", props("KEYS", "order-1", "UNIQ_KEY", "AA03", "TAGS", "TagA"))
		c.ok(protocol.ReqSendBatchMessage, batchFields("T", 0, ""), message.AppendBatchMember(
			message.AppendBatchMember(nil, 0, []byte("three"), []byte(props("KEYS", "order-3", "UNIQ_KEY", "AA04"))),
			0, []byte("four"), []byte(props("KEYS", "order-3", "TAGS", "TagA"))))
		check := func(t *testing.T, c *client) {
			none := []string(nil)
			require.Equal(t, []string{"one"}, c.bodies("T", "order-1", 32, nil))
			require.Equal(t, []string{"one", "two"}, c.bodies("T", "customer-7", 32, nil), "in the order of the log")
			require.Equal(t, []string{"two"}, c.bodies("T", "customer-7", 1, nil), "the newest")
			require.Equal(t, []string{"other"}, c.bodies("U", "order-1", 32, nil))
			require.Equal(t, []string{"three", "four"}, c.bodies("T", "order-3", 32, ext{"indexType": "K"}))
			require.Equal(t, none, c.bodies("T", "order-1 customer-7", 32, nil), "KEYS are words")
			require.Equal(t, none, c.bodies("T", "nothing", 32, nil))
			require.Equal(t, none, c.bodies("NoTopic", "order-1", 32, nil))
			require.Equal(t, none, c.bodies("T", "customer-7", 0, nil))

			require.Equal(t, []string{"two"}, c.bodies("T", "AA02", 32, nil))
			require.Equal(t, []string{"two"}, c.bodies("T", "AA02", 0, ext{"_UNIQUE_KEY_QUERY": true}), "it has a limit of its own")
			require.Equal(t, none, c.bodies("T", "customer-7", 32, ext{"indexType": "U"}))
			require.Equal(t, none, c.bodies("T", "AA02", 32, ext{"indexType": "K"}))

			require.Equal(t, []string{"two", "four"}, c.bodies("T", "TagA", 32, ext{"indexType": "T"}))
			require.Equal(t, []string{"four"}, c.bodies("T", "TagA", 1, ext{"indexType": "T"}))
			require.Equal(t, none, c.bodies("T", "TagB", 32, ext{"indexType": "T"}))
			require.Equal(t, none, c.bodies("NoTopic", "TagA", 32, ext{"indexType": "T"}))
		}
		check(t, c)
		r.restart()
		check(t, r.client(t))
	})
}

func TestQueriesAreLimited(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	for i := range 100 {
		c.mustSend("T", 0, fmt.Sprint(i), props("KEYS", "all", "UNIQ_KEY", "same", "TAGS", "a"))
	}
	for _, kind := range []ext{nil, {"indexType": "T", "key": "a"}} {
		found := c.bodies("T", "all", 1000, kind)
		require.Len(t, found, 64)
		require.Equal(t, "99", found[len(found)-1])
		require.Equal(t, "36", found[0])
	}
	require.Len(t, c.bodies("T", "same", 1000, ext{"_UNIQUE_KEY_QUERY": true}), 32)

	var stored []message.Record
	for len(stored) < 100 {
		stored = append(stored, c.read("T", 0, int64(len(stored)))...)
	}
	when := stored[50].StoreTime
	for _, kind := range []ext{{}, {"indexType": "T", "key": "a"}} {
		kind["beginTimestamp"], kind["endTimestamp"] = when, when
		for _, b := range c.bodies("T", "all", 1000, kind) {
			var i int
			_, err := fmt.Sscan(b, &i)
			require.NoError(t, err)
			require.Equal(t, when, stored[i].StoreTime)
		}
		require.Contains(t, c.bodies("T", "all", 1000, kind), "50")
		kind["beginTimestamp"] = when + 3_600_000
		require.Empty(t, c.bodies("T", "all", 1000, kind))
	}
	require.Equal(t, int32(1), c.call(protocol.ReqQueryMessage, ext{"topic": "T"}, nil).Code)
}

// An answer has a limit in bytes; the newest messages are what it is about.
func TestALargeQueryLeavesOldMessagesOut(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	for i := range 30 {
		c.mustSend("T", 0, fmt.Sprint(i)+strings.Repeat("x", 400_000), props("KEYS", "large"))
	}
	found := c.bodies("T", "large", 32, nil)
	require.Len(t, found, 8<<20/400_200)
	require.Equal(t, "29x", found[len(found)-1][:3])
}
