package remotingdoor_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

const (
	commitIt   = 8
	rollItBack = 12
)

// halfMessage is a half message that was sent.
type halfMessage struct {
	position, offset int64
	key              string
}

// halfProps are the properties of a half message of group PG, as Java's producer sends them.
func halfProps(key string, more ...string) string {
	return props(append([]string{"KEYS", "k", "TRAN_MSG", "true", "UNIQ_KEY", key, "WAIT", "true", "PGROUP", "PG", "TAGS", "TagA"}, more...)...)
}

func (c *client) half(topic string, queue int, body, key string, more ...string) halfMessage {
	c.t.Helper()
	return c.sent(c.ok(protocol.ReqSendMessage, sendFields(topic, queue, halfProps(key, more...), ext{"sysFlag": 4}), []byte(body)))
}

// sent is the half message in the answer to a send.
func (c *client) sent(a *protocol.Command) halfMessage {
	c.t.Helper()
	_, at, err := message.ParseOffsetID(value(a, "msgId"))
	require.NoError(c.t, err)
	return halfMessage{position: int64(at), offset: number(c.t, a, "queueOffset"), key: value(a, "transactionId")}
}

func endFields(h halfMessage, decision int, change ext) ext {
	f := ext{
		"producerGroup": "PG", "tranStateTableOffset": h.offset, "commitLogOffset": h.position, "commitOrRollback": decision,
		"fromTransactionCheck": false, "msgId": h.key, "transactionId": h.key, "bname": "broker-a",
	}
	maps.Copy(f, change)
	return f
}

func (c *client) end(h halfMessage, decision int, change ext) *protocol.Command {
	c.t.Helper()
	return c.call(protocol.ReqEndTransaction, endFields(h, decision, change), nil)
}

func (c *client) mustEnd(h halfMessage, decision int) {
	c.t.Helper()
	a := c.end(h, decision, nil)
	require.Equal(c.t, int32(0), a.Code, a.Remark)
}

// produce makes the client a producer of a group.
func (c *client) produce(id, group string) {
	c.t.Helper()
	h := heartbeat(id)
	h.ProducerDataSet = []protocol.ProducerData{{GroupName: group}, {GroupName: "CLIENT_INNER_PRODUCER"}}
	c.beat(h)
}

// quickChecks has producers asked at once, and soon again.
func quickChecks(c *broker.Config) {
	quickLevels(c)
	c.TransactionTimeout, c.TransactionInterval = time.Millisecond, 10*time.Millisecond
}

// open is the open transaction with a position.
func (r *rig) transaction(at int64) broker.Transaction {
	r.t.Helper()
	list := r.b.Transactions(message.Position(at-1), "", 1).Transactions
	require.Len(r.t, list, 1)
	require.Equal(r.t, message.Position(at), list[0].Position)
	return list[0]
}

// remoting.md §6.10; the properties are those of vectors java-tx/3 and java-tx/12.
func TestATransactionIsCommitted(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 4)
		waits := r.client(t).pullLater("G", "T", 3, 0, nil)
		a := c.ok(protocol.ReqSendMessage, sendFields("T", 3, halfProps("K"), ext{"sysFlag": 4 | 0x301, "flag": 5}), []byte("commit me"))
		h := c.sent(a)
		require.Equal(t, "3", value(a, "queueId"), "the one that was asked for")
		require.Equal(t, "0", value(a, "queueOffset"), "that of the half message")
		require.Equal(t, "K", value(a, "transactionId"))
		require.Empty(t, c.read("T", 3, 0), "nobody sees it")

		own := map[string]string{
			"CLUSTER": "DefaultCluster", "KEYS": "k", "MSG_REGION": "DefaultRegion", "PGROUP": "PG", "TAGS": "TagA", "TRACE_ON": "true",
			"TRAN_MSG": "true", "UNIQ_KEY": "K", "WAIT": "true", "__transactionId__": "K",
		}
		parked := c.read("RMQ_SYS_TRANS_HALF_TOPIC", 0, 0)[0]
		require.Equal(t, int32(0x301), parked.SysFlag, "the transaction bits are cleared")
		withPlace := properties(parked)
		require.Equal(t, "T", withPlace["REAL_TOPIC"])
		require.Equal(t, "3", withPlace["REAL_QID"])
		require.Equal(t, int64(parked.Position), h.position)

		end := c.end(h, commitIt, nil)
		require.Equal(t, int32(0), end.Code, end.Remark)
		got := records(t, wait(t, waits).Body)[0]
		require.Equal(t, own, properties(got))
		require.Equal(t, "commit me", string(got.Body))
		require.Equal(t, int32(0x301|8), got.SysFlag)
		require.Equal(t, h.position, got.PreparedOffset)
		require.Equal(t, int32(5), got.Flag)
		require.Equal(t, int64(1700000000000), got.BornTime)
		require.Equal(t, parked.BornHost, got.BornHost)
		require.Equal(t, storeHost, got.StoreHost)
		found := c.pull("G", "T", 3, 0, ext{"subscription": "TagA"})
		require.Equal(t, []string{"commit me"}, bodies(records(t, found.Body)), "found by its tag")
		require.Zero(t, r.b.Gauges().Transactions)
	})
}

// semantics §22: rollback, unknown, one-way.
func TestATransactionIsRolledBackOrUndecided(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		a, b, d := c.half("T", 0, "a", "A"), c.half("T", 0, "b", "B"), c.half("T", 0, "d", "D")
		c.mustEnd(a, rollItBack)
		c.mustEnd(b, 0)
		c.oneway(protocol.ReqEndTransaction, endFields(d, commitIt, nil), nil)
		eventually(t, func() bool { return len(c.read("T", 0, 0)) == 1 }, "the committed one")
		require.Equal(t, []string{"d"}, bodies(c.read("T", 0, 0)))
		require.Equal(t, 1, r.b.Gauges().Transactions)
		require.Equal(t, message.Position(b.position), r.transaction(b.position).Position)
		c.oneway(protocol.ReqEndTransaction, endFields(halfMessage{position: 7}, commitIt, nil), nil)
		c.oneway(protocol.ReqEndTransaction, endFields(b, 0, nil), nil)
		c.mustEnd(b, commitIt)
		require.NoError(t, c.Err(), "an answer that nobody waits for ends the connection of this client")
		require.Equal(t, []string{"d", "b"}, bodies(c.read("T", 0, 0)))
		require.Equal(t, []string{"d", "b"}, bodies(c.read("T", 0, 0)), "each once")
	})
}

// C303: commit, commit, rollback, commit gives one message.
func TestC303TheFirstDecisionCounts(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		h, back := c.half("T", 0, "once", "K"), c.half("T", 0, "never", "L")
		for range 2 {
			c.mustEnd(h, commitIt)
			a := c.end(h, rollItBack, nil)
			require.Equal(t, int32(604), a.Code)
			require.Contains(t, a.Remark, "was committed at")
			c.mustEnd(back, rollItBack)
			require.Equal(t, int32(604), c.end(back, commitIt, nil).Code)
			r.restart()
			c = r.reclient(t, c)
		}
		c.mustEnd(h, commitIt)
		require.Equal(t, []string{"once"}, bodies(c.read("T", 0, 0)))
	})
}

// reclient is a client after a restart.
func (r *rig) reclient(t *testing.T, before *client) *client {
	c := r.client(t)
	c.encoding = before.encoding
	return c
}

// remoting.md §6.10 (2): what does not fit is refused, and the transaction stays open.
func TestDecisionsThatDoNotFitAreRefused(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.mustSend("T", 0, "ordinary", "")
	h := c.half("T", 0, "x", "K")
	for _, test := range []struct {
		change ext
		code   int32
		remark string
	}{
		{ext{"producerGroup": "OTHER"}, 1, "The producer group wrong"},
		{ext{"producerGroup": ""}, 1, "The producer group wrong"},
		{ext{"tranStateTableOffset": 1}, 1, "The transaction state table offset wrong"},
		{ext{"commitLogOffset": h.position + 1}, 1, "Find prepared transaction message failed"},
		{ext{"commitLogOffset": -1}, 1, "Find prepared transaction message failed"},
		{ext{"commitLogOffset": int64(c.read("T", 0, 0)[0].Position)}, 1, "Find prepared transaction message failed"},
		{ext{"commitLogOffset": "x"}, 1, "commitLogOffset"},
		{ext{"commitOrRollback": 4}, 1, "neither 8 (commit) nor 12 (rollback) nor 0 (unknown)"},
	} {
		a := c.end(h, commitIt, test.change)
		require.Equal(t, test.code, a.Code, test.change)
		require.Contains(t, a.Remark, test.remark)
	}
	require.Equal(t, 1, r.b.Gauges().Transactions)
	c.mustEnd(h, commitIt)
	require.Equal(t, int32(1), c.end(h, commitIt, ext{"tranStateTableOffset": 9}).Code, "a repeat has to fit too")
	require.Equal(t, []string{"ordinary", "x"}, bodies(c.read("T", 0, 0)))
}

// semantics §22: after the immunity that the message names only the answer to a check decides.
func TestLateDecisionsNeedACheck(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	none := c.half("T", 0, "none", "A", "CHECK_IMMUNITY_TIME_IN_SECONDS", "0")
	long := c.half("T", 0, "long", "B", "CHECK_IMMUNITY_TIME_IN_SECONDS", "600")
	odd := c.half("T", 0, "odd", "C", "CHECK_IMMUNITY_TIME_IN_SECONDS", "soon")
	eventually(t, func() bool { return time.Now().UnixMilli() > r.transaction(none.position).Stored }, "the clock goes on")
	a := c.end(none, commitIt, nil)
	require.Equal(t, int32(604), a.Code)
	require.Contains(t, a.Remark, "CHECK_IMMUNITY_TIME_IN_SECONDS")
	require.Equal(t, int32(0), c.end(none, commitIt, ext{"fromTransactionCheck": true}).Code)
	c.mustEnd(long, commitIt)
	c.mustEnd(odd, commitIt)
	require.Equal(t, []string{"none", "long", "odd"}, bodies(c.read("T", 0, 0)))
}

// What is no half message, or none that could ever be decided, is refused.
func TestHalfMessagesThatCannotBeAreRefused(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.MaxTimer = time.Hour }})
	c := r.client(t)
	c.makeTopic("T", 1)
	send := func(properties string, change ext) *protocol.Command {
		return c.call(protocol.ReqSendMessage, sendFields("T", 0, properties, change), []byte("x"))
	}
	a := send(props("TRAN_MSG", "true"), ext{"sysFlag": 4})
	require.Equal(t, int32(13), a.Code)
	require.Contains(t, a.Remark, "PGROUP")
	require.Equal(t, int32(13), send(halfProps("K", "TIMER_DELIVER_MS", "x"), nil).Code)
	require.Equal(t, int32(13), send(halfProps("K", "TIMER_DELAY_SEC", "7200"), nil).Code)
	require.Equal(t, int32(13), send(halfProps("K", "DELAY", "x"), nil).Code)
	require.Equal(t, int32(17), c.call(protocol.ReqSendMessage, sendFields("Missing", 0, halfProps("K"), ext{"defaultTopic": "None"}), nil).Code)
	r.configure(func(c *broker.Config) { c.RejectTransactions = true })
	a = send(halfProps("K"), ext{"sysFlag": 4})
	require.Equal(t, int32(16), a.Code)
	require.Contains(t, a.Remark, "rejectTransactionMessage")

	// remoting.md §6.2, row 12: a retried message that was part of one is not half any more.
	c.makeGroup("G", nil)
	again := send(halfProps("K", "DELAY", "1"), ext{"reconsumeTimes": 1})
	require.Equal(t, int32(0), again.Code, again.Remark)
	require.Zero(t, r.b.Gauges().Transactions)
	c.await("T", 0, 0)
}

// Checks and a delay add properties: what was accepted can be committed all the same.
func TestTheLargestHalfMessageCanBeCommitted(t *testing.T) {
	r := start(t, rigOptions{config: quickChecks})
	c := r.client(t)
	c.makeTopic("T", 1)
	var a *protocol.Command
	size := sort.Search(message.MaxProperties, func(n int) bool {
		got := c.call(protocol.ReqSendMessage, sendFields("T", 0, halfProps("K", "DELAY", "1", "big", strings.Repeat("x", n+1)), nil), nil)
		if got.Code == 0 {
			a = got
			c.mustEnd(c.sent(got), rollItBack)
			return false
		}
		require.Equal(t, int32(13), got.Code)
		return true
	})
	require.NotNil(t, a)
	h := c.half("T", 0, "x", "K", "DELAY", "1", "big", strings.Repeat("x", size))
	c.produce("c", "PG")
	for range 3 {
		wait(t, c.checks)
	}
	c.mustEnd(h, commitIt)
	require.Len(t, properties(c.await("T", 0, 0))["big"], size)
}

// C097: delays count from the commit; half messages in batches are refused.
func TestC097ADelayBeginsWithTheCommit(t *testing.T) {
	everyWay(t, rigOptions{config: quickLevels}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 2)
		at := strconv.FormatInt(time.Now().Add(150*time.Millisecond).UnixMilli(), 10)
		level := c.half("T", 1, "level", "A", "DELAY", "3", "TIMER_DELAY_SEC", "3600")
		timed := c.half("T", 0, "timed", "B", "TIMER_DELIVER_MS", at)
		require.Empty(t, c.read("SCHEDULE_TOPIC_XXXX", 2, 0))
		require.Zero(t, r.b.Info().Timers)
		c.mustEnd(level, commitIt)
		c.mustEnd(timed, commitIt)
		parked := c.read("SCHEDULE_TOPIC_XXXX", 2, 0)
		require.Len(t, parked, 1)
		got := c.await("T", 1, 0)
		require.GreaterOrEqual(t, got.StoreTime, parked[0].StoreTime+30, "never early")
		p := properties(got)
		require.Equal(t, "3", p["DELAY"])
		require.Equal(t, "k", p["KEYS"])
		require.NotContains(t, p, "TIMER_DELAY_SEC")
		require.Equal(t, level.position, got.PreparedOffset)
		require.Equal(t, int32(8), got.SysFlag)
		got = c.await("T", 0, 0)
		require.GreaterOrEqual(t, strconv.FormatInt(got.StoreTime, 10), at)
		require.Zero(t, r.b.Gauges().Transactions)

		a := c.call(protocol.ReqSendBatchMessage, batchFields("T", 0, ""), batch(batchMember{0, "a", ""}, batchMember{0, "b", halfProps("K")}))
		require.Equal(t, int32(13), a.Code)
		require.Contains(t, a.Remark, "message 2 of the batch is a half message")
		a = c.call(protocol.ReqSendBatchMessage, batchFields("T", 0, halfProps("K")), batch(batchMember{0, "a", ""}))
		require.Equal(t, int32(13), a.Code)
		require.Len(t, c.read("T", 0, 0), 1, "a batch is taken whole or not at all")
	})
}

// remoting.md §6.10 (4); the form is that of vectors java-tx/17 and go-tx/8.
func TestProducersAreAsked(t *testing.T) {
	everyWay(t, rigOptions{config: quickChecks}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 2)
		h := c.half("T", 1, "check me", "K")
		c.produce("p1", "PG")
		check := wait(t, c.checks)
		require.True(t, check.IsOneway())
		var want *protocol.Command
		for _, e := range readExchanges(t, "testdata/recorded/java-tx.jsonl") {
			if e.Push {
				want, _ = e.frames(t)
			}
		}
		require.Equal(t, slices.Sorted(maps.Keys(fieldsOf(want))), slices.Sorted(maps.Keys(fieldsOf(check))))
		require.Equal(t, "RMQ_SYS_TRANS_HALF_TOPIC", value(check, "topic"))
		require.Equal(t, h.position, number(t, check, "commitLogOffset"), "that of the only half message there ever is")
		require.Equal(t, h.offset, number(t, check, "tranStateTableOffset"))
		require.Equal(t, "K", value(check, "msgId"))
		require.Equal(t, "K", value(check, "transactionId"))
		require.Equal(t, "broker-a", value(check, "bname"))
		require.Equal(t, string(message.AppendOffsetID(nil, storeHost, message.Position(h.position))), value(check, "offsetMsgId"))
		got := records(t, check.Body)[0]
		require.Equal(t, "T", string(got.Topic))
		require.Equal(t, int32(1), got.QueueID)
		require.Equal(t, "check me", string(got.Body))
		require.Equal(t, int64(got.Position), h.position)
		require.Equal(t, "1", properties(got)["TRANSACTION_CHECK_TIMES"])
		require.Equal(t, slices.Sorted(maps.Keys(properties(records(t, want.Body)[0]))), slices.Sorted(maps.Keys(properties(got))))

		again := wait(t, c.checks) // it did not answer
		require.Equal(t, "2", properties(records(t, again.Body)[0])["TRANSACTION_CHECK_TIMES"])
		a := c.end(h, commitIt, ext{"fromTransactionCheck": true})
		require.Equal(t, int32(0), a.Code, a.Remark)
		stored := c.read("T", 1, 0)
		require.Len(t, stored, 1)
		require.NotEmpty(t, properties(stored[0])["TRANSACTION_CHECK_TIMES"])
		require.Len(t, c.read("RMQ_SYS_TRANS_HALF_TOPIC", 0, 0), 1, "it was never written again")
	})
}

// C092: only checks that were sent count; immunity is waited for. C094: nobody is asked about what is decided.
func TestC092OnlyChecksThatAreSentCount(t *testing.T) {
	r := start(t, rigOptions{config: quickChecks})
	c := r.client(t)
	c.makeTopic("T", 1)
	immune := c.half("T", 0, "immune", "A", "CHECK_IMMUNITY_TIME_IN_SECONDS", "600")
	decided := c.half("T", 0, "decided", "B")
	lonely := c.half("T", 0, "lonely", "C")
	other := c.sent(c.ok(protocol.ReqSendMessage, sendFields("T", 0, halfProps("D", "PGROUP", "OTHER"), nil), nil))
	c.mustEnd(decided, commitIt)
	p := r.client(t)
	p.produce("p", "OTHER")
	for range 3 {
		require.Equal(t, "D", value(wait(t, p.checks), "transactionId"))
	}
	require.Zero(t, r.transaction(lonely.position).Checks, "nobody of its group was there")
	require.GreaterOrEqual(t, r.transaction(other.position).Checks, int32(3))
	c.produce("c", "PG")
	for range 3 {
		require.Equal(t, "C", value(wait(t, c.checks), "transactionId"))
	}
	require.Zero(t, r.transaction(immune.position).Checks)
}

// semantics §22: some member of the group is asked, in turns; who has left is not.
func TestProducersTakeTurns(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) {
		quickChecks(c)
		c.TransactionChecks = 1000
	}})
	a, b := r.client(t), r.client(t)
	a.makeTopic("T", 1)
	a.produce("a", "PG")
	b.produce("b", "PG")
	h := a.half("T", 0, "x", "K")
	wait(t, a.checks)
	wait(t, b.checks)
	b.ok(protocol.ReqUnregisterClient, ext{"clientID": "b", "producerGroup": "PG"}, nil)
	for len(b.checks) > 0 {
		<-b.checks
	}
	for range 3 {
		wait(t, a.checks)
	}
	require.Empty(t, b.checks)
	a.mustEnd(h, rollItBack)
}

// C091: with an immunity of its own a half message is asked about when it is over, not forgotten.
func TestC091WhatIsImmuneIsAskedLater(t *testing.T) {
	r := start(t, rigOptions{config: quickChecks})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.produce("c", "PG")
	h := c.half("T", 0, "x", "K", "CHECK_IMMUNITY_TIME_IN_SECONDS", "1")
	stored := r.transaction(h.position).Stored
	check := wait(t, c.checks)
	require.GreaterOrEqual(t, time.Now().UnixMilli(), stored+1000)
	require.Equal(t, "K", value(check, "transactionId"))
	require.Equal(t, int32(0), c.end(h, commitIt, ext{"fromTransactionCheck": true}).Code)
}

// C094: whatever comes first decides, in any mixture of answers to checks, direct decisions and giving up; at most one copy.
func TestC094LateDecisionsAreAnswered(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) {
		quickChecks(c)
		c.TransactionChecks = 2
	}})
	c := r.client(t)
	c.makeTopic("T", 1)
	answer := ext{"fromTransactionCheck": true}
	first, second := c.half("T", 0, "first", "A"), c.half("T", 0, "second", "B")
	require.Equal(t, int32(0), c.end(first, commitIt, answer).Code)
	c.mustEnd(first, commitIt) // (a)
	require.Equal(t, int32(0), c.end(second, rollItBack, answer).Code)
	require.Equal(t, int32(604), c.end(second, commitIt, nil).Code) // (b)
	require.Equal(t, []string{"first"}, bodies(c.read("T", 0, 0)))

	third := c.half("T", 0, "third", "C")
	c.produce("c", "PG")
	stale := c.await("TRANS_CHECK_MAX_TIME_TOPIC", 0, 0) // (c)
	require.Len(t, c.checks, 2)
	p := properties(stale)
	require.Equal(t, []string{"T", "0", "C", "2", "k"}, []string{p["REAL_TOPIC"], p["REAL_QID"], p["UNIQ_KEY"], p["TRANSACTION_CHECK_TIMES"], p["KEYS"]})
	require.Equal(t, "third", string(stale.Body))
	for _, decision := range []int{commitIt, rollItBack} {
		a := c.end(third, decision, answer)
		require.Equal(t, int32(604), a.Code)
		require.Contains(t, a.Remark, "was given up at")
		require.Contains(t, a.Remark, "TRANS_CHECK_MAX_TIME_TOPIC")
	}
	require.Equal(t, []string{"first"}, bodies(c.read("T", 0, 0)))
	require.Zero(t, r.b.Gauges().Transactions)
	require.Equal(t, int64(1), r.b.Stats.Ended[entry.GiveUp].Load())
}

// C096: what is compressed passes through, with its flags, whatever happens to the half message. semantics §22: resume.
func TestC096CompressedMessagesPassThrough(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) {
		quickChecks(c)
		c.TransactionChecks = 1
	}})
	c := r.client(t)
	c.makeTopic("T", 1)
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, _ = z.Write(bytes.Repeat([]byte("compress me "), 1000))
	require.NoError(t, z.Close())
	c.produce("c", "PG")
	c.ok(protocol.ReqSendMessage, sendFields("T", 0, halfProps("K"), ext{"sysFlag": 4 | 0x301}), packed.Bytes())
	same := func(rec message.Record) {
		require.Equal(t, packed.Bytes(), rec.Body)
		require.Equal(t, int32(0x301), rec.SysFlag&^message.FlagTransactionMask)
	}
	same(records(t, wait(t, c.checks).Body)[0])
	stale := c.await("TRANS_CHECK_MAX_TIME_TOPIC", 0, 0)
	same(stale)

	id := string(message.AppendOffsetID(nil, stale.StoreHost, stale.Position))
	resume := func(id string) *protocol.Command {
		return c.call(protocol.ReqResumeCheckHalfMessage, ext{"topic": "TRANS_CHECK_MAX_TIME_TOPIC", "msgId": id}, nil)
	}
	require.Equal(t, int32(29), resume("no id").Code)
	require.Equal(t, int32(1), resume(string(message.AppendOffsetID(nil, stale.StoreHost, stale.Position+1))).Code)
	wrong := c.read("RMQ_SYS_TRANS_HALF_TOPIC", 0, 0)[0]
	a := resume(string(message.AppendOffsetID(nil, wrong.StoreHost, wrong.Position)))
	require.Equal(t, int32(1), a.Code)
	require.Contains(t, a.Remark, "lies in topic RMQ_SYS_TRANS_HALF_TOPIC")
	a = resume(id)
	require.Equal(t, int32(0), a.Code, a.Remark)
	a = resume(id)
	require.Equal(t, int32(604), a.Code, "there would be two copies")
	require.Contains(t, a.Remark, "was resumed at")

	check := wait(t, c.checks)
	rec := records(t, check.Body)[0]
	same(rec)
	require.Equal(t, "1", properties(rec)["TRANSACTION_CHECK_TIMES"], "counted from the beginning")
	h := halfMessage{position: number(t, check, "commitLogOffset"), offset: number(t, check, "tranStateTableOffset"), key: "K"}
	c.mustEnd(h, commitIt)
	got := c.read("T", 0, 0)
	require.Len(t, got, 1)
	same(got[0])
	require.NotContains(t, properties(got[0]), "REAL_TOPIC")
}

// A commit whose topic is gone is refused, and the transaction stays open until it is there again.
func TestACommitWithoutATopicWaits(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 4)
	h := c.half("T", 3, "x", "K")
	c.ok(protocol.ReqDeleteTopicInBroker, ext{"topic": "T"}, nil)
	a := c.end(h, commitIt, nil)
	require.Equal(t, int32(17), a.Code)
	require.Equal(t, 1, r.b.Gauges().Transactions)
	c.makeTopic("T", 2)
	c.mustEnd(h, commitIt)
	require.Equal(t, []string{"x"}, bodies(c.read("T", 1, 0)), "with fewer queues it goes into one that is there")
}

// Producers are asked on after a restart, from where it was.
func TestChecksSurviveARestart(t *testing.T) {
	r := start(t, rigOptions{config: quickChecks})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.produce("c", "PG")
	h := c.half("T", 0, "x", "K")
	wait(t, c.checks)
	wait(t, c.checks)
	for range 2 {
		before := r.transaction(h.position).Checks
		r.restart()
		c = r.client(t)
		require.GreaterOrEqual(t, r.transaction(h.position).Checks, before)
		c.produce("c", "PG")
		n, err := strconv.Atoi(properties(records(t, wait(t, c.checks).Body)[0])["TRANSACTION_CHECK_TIMES"])
		require.NoError(t, err)
		require.Greater(t, int32(n), before)
	}
	require.Equal(t, int32(0), c.end(h, commitIt, ext{"fromTransactionCheck": true}).Code)
	require.Equal(t, []string{"x"}, bodies(c.read("T", 0, 0)))
}

// semantics §22: what is older than messages are kept is given up, also when nobody was ever asked.
func TestWhatIsTooOldIsGivenUp(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	h := c.half("T", 0, "x", "K")
	r.configure(func(c *broker.Config) { c.RetentionTime = time.Millisecond })
	stale := c.await("TRANS_CHECK_MAX_TIME_TOPIC", 0, 0)
	require.Equal(t, "x", string(stale.Body))
	require.NotContains(t, properties(stale), "TRANSACTION_CHECK_TIMES")
	require.Equal(t, int32(604), c.end(h, commitIt, nil).Code)
}

// Several clients decide the same half messages against each other, over both kinds of drivers: the outcome is one, and all
// who are told that their decision counts are told the same. A restart changes nothing.
func TestContradictingDecisionsRace(t *testing.T) {
	for _, noLoop := range []bool{false, true} {
		t.Run(fmt.Sprint("no loop ", noLoop), func(t *testing.T) {
			r := start(t, rigOptions{noLoop: noLoop})
			c := r.client(t)
			c.makeTopic("T", 1)
			const halves, deciders = 200, 6
			var all []halfMessage
			for i := range halves {
				all = append(all, c.half("T", 0, strconv.Itoa(i), fmt.Sprint("K", i)))
			}
			said := make([]map[int]int, halves) // answers with success, by decision
			for i := range said {
				said[i] = map[int]int{}
			}
			var mu sync.Mutex
			var running sync.WaitGroup
			for d := range deciders {
				one := r.client(t)
				rng := rand.New(rand.NewPCG(uint64(d), 9))
				running.Go(func() {
					var answers sync.WaitGroup
					for i, h := range all {
						what := []int{commitIt, rollItBack}[rng.IntN(2)]
						answers.Add(1)
						one.Go(one.command(protocol.ReqEndTransaction, endFields(h, what, nil), nil), func(a *protocol.Command, err error) {
							defer answers.Done()
							mu.Lock()
							defer mu.Unlock()
							if err == nil && a.Code == 0 {
								said[i][what]++
							} else if err != nil || a.Code != 604 {
								t.Errorf("half message %d: %v %+v", i, err, a)
							}
						})
					}
					answers.Wait()
				})
			}
			running.Wait()
			var want []string
			for i, s := range said {
				require.Len(t, s, 1, "half message %d: some were told that it is committed, others that it is not", i)
				if s[commitIt] > 0 {
					want = append(want, strconv.Itoa(i))
				}
			}
			r.restart()
			c = r.client(t)
			var got []string
			for len(got) < len(want) {
				got = append(got, bodies(c.read("T", 0, int64(len(got))))...)
			}
			require.Empty(t, c.read("T", 0, int64(len(got))))
			require.ElementsMatch(t, want, got)
			require.Zero(t, r.b.Gauges().Transactions)
		})
	}
}
