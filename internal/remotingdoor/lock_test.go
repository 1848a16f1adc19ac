package remotingdoor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
)

func lockBody(group, client, topic string, queues ...int32) []byte {
	b := protocol.LockBatchRequest{ClientId: client, ConsumerGroup: group, MqSet: []protocol.MessageQueue{}}
	for _, q := range queues {
		b.MqSet = append(b.MqSet, protocol.MessageQueue{BrokerName: "broker-a", QueueId: q, Topic: topic})
	}
	return protocol.AppendJSON(nil, &b)
}

func (c *client) lock(group, client, topic string, queues ...int32) (got []int32) {
	c.t.Helper()
	a := c.ok(protocol.ReqLockBatchMq, nil, lockBody(group, client, topic, queues...))
	var body protocol.LockBatchResponse
	require.NoError(c.t, protocol.ParseJSON(a.Body, &body))
	for _, q := range body.LockOKMQSet {
		require.Equal(c.t, protocol.MessageQueue{BrokerName: "broker-a", QueueId: q.QueueId, Topic: topic}, q, "in the form in which it was asked for")
		got = append(got, q.QueueId)
	}
	return got
}

func (c *client) unlock(group, client, topic string, queues ...int32) {
	c.t.Helper()
	c.ok(protocol.ReqUnlockBatchMq, nil, lockBody(group, client, topic, queues...))
}

// remoting.md §6.8, C055: who holds what.
func TestALockBelongsToOneClient(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		require.Equal(t, []int32{0, 1}, c.lock("G", "c1", "T", 0, 1))
		require.Equal(t, []int32{2, 3}, c.lock("G", "c2", "T", 0, 1, 2, 3))
		require.Equal(t, []int32{0, 1}, c.lock("G", "c1", "T", 0, 1, 2), "held, so renewed")
		require.Equal(t, []int32{0, 1, 2}, c.lock("H", "c2", "T", 0, 1, 2), "another group")
		require.Equal(t, []int32{0}, c.lock("G", "c2", "U", 0), "another topic")
		c.unlock("G", "c2", "T", 0)
		require.Empty(t, c.lock("G", "c2", "T", 0), "only the owner unlocks")
		c.unlock("G", "c1", "T", 0)
		require.Equal(t, []int32{0}, c.lock("G", "c2", "T", 0))
		require.Empty(t, c.lock("G", "c1", "T", 0))
		c.oneway(protocol.ReqUnlockBatchMq, nil, lockBody("G", "c1", "T", 1))
		eventually(t, func() bool { return len(c.lock("G", "c3", "T", 1)) == 1 }, "also one-way")
		require.Empty(t, c.lock("G", "c1", "T"))
	})
}

func TestBadLockRequestsAreRefused(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	for _, code := range []int32{protocol.ReqLockBatchMq, protocol.ReqUnlockBatchMq} {
		for _, body := range []string{"", "{", `{"clientId":"c"}`, `{"consumerGroup":"G"}`, `{"clientId":"c","consumerGroup":"G","mqSet":5}`} {
			require.Equal(t, int32(1), c.call(code, nil, []byte(body)).Code, body)
		}
	}
	a := c.ok(protocol.ReqLockBatchMq, nil, []byte(`{"clientId":"c","consumerGroup":"G"}`))
	require.JSONEq(t, `{"lockOKMQSet":[]}`, string(a.Body))
}

// remoting.md §6.8: a lock that is not renewed ends.
func TestALockEndsWithItsLease(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.LockLease = 300 * time.Millisecond }})
	c := r.client(t)
	require.Equal(t, []int32{0}, c.lock("G", "c1", "T", 0))
	began := time.Now()
	require.Empty(t, c.lock("G", "c2", "T", 0))
	eventually(t, func() bool { return len(c.lock("G", "c2", "T", 0)) == 1 }, "it ends")
	require.GreaterOrEqual(t, time.Since(began), 200*time.Millisecond)
	require.Empty(t, c.lock("G", "c1", "T", 0))
}

// C047, C054: the locks of a client that is gone are free at once.
func TestAClientThatLeavesGivesItsLocksBack(t *testing.T) {
	r := start(t, rigOptions{})
	one, two, three := r.client(t), r.client(t), r.client(t)
	one.join("c1", "G", "T")
	two.join("c1", "G", "T") // a second connection of the same client
	require.Equal(t, []int32{0, 1}, one.lock("G", "c1", "T", 0, 1))
	two.close()
	eventually(t, func() bool { return len(r.b.Members("G")) == 1 }, "one connection is left")
	require.Empty(t, three.lock("G", "c3", "T", 0))
	one.close()
	eventually(t, func() bool { return len(three.lock("G", "c3", "T", 0, 1)) == 2 }, "they are free")

	three.join("c3", "G", "T")
	three.ok(protocol.ReqUnregisterClient, ext{"clientID": "c3", "consumerGroup": "G"}, nil)
	four := r.client(t)
	eventually(t, func() bool { return len(four.lock("G", "c4", "T", 0, 1)) == 2 }, "also when it says goodbye")
}

// C052, C056: who has lost the lock of a queue gets no messages of it and commits nothing.
func TestALockFencesOtherMembers(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, old *client) {
		now := r.client(t)
		now.makeTopic("T", 2)
		for range 4 {
			now.mustSend("T", 0, "x", "")
		}
		old.join("c1", "G", "T")
		now.join("c2", "G", "T")
		require.Equal(t, []int32{0}, old.lock("G", "c1", "T", 0))
		pull := ext{"sysFlag": flagCommit, "commitOffset": 1, "subVersion": 1}
		requirePulled(t, old.pull("G", "T", 0, 1, pull), 0, "FOUND", 4, 0, 4)
		now.requireCommitted("G", "T", 0, 1)
		old.unlock("G", "c1", "T", 0)
		require.Equal(t, []int32{0}, now.lock("G", "c2", "T", 0))

		pull["commitOffset"] = 3
		requirePulled(t, old.pull("G", "T", 0, 2, pull), 19, "OFFSET_OVERFLOW_ONE", 2, 0, 4)
		require.Equal(t, int32(0), old.commit("G", "T", 0, 4).Code)
		now.requireCommitted("G", "T", 0, 1)
		requirePulled(t, old.pull("G", "T", 1, 0, ext{"sysFlag": 0, "subVersion": 1}), 19, "NO_MESSAGE_IN_QUEUE", 0, 0, 0)
		requirePulled(t, now.pull("G", "T", 0, 1, ext{"sysFlag": 0, "subVersion": 1}), 0, "FOUND", 4, 0, 4)
		require.Equal(t, int32(0), now.commit("G", "T", 0, 4).Code)
		now.requireCommitted("G", "T", 0, 4)
	})
}

// remoting.md §1.7: old clients commit through a connection that has not said whose it is.
func TestALockDoesNotFenceTheOwnersOtherConnection(t *testing.T) {
	r := start(t, rigOptions{})
	c, vip := r.client(t), r.client(t)
	c.makeTopic("T", 1)
	for range 3 {
		c.mustSend("T", 0, "x", "")
	}
	c.join("c1", "G", "T")
	require.Equal(t, []int32{0}, vip.lock("G", "c1", "T", 0))
	require.Equal(t, int32(0), vip.commit("G", "T", 0, 2).Code)
	c.requireCommitted("G", "T", 0, 2)
}
