package remotingdoor_test

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

// remoting.md §6.2, §4.8: the answer says where the message is.
func TestASendIsAnsweredWithTheMessagesPlace(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, _ *rig, c *client) {
		c.makeTopic("T", 4)
		a := c.send("T", 3, "hello", props("TAGS", "TagA", "UNIQ_KEY", "C0000202"))
		require.Equal(t, int32(protocol.RespSuccess), a.Code)
		require.Empty(t, a.Remark)
		require.Equal(t, int32(513), a.Version)
		require.Equal(t, "3", value(a, "queueId"))
		require.Equal(t, "0", value(a, "queueOffset"))
		require.Equal(t, "C0000202", value(a, "transactionId"))
		require.Equal(t, "DefaultRegion", value(a, "MSG_REGION"))
		require.Equal(t, "true", value(a, "TRACE_ON"))

		host, pos, err := message.ParseOffsetID(value(a, "msgId"))
		require.NoError(t, err)
		require.Equal(t, storeHost, host)
		rs := c.read("T", 3, 0)
		require.Len(t, rs, 1)
		require.Equal(t, pos, rs[0].Position)
		require.Equal(t, int64(1), c.mustSend("T", 3, "again", ""))
	})
}

// remoting.md §6.2 notes, §4.1: what the broker keeps and adds.
func TestARecordHasWhatTheProducerAndTheBrokerSay(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, _ *rig, c *client) {
		c.makeTopic("T", 1)
		fields := sendFields("T", 0, props("KEYS", "kéy \u4f60", "TAGS", "TagA", "POP_CK", "forged"), ext{"flag": 7, "sysFlag": 0x301, "reconsumeTimes": 2})
		c.ok(protocol.ReqSendMessage, fields, []byte("h\u00e9llo \x00\xff"))
		rs := c.read("T", 0, 0)
		require.Len(t, rs, 1)
		r := rs[0]
		require.Equal(t, "h\u00e9llo \x00\xff", string(r.Body))
		require.Equal(t, "T", string(r.Topic))
		require.Equal(t, int32(7), r.Flag)
		require.Equal(t, int32(0x301), r.SysFlag, "compression is the producer's")
		require.Equal(t, int32(2), r.ReconsumeTimes)
		require.Equal(t, int64(1700000000000), r.BornTime)
		require.Equal(t, c.Local(), r.BornHost)
		require.Equal(t, storeHost, r.StoreHost)
		require.Zero(t, r.PreparedOffset)
		require.Positive(t, r.StoreTime)

		p := properties(r)
		require.Len(t, p["UNIQ_KEY"], 32, "made by the broker, for there was none")
		delete(p, "UNIQ_KEY")
		require.Equal(t, map[string]string{
			"KEYS": "kéy \u4f60", "TAGS": "TagA", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true", "CLUSTER": "DefaultCluster",
		}, p, "a pop receipt is not the producer's to give")
	})
}

// remoting.md §2.1.1: short names, and the version 2 code.
func TestShortNamesMeanTheSame(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, _ *rig, c *client) {
		a := c.ok(protocol.ReqSendMessageV2, ext{
			"a": "PG", "b": "Made", "c": "TBW102", "d": 3, "e": 2, "f": 0, "g": 5, "h": 9, "i": props("UNIQ_KEY", "K1"), "j": 0, "k": false, "m": false, "n": "broker-a",
		}, []byte("x"))
		require.Equal(t, "2", value(a, "queueId"))
		require.Equal(t, "K1", value(a, "transactionId"))
		r := c.read("Made", 2, 0)[0]
		require.Equal(t, int32(9), r.Flag)
		require.Equal(t, int64(5), r.BornTime)
	})
}

// remoting.md §6.2 rows 3 to 8; §6.1: who may send where.
func TestASendIsCheckedInOrder(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 2)
	c.putTopic("Narrow", 1, 4, 6)
	c.putTopic("Closed", 1, 1, 4)
	long := "%RETRY%" + strings.Repeat("g", 249)
	for _, test := range []struct {
		name, topic string
		queue       int
		code        int32
		remark      string
	}{
		{"name with a character that it may not have", "a.b", 0, 29, "a.b"},
		{"blank name", " ", 0, 29, "blank"},
		{"name of 128 bytes", strings.Repeat("t", 128), 0, 29, "too long"},
		{"retry topic of 256 bytes", long, 0, 29, "too long"},
		{"the schedule topic", "SCHEDULE_TOPIC_XXXX", 0, 16, "forbidden"},
		{"the half topic", "RMQ_SYS_TRANS_HALF_TOPIC", 0, 16, "forbidden"},
		{"the op topic", "RMQ_SYS_TRANS_OP_HALF_TOPIC", 0, 16, "forbidden"},
		{"stale transactions", "TRANS_CHECK_MAX_TIME_TOPIC", 0, 16, "forbidden"},
		{"the self test", "SELF_TEST_TOPIC", 0, 16, "forbidden"},
		{"moved offsets", "OFFSET_MOVED_EVENT", 0, 16, "forbidden"},
		{"the timer topic", "rmq_sys_wheel_timer", 0, 16, "forbidden"},
		{"queue that is not there", "T", 2, 29, "queueId[2]"},
		{"queue that only the write number allows", "Narrow", 3, 0, ""},
		{"queue beyond both numbers", "Narrow", 4, 29, "queueId[4]"},
		{"topic without write permission", "Closed", 0, 0, ""},
		{"the template", "TBW102", 0, 0, ""},
		{"the benchmark's topic", "BenchmarkTest", 1023, 0, ""},
		{"the trace topic", "RMQ_SYS_TRACE_TOPIC", 0, 0, ""},
		{"the cluster's topic", "DefaultCluster", 15, 0, ""},
		{"the broker's topic", "broker-a", 0, 0, ""},
		{"name of 127 bytes", strings.Repeat("t", 127), 0, 0, ""},
		{"namespace", "MQ_INST_1_2%orders", 0, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := c.send(test.topic, test.queue, "x", "")
			require.Equal(t, test.code, a.Code, a.Remark)
			require.Contains(t, a.Remark, test.remark)
			require.Equal(t, "DefaultRegion", value(a, "MSG_REGION"), "every answer of a send has it")
			require.Equal(t, "true", value(a, "TRACE_ON"))
		})
	}
}

// remoting.md §6.2 row 8: any queue that may be written to.
func TestANegativeQueueMeansAnyOfThoseToWriteTo(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.putTopic("T", 4, 2, 6)
	seen := map[string]bool{}
	for range 64 {
		a := c.send("T", -1, "x", "")
		require.Equal(t, int32(0), a.Code)
		seen[value(a, "queueId")] = true
	}
	require.Equal(t, map[string]bool{"0": true, "1": true}, seen)
	c.putTopic("T", 4, 0, 6)
	require.Equal(t, int32(29), c.send("T", -1, "x", "").Code, "there is none")
}

// remoting.md §6.2 row 3, semantics §2.4: a broker without write permission refuses order topics only.
func TestABrokerThatMayNotBeWrittenToRefusesOrderTopicsOnly(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("Plain", 1)
	c.ok(protocol.ReqUpdateAndCreateTopic, topicFields("Ordered", 1, 1, 6, ext{"order": true}), nil)
	require.Equal(t, int32(0), c.send("Ordered", 0, "x", "").Code)
	r.configure(func(c *broker.Config) { c.Permission = 4 })
	require.Equal(t, int32(0), c.send("Plain", 0, "x", "").Code)
	require.Equal(t, int32(16), c.send("Ordered", 0, "x", "").Code)
	r.configure(func(c *broker.Config) { c.Permission = 6 })
	require.Equal(t, int32(0), c.send("Ordered", 0, "x", "").Code)
}

// semantics §1; quirks 13 and 14: the limits of body and properties, to the byte.
func TestBodyAndPropertiesHaveLimits(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.MaxMessageBytes = 1000 }})
	c := r.client(t)
	c.makeTopic("T", 1)
	require.Equal(t, int32(0), c.send("T", 0, strings.Repeat("x", 1000), "").Code)
	a := c.send("T", 0, strings.Repeat("x", 1001), "")
	require.Equal(t, int32(13), a.Code)
	require.Contains(t, a.Remark, "1001")
	require.Contains(t, a.Remark, "1000")

	// What the broker adds counts too.
	base := props("UNIQ_KEY", "K")
	added := len(props("MSG_REGION", "DefaultRegion", "TRACE_ON", "true", "CLUSTER", "DefaultCluster"))
	fits := message.MaxProperties - added - len(base) - len(props("a", "b")) + 1
	require.Equal(t, int32(0), c.send("T", 0, "x", base+props("a", strings.Repeat("v", fits))).Code)
	for _, n := range []int{fits + 1, 32768, 65536, 100_000} {
		a := c.send("T", 0, "x", base+props("a", strings.Repeat("v", n)))
		require.Equal(t, int32(13), a.Code, n)
		require.Contains(t, a.Remark, "32767")
	}
	require.Len(t, c.read("T", 0, 0), 2)
}

// quirk 14: a body of exactly 4 MiB is taken, one byte more is not.
func TestTheUsualLimitOfABodyIsFourMebibytes(t *testing.T) {
	r := start(t, rigOptions{shard: func(o *shard.Options) { o.RingBytes, o.SegmentBytes = 64<<20, 64<<20 }})
	c := r.client(t)
	c.makeTopic("T", 1)
	body := strings.Repeat("0123456789abcdef", 4<<20/16)
	require.Equal(t, int64(0), c.mustSend("T", 0, body, ""))
	require.Equal(t, int32(13), c.send("T", 0, body+"x", "").Code)
	rs := c.read("T", 0, 0)
	require.Len(t, rs, 1, "one message is returned whatever its size")
	require.Equal(t, body, string(rs[0].Body))
}

// semantics §1: the broker itself has nothing against an empty body.
func TestAnEmptyBodyIsStored(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, _ *rig, c *client) {
		c.makeTopic("T", 1)
		c.mustSend("T", 0, "", props("KEYS", "k"))
		rs := c.read("T", 0, 0)
		require.Len(t, rs, 1)
		require.Empty(t, rs[0].Body)
	})
}

// remoting.md §4.3, §14.4 (20, 21), C301, C304: flags that are not the producer's.
func TestFlagsThatAClientMayNotSetAreMaskedOrRefused(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	send := func(flag int) *protocol.Command {
		return c.call(protocol.ReqSendMessage, sendFields("T", 0, "", ext{"sysFlag": flag}), []byte(fmt.Sprint(flag)))
	}
	var want []string
	for _, flag := range []int{0x10, 0x20, 0x30, 0x40, 0x80, 0xC0, 0x02, 0x08} {
		require.Equal(t, int32(0), send(flag).Code, "%#x", flag)
		want = append(want, fmt.Sprint(flag))
	}
	for _, flag := range []int{0x4, 0xC, 0x2C, 0x400, 0x700, -1} {
		a := send(flag)
		require.Equal(t, int32(13), a.Code, "%#x: %s", flag, a.Remark)
	}
	rs := c.read("T", 0, 0)
	require.Equal(t, want, bodies(rs))
	for _, rec := range rs {
		require.Zero(t, rec.SysFlag)
		require.Equal(t, storeHost, rec.StoreHost)
	}
	r.restart()
	require.Equal(t, want, bodies(r.client(t).read("T", 0, 0)), "also after a restart")
}

// semantics §28 and C012: what producers put into the broker's own properties does not lead anywhere.
func TestForgedPropertiesLeadNowhere(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.makeTopic("Victim", 1)
	forged := props("REAL_TOPIC", "Victim", "REAL_QID", "0", "TIMER_OUT_MS", "1", "MSG_REGION", "mine", "CLUSTER", "mine", "TRACE_ON", "mine")
	c.mustSend("T", 0, "x", forged)
	rs := c.read("T", 0, 0)
	require.Len(t, rs, 1)
	p := properties(rs[0])
	require.Equal(t, "mine", p["MSG_REGION"], "kept as it came, as by RocketMQ")
	r.restart()
	c = r.client(t)
	require.Empty(t, c.read("Victim", 0, 0))
	require.Zero(t, r.b.Info().Timers)
}

// C035: the last separator may be missing.
func TestAMissingLastSeparatorGluesNothingTogether(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	for _, p := range []string{"KEYS\x01k\x02TAGS\x01TagA", "KEYS\x01k\x02TAGS\x01TagA\x02", "UNIQ_KEY\x01U\x02TAGS\x01TagA"} {
		c.mustSend("T", 0, "x", p)
	}
	a := c.pull("G", "T", 0, 0, ext{"subscription": "TagA"})
	rs := records(t, a.Body)
	require.Len(t, rs, 3)
	for _, rec := range rs {
		require.Equal(t, "TagA", properties(rec)["TAGS"])
		require.Equal(t, "DefaultCluster", properties(rec)["CLUSTER"])
	}
	require.Equal(t, "U", properties(rs[2])["UNIQ_KEY"])
}

// C012: the raw string is kept; when a name occurs twice the later entry counts, as for Java, also for the index.
func TestThePropertiesStringIsKeptAsItCame(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	raw := "\x01\x02\x02a\x01\x02=\x01\x01x\x02TAGS\x01First\x02TAGS\x01Last\x02novalue\x02"
	c.mustSend("T", 0, "x", raw)
	rs := c.read("T", 0, 0)
	require.True(t, strings.HasPrefix(string(rs[0].Properties), raw), "%q", rs[0].Properties)
	for range 2 {
		require.Equal(t, int32(0), c.pull("G", "T", 0, 0, ext{"subscription": "Last"}).Code)
		require.Equal(t, int32(20), c.pull("G", "T", 0, 0, ext{"subscription": "First"}).Code)
		r.restart()
		c = r.client(t)
	}
}

// remoting.md §1.6: one-way requests are never answered, whatever happens to them.
func TestOnewaySendsAreNotAnswered(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		c.oneway(protocol.ReqSendMessage, sendFields("T", 0, "", nil), []byte("good"))
		c.oneway(protocol.ReqSendMessage, sendFields("T", 99, "", nil), []byte("no such queue"))
		c.oneway(protocol.ReqSendMessage, sendFields("a.b", 0, "", nil), []byte("bad name"))
		c.oneway(protocol.ReqSendMessage, ext{"topic": "T"}, []byte("no queue"))
		c.oneway(protocol.ReqSendMessage, sendFields("NewOne", 0, "", nil), []byte("makes a topic"))
		eventually(t, func() bool { return len(c.read("T", 0, 0)) == 1 }, "the good one is stored")
		eventually(t, func() bool { _, ok := r.b.Topic("NewOne"); return ok }, "the topic is made")
		eventually(t, func() bool { return len(c.read("NewOne", 0, 0)) == 1 }, "its message is stored")
		require.NoError(t, c.Err(), "an answer that nobody waits for ends the connection of this client")
	})
}

// remoting.md §4.1, C009: IPv6 addresses are stored in the longer form.
func TestAddressesOfVersionSixAreStoredWhole(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	six := netip.MustParseAddrPort("[2001:db8::7]:10911")
	req := broker.SendRequest{Topic: []byte("T"), BornTime: 1, BornHost: netip.MustParseAddrPort("[2001:db8::1]:1"), StoreHost: six, MaxReconsume: -1, Body: []byte("six")}
	_, _, err := r.b.ColdSend(t.Context(), &req)
	require.NoError(t, err)
	rs := c.read("T", 0, 0)
	require.Len(t, rs, 1)
	require.Equal(t, six, rs[0].StoreHost)
	require.Equal(t, int32(0x30), rs[0].SysFlag)
	a := c.ok(protocol.ReqViewMessageById, ext{"topic": "T", "offset": int64(rs[0].Position)}, nil)
	require.Equal(t, "six", string(records(t, a.Body)[0].Body))
	require.Len(t, hex.EncodeToString(message.AppendOffsetID(nil, six, 1)), 112)
}

// remoting.md §6.3: a topic made by the first send.
func TestATopicIsMadeByTheFirstSend(t *testing.T) {
	for _, test := range []struct {
		name   string
		fields ext
		want   *entry.Topic
	}{
		{"as the client asks", ext{"defaultTopicQueueNums": 4}, &entry.Topic{ReadQueues: 4, WriteQueues: 4, Perm: 6}},
		{"no more than the template", ext{"defaultTopicQueueNums": 100}, &entry.Topic{ReadQueues: 8, WriteQueues: 8, Perm: 6}},
		{"from another template", ext{"defaultTopic": "Template", "defaultTopicQueueNums": 100}, &entry.Topic{ReadQueues: 2, WriteQueues: 2, Perm: 6, MultiTag: true}},
		{"template that does not inherit", ext{"defaultTopic": "Plain"}, nil},
		{"template that is not there", ext{"defaultTopic": "Nothing"}, nil},
		{"no template", ext{"defaultTopic": ""}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := start(t, rigOptions{})
			c := r.client(t)
			c.ok(protocol.ReqUpdateAndCreateTopic, topicFields("Template", 2, 2, 7, ext{"topicFilterType": "MULTI_TAG"}), nil)
			c.makeTopic("Plain", 2)
			a := c.call(protocol.ReqSendMessage, sendFields("New", 0, "", test.fields), []byte("x"))
			got, ok := r.b.Topic("New")
			if test.want == nil {
				require.Equal(t, int32(17), a.Code)
				require.Contains(t, a.Remark, "apply first")
				require.False(t, ok)
				return
			}
			require.Equal(t, int32(0), a.Code, a.Remark)
			test.want.Name = "New"
			require.Equal(t, *test.want, got)
			require.Len(t, c.read("New", 0, 0), 1)
		})
	}
}

// remoting.md §6.3: fewer queues than the one that is asked for.
func TestATopicIsMadeEvenIfTheMessageDoesNotFitIt(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	a := c.call(protocol.ReqSendMessage, sendFields("New", 5, "", ext{"defaultTopicQueueNums": 2}), []byte("x"))
	require.Equal(t, int32(29), a.Code)
	require.Equal(t, int32(0), c.send("New", 1, "x", "").Code)
	a = c.call(protocol.ReqSendMessage, sendFields("Empty", 0, "", ext{"defaultTopicQueueNums": -3}), []byte("x"))
	require.Equal(t, int32(29), a.Code, "no queues at all")
}

// quirk 5 and docs/compat.md: the switch of automatic creation takes effect at once, in both directions.
func TestAutomaticCreationCanBeSwitched(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.AutoCreateTopics = false }})
	c := r.client(t)
	a := c.send("New", 0, "x", "")
	require.Equal(t, int32(17), a.Code)
	r.configure(func(c *broker.Config) { c.AutoCreateTopics = true })
	require.Equal(t, int32(0), c.send("New", 0, "x", "").Code)
	r.configure(func(c *broker.Config) { c.AutoCreateTopics = false })
	require.Equal(t, int32(17), c.send("Newer", 0, "x", "").Code)
	require.Equal(t, int32(0), c.send("New", 0, "x", "").Code)
}

// remoting.md §6.3: the second of two creators gets what the first one made.
func TestManySendersMakeATopicOnce(t *testing.T) {
	r := start(t, rigOptions{})
	_, before, _ := r.b.Topics()
	var answers []<-chan *protocol.Command
	for i := range 8 {
		c := r.client(t)
		answers = append(answers, c.later(protocol.ReqSendMessage, sendFields("New", 0, "", ext{"defaultTopicQueueNums": i + 1}), []byte(fmt.Sprint(i))))
	}
	for _, a := range answers {
		require.Equal(t, int32(0), wait(t, a).Code)
	}
	_, after, _ := r.b.Topics()
	require.Equal(t, before+1, after, "the topic was made once")
	require.Len(t, r.client(t).read("New", 0, 0), 8)
}

// remoting.md §6.2 and architecture: a full disk is said by code 14, and consumers go on.
func TestSendsAreRefusedWhileTheDiskIsTooFull(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.RetentionPeriod = 5 * time.Millisecond }})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.mustSend("T", 0, "before", "")
	r.configure(func(c *broker.Config) { c.DiskStopUse = -1 })
	refused := func() bool { return c.send("T", 0, "x", "").Code == protocol.RespServiceNotAvailable }
	eventually(t, refused, "sends are refused")
	a := c.send("T", 0, "x", "")
	require.Contains(t, a.Remark, "disk-stop-use")
	require.Contains(t, a.Remark, "diskSpaceWarningLevelRatio")
	require.Equal(t, "before", string(c.read("T", 0, 0)[0].Body), "consumers go on")
	r.configure(func(c *broker.Config) { c.DiskStopUse = 0.9 })
	eventually(t, func() bool { return !refused() }, "sends are accepted again by themselves")
}
