package remotingdoor_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

// remoting.md §1.6: an unknown code.
func TestAnUnknownCodeIsAnswered(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, _ *rig, c *client) {
		for _, code := range []int32{0, 1, 9, 999, 30000} {
			a := c.call(code, nil, nil)
			require.Equal(t, int32(3), a.Code)
			require.Equal(t, fmt.Sprintf(" request type %d not supported", code), a.Remark)
		}
		c.oneway(9999, nil, nil)
		c.makeTopic("T", 1)
		require.NoError(t, c.Err())
	})
}

// remoting.md §1.6, §3: codes that are known but not served are said so, too (docs/compat.md).
func TestWhatIsNotServedIsSaidSo(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	for _, code := range []int32{
		protocol.ReqPopMessage, protocol.ReqAckMessage, protocol.ReqChangeMessageInvisibletime, protocol.ReqQueryAssignment, protocol.ReqRecallMessage,
	} {
		require.Equal(t, int32(3), c.call(code, nil, nil).Code, protocol.ReqName(code))
	}
}

// every is all requests that are served, with good fields.
func every() map[int32]ext {
	pull := pullFields("G", "T", 0, 0, nil)
	return map[int32]ext{
		protocol.ReqSendMessage: sendFields("T", 0, props("KEYS", "k"), nil), protocol.ReqSendMessageV2: sendFields("T", 0, "", nil),
		protocol.ReqSendBatchMessage: batchFields("T", 0, ""), protocol.ReqPullMessage: pull, protocol.ReqLitePullMessage: pull,
		protocol.ReqQueryConsumerOffset:     {"consumerGroup": "G", "topic": "T", "queueId": 0, "setZeroIfNotFound": true},
		protocol.ReqUpdateConsumerOffset:    {"consumerGroup": "G", "topic": "T", "queueId": 0, "commitOffset": 0},
		protocol.ReqGetMaxOffset:            {"topic": "T", "queueId": 0, "committed": true},
		protocol.ReqGetMinOffset:            {"topic": "T", "queueId": 0},
		protocol.ReqSearchOffsetByTimestamp: {"topic": "T", "queueId": 0, "timestamp": 0, "boundaryType": "LOWER"},
		protocol.ReqGetEarliestMsgStoretime: {"topic": "T", "queueId": 0},
		protocol.ReqSendReplyMessage:        replyFields(forClient("c"), nil), protocol.ReqSendReplyMessageV2: replyFields(forClient("c"), nil),
		protocol.ReqConsumerSendMsgBack: backFields("G", 0, 0, ext{"maxReconsumeTimes": 3}),
		protocol.ReqViewMessageById:     {"topic": "T", "offset": 0},
		protocol.ReqQueryMessage:        {"topic": "T", "key": "k", "maxNum": 32, "beginTimestamp": 0, "endTimestamp": int64(math.MaxInt64), "indexType": "K", "_UNIQUE_KEY_QUERY": false},
		protocol.ReqEndTransaction: {
			"topic": "T", "producerGroup": "P", "tranStateTableOffset": 0, "commitLogOffset": 0, "commitOrRollback": 8, "fromTransactionCheck": false,
			"msgId": "K", "transactionId": "K",
		},
		protocol.ReqResumeCheckHalfMessage: {"topic": "TRANS_CHECK_MAX_TIME_TOPIC", "msgId": "7F000002000051AF0000000000001CE5"},
		protocol.ReqHeartBeat:              {}, protocol.ReqUnregisterClient: {"clientID": "c", "producerGroup": "P", "consumerGroup": "G"},
		protocol.ReqGetConsumerListByGroup: {"consumerGroup": "G"}, protocol.ReqCheckClientConfig: {},
		protocol.ReqLockBatchMq: {}, protocol.ReqUnlockBatchMq: {},
		protocol.ReqUpdateAndCreateTopic: topicFields("T", 1, 1, 6, nil), protocol.ReqUpdateAndCreateTopicList: {},
		protocol.ReqDeleteTopicInBroker:              {"topic": "Doomed"},
		protocol.ReqGetAllTopicConfig:                {"topicSeq": 0, "maxTopicNum": 10, "dataVersion": ""},
		protocol.ReqGetTopicConfig:                   {"topic": "T", "lo": true},
		protocol.ReqUpdateAndCreateSubscriptiongroup: {}, protocol.ReqUpdateAndCreateSubscriptiongroupList: {},
		protocol.ReqDeleteSubscriptiongroup:       {"groupName": "Doomed", "cleanOffset": true},
		protocol.ReqGetAllSubscriptiongroupConfig: {"groupSeq": 0, "maxGroupNum": 10, "dataVersion": ""},
		protocol.ReqGetSubscriptiongroupConfig:    {"group": "G"},
		protocol.ReqGetTopicStatsInfo:             {"topic": "T"},
		protocol.ReqGetConsumeStats:               {"consumerGroup": "G", "topic": "T", "topicList": "T;U"},
		protocol.ReqGetConsumerConnectionList:     {"consumerGroup": "G"},
		protocol.ReqGetProducerConnectionList:     {"producerGroup": "P"},
		protocol.ReqQueryTopicConsumeByWho:        {"topic": "T"},
		protocol.ReqQueryTopicsByConsumer:         {"group": "G"},
		protocol.ReqGetAllConsumerOffset:          {},
		protocol.ReqInvokeBrokerToResetOffset:     resetFields("G", "T", 0, 0, 0),
		protocol.ReqGetBrokerConfig:               {}, protocol.ReqUpdateBrokerConfig: {}, protocol.ReqGetBrokerRuntimeInfo: {},
		protocol.ReqGetSystemTopicListFromBroker: {},
	}
}

// odd are values that no client should send.
var odd = []string{
	"", "-1", "-2147483649", "2147483648", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1e3", "0x10", "null", "true",
	"\x00", "\xff\xfe\xfd", "a.b", "%RETRY%", "%DLQ%", "%RETRY%%RETRY%G", "%", "|", "\u4f60\u597d", "SCHEDULE_TOPIC_XXXX", "TBW102", "rmq_sys_wheel_timer",
	strings.Repeat("x", 128), strings.Repeat("y", 70_000), "{\"a\":1}", "'; drop", "T\x01U", "T\x02U",
}

// remoting.md §1.6, §14.4 (19): every request is answered, whatever is missing or odd in it, and the broker goes on.
func TestOddHeadersAreAnswered(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 1)
		c.makeGroup("G", nil)
		c.mustSend("T", 0, "x", "")
		for code, fields := range every() {
			c.call(code, nil, nil)
			c.call(code, fields, []byte("{"))
			for name := range fields {
				for _, v := range odd {
					f := maps.Clone(fields)
					f[name] = v
					if (code == protocol.ReqPullMessage || code == protocol.ReqLitePullMessage) && name == "sysFlag" {
						f["suspendTimeoutMillis"] = 0
					}
					a := c.call(code, f, nil)
					require.NotContains(t, a.Remark, "see its log", "%s %s=%q", protocol.ReqName(code), name, v)
				}
				delete(fields, name)
				c.call(code, fields, nil)
			}
		}
		require.Equal(t, "x", string(c.read("T", 0, 0)[0].Body))
		require.NoError(t, r.b.Shard().Failure())
		r.restart()
		c = r.client(t)
		require.Equal(t, "x", string(c.read("T", 0, 0)[0].Body), "the log can be folded again")
	})
}

// remoting.md §1.9: bodies of any kind are answered.
func TestOddBodiesAreAnswered(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.makeGroup("G", nil)
	deep := strings.Repeat("[", 100_000)
	for code, fields := range every() {
		for _, body := range []string{"{}", "[]", "null", "1", `"x"`, "{{}:{}}", `{"clientID":{}}`, `{"clientId":[],"consumerGroup":{}}`, deep, "\xff\xff", `{"topicConfigList":[null]}`, `{"groupConfigList":[null]}`, `{"mqSet":[null]}`, `{"consumerDataSet":[null]}`} {
			a := c.call(code, fields, []byte(body))
			require.NotContains(t, a.Remark, "see its log", "%s %.40s", protocol.ReqName(code), body)
		}
	}
	require.NoError(t, r.b.Shard().Failure())
}

// remoting.md §4: invalid UTF-8 in bodies and properties is data; in names it is refused.
func TestBytesThatAreNoTextAreKept(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.encoding = protocol.Binary // JSON cannot carry them
	c.makeTopic("T", 1)
	p := "KEYS\x01\xff\xfe\x02TAGS\x01\xc3\x28\x02"
	require.Equal(t, int64(0), c.mustSend("T", 0, "\xff\x00\xfe", p))
	rec := c.read("T", 0, 0)[0]
	require.Equal(t, "\xff\x00\xfe", string(rec.Body))
	require.True(t, strings.HasPrefix(string(rec.Properties), p))
	require.Equal(t, int32(29), c.send("\xff", 0, "x", "").Code)
	require.Equal(t, int32(26), c.pull("\xff", "T", 0, 0, nil).Code)
	a := c.send("T", 0, "x", "UNIQ_KEY\x01\xff\xfe\x02")
	require.Equal(t, "\xff\xfe", value(a, "transactionId"))
	c.encoding = protocol.JSON
	require.Equal(t, int32(0), c.send("T", 0, "x", "UNIQ_KEY\x01\"quote\\ \x02").Code)
}

// remoting.md §2.1.1: names in JSON may be escaped, and numbers bare (§14.2).
func TestHeadersOfOtherWritersAreRead(t *testing.T) {
	r := start(t, rigOptions{})
	r.client(t).makeTopic("T", 1)
	conn, err := net.Dial("tcp", r.addr)
	require.NoError(t, err)
	defer conn.Close()
	for i, header := range []string{
		`{"code":310,"extFields":{"a":"PG","b":"\u0054","c":"TBW102","d":4,"e":0,"f":0,"g":5,"h":0,"i":"KEYS\u0001k\u0002TAGS\u0001Tag\u0041\u0002","j":0,"k":false,"m":false},"flag":0,"language":"CPP","opaque":7,"version":333}` + "\n",
		` { "opaque" : 7 , "code" : 10 , "extFields" : { "topic" : "T" , "queueId" : "0" , "properties" : "TAGS\u0001TagA" } } `,
	} {
		frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+1))
		frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
		frame = append(append(frame, header...), 'x')
		_, err = conn.Write(frame)
		require.NoError(t, err)
		var size [4]byte
		_, err = readFull(conn, size[:])
		require.NoError(t, err)
		rest := make([]byte, binary.BigEndian.Uint32(size[:]))
		_, err = readFull(conn, rest)
		require.NoError(t, err)
		var a protocol.Command
		require.NoError(t, a.Decode(append(size[:], rest...)))
		require.Equal(t, int32(0), a.Code, a.Remark)
		require.Equal(t, int32(7), a.Opaque)
		require.Equal(t, fmt.Sprint(i), value(&a, "queueOffset"))
	}
	rs := records(t, r.client(t).pull("G", "T", 0, 0, ext{"subscription": "TagA"}).Body)
	require.Len(t, rs, 2)
}

func readFull(conn net.Conn, b []byte) (int, error) {
	n := 0
	for n < len(b) {
		k, err := conn.Read(b[n:])
		if err != nil {
			return n, err
		}
		n += k
	}
	return n, nil
}

// C002: what two connections send in pieces at the same time is never mixed, and a frame that is cut off leaves nothing.
func TestFramesOfConnectionsAreNotMixed(t *testing.T) {
	for _, noLoop := range []bool{false, true} {
		r := start(t, rigOptions{noLoop: noLoop})
		c := r.client(t)
		c.makeTopic("T", 2)
		rng := rand.New(rand.NewPCG(1, 2))
		frame := func(queue, n int) []byte {
			body := strings.Repeat(string(rune('a'+queue)), 100+n*37%900)
			return c.command(protocol.ReqSendMessage, sendFields("T", queue, "", nil), []byte(body)).Append(nil)
		}
		conns := make([]net.Conn, 2)
		var unsent [2][]byte
		for q := range conns {
			var err error
			conns[q], err = net.Dial("tcp", r.addr)
			require.NoError(t, err)
			for n := range 50 {
				unsent[q] = append(unsent[q], frame(q, n)...)
			}
			unsent[q] = append(unsent[q], frame(q, 0)[:60]...) // and a piece
		}
		for len(unsent[0])+len(unsent[1]) > 0 {
			q := rng.IntN(2)
			n := min(rng.IntN(400)+1, len(unsent[q]))
			_, err := conns[q].Write(unsent[q][:n])
			require.NoError(t, err)
			unsent[q] = unsent[q][n:]
		}
		for q := range conns {
			eventually(t, func() bool {
				return value(c.ok(protocol.ReqGetMaxOffset, ext{"topic": "T", "queueId": q}, nil), "offset") == "50"
			}, "all whole frames are stored")
			conns[q].Close()
			for _, rec := range records(t, c.pull("G", "T", q, 0, ext{"maxMsgNums": 100}).Body) {
				require.Empty(t, strings.Trim(string(rec.Body), string(rune('a'+q))))
			}
		}
		require.Equal(t, int64(50), c.mustSend("T", 0, "next", ""))
	}
}

// remoting.md §1.6: deferred answers come with the opaque of their request, in whatever order.
func TestManyRequestsOfOneConnectionAreUnderWayAtOnce(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		c.makeTopic("T", 4)
		c.makeGroup("G", nil)
		var waits, sends, cold []<-chan *protocol.Command
		for i := range 200 {
			waits = append(waits, c.pullLater("G", "T", 3, 0, nil))
			sends = append(sends, c.later(protocol.ReqSendMessage, sendFields("T", i%3, "", nil), []byte(fmt.Sprint(i))))
			cold = append(cold, c.later(protocol.ReqGetTopicConfig, ext{"topic": "T"}, nil))
		}
		offsets := map[string]bool{}
		for i := range sends {
			a := wait(t, sends[i])
			require.Equal(t, fmt.Sprint(i%3), value(a, "queueId"))
			offsets[value(a, "queueId")+" "+value(a, "queueOffset")] = true
			require.Equal(t, int32(0), wait(t, cold[i]).Code)
		}
		require.Len(t, offsets, 200)
		r.untilWaiting(200)
		c.mustSend("T", 3, "x", "")
		for i := range waits {
			require.Equal(t, int32(0), wait(t, waits[i]).Code)
		}
	})
}

// What is refused is refused alone: of requests in one pass, the others go on.
func TestARefusalTouchesNoNeighbour(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, _ *rig, c *client) {
		c.makeTopic("T", 1)
		var good, bad []<-chan *protocol.Command
		for i := range 100 {
			good = append(good, c.later(protocol.ReqSendMessage, sendFields("T", 0, "", nil), []byte(fmt.Sprint(i))))
			bad = append(bad,
				c.later(protocol.ReqSendMessage, sendFields("T", 5, "", nil), []byte("no queue")),
				c.later(protocol.ReqSendMessage, sendFields("T", 0, strings.Repeat("x", 32767), nil), []byte("too many properties")),
				c.later(protocol.ReqSendBatchMessage, batchFields("T", 0, ""), append(batch(batchMember{0, "part", ""}), 1, 2, 3)),
			)
		}
		for i, g := range good {
			a := wait(t, g)
			require.Equal(t, int32(0), a.Code)
			require.Equal(t, fmt.Sprint(i), value(a, "queueOffset"))
		}
		for _, b := range bad {
			require.NotEqual(t, int32(0), wait(t, b).Code)
		}
		rs := records(t, c.pull("G", "T", 0, 0, ext{"maxMsgNums": 1000}).Body)
		require.Len(t, rs, 100)
		for i, r := range rs {
			require.Equal(t, fmt.Sprint(i), string(r.Body))
		}
	})
}
