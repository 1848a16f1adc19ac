package remotingdoor_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

func parse[T any](t testing.TB, a *protocol.Command) T {
	t.Helper()
	require.Equal(t, int32(0), a.Code, a.Remark)
	var body T
	require.NoError(t, protocol.ParseJSON(a.Body, &body), string(a.Body))
	return body
}

func queueOf(topic string, id int32) protocol.MessageQueue {
	return protocol.MessageQueue{BrokerName: "broker-a", Topic: topic, QueueId: id}
}

// remoting.md §2.8, code 202.
func TestTheStateOfATopicIsTold(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, _ *rig, c *client) {
		c.putTopic("T", 2, 3, 6)
		for range 4 {
			c.mustSend("T", 1, "x", "")
		}
		rs := c.read("T", 1, 0)
		body := parse[protocol.TopicStatsTable](t, c.call(protocol.ReqGetTopicStatsInfo, ext{"topic": "T"}, nil))
		require.Equal(t, map[protocol.MessageQueue]protocol.TopicOffset{
			queueOf("T", 0): {}, queueOf("T", 2): {},
			queueOf("T", 1): {MaxOffset: 4, LastUpdateTimestamp: rs[3].StoreTime},
		}, body.OffsetTable)
		require.Equal(t, int32(17), c.call(protocol.ReqGetTopicStatsInfo, ext{"topic": "Nothing"}, nil).Code)
	})
}

// remoting.md §2.8, code 208.
func TestTheProgressOfAGroupIsTold(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	for _, topic := range []string{"T", "U"} {
		c.makeTopic(topic, 2)
		for range 5 {
			c.mustSend(topic, 0, "x", "")
		}
		require.Equal(t, int32(0), c.commit("G", topic, 0, 3).Code)
	}
	ask := func(f ext) map[protocol.MessageQueue]protocol.OffsetWrapper {
		f["consumerGroup"] = "G"
		return parse[protocol.ConsumeStats](t, c.call(protocol.ReqGetConsumeStats, f, nil)).OffsetTable
	}
	at := c.read("T", 0, 2)[0].StoreTime
	t0 := protocol.OffsetWrapper{BrokerOffset: 5, ConsumerOffset: 3, PullOffset: 3, LastTimestamp: at}
	require.Equal(t, map[protocol.MessageQueue]protocol.OffsetWrapper{queueOf("T", 0): t0, queueOf("T", 1): {}}, ask(ext{"topic": "T"}))
	require.Len(t, ask(ext{}), 4, "all topics in which it has offsets")
	require.Len(t, ask(ext{"topicList": "T;U;Nothing"}), 4)
	require.Empty(t, ask(ext{"topic": "Nothing"}))

	c.join("c1", "G", "T") // now only what it subscribes counts
	table := ask(ext{})
	require.Contains(t, table, queueOf("T", 0))
	require.NotContains(t, table, queueOf("U", 0))
	require.Len(t, ask(ext{"topicList": "U"}), 2, "but for what is asked for by name")
	require.Empty(t, parse[protocol.ConsumeStats](t, c.call(protocol.ReqGetConsumeStats, ext{"consumerGroup": "Nobody"}, nil)).OffsetTable)
}

// remoting.md §2.8, codes 203 and 204.
func TestConnectionsAreTold(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, r *rig, c *client) {
		a := c.call(protocol.ReqGetConsumerConnectionList, ext{"consumerGroup": "G"}, nil)
		require.Equal(t, int32(206), a.Code)
		require.Equal(t, "the consumer group[G] not online", a.Remark)
		a = c.call(protocol.ReqGetProducerConnectionList, ext{"producerGroup": "P"}, nil)
		require.Equal(t, int32(1), a.Code)
		require.Equal(t, "the producer group[P] not exist", a.Remark)

		member := r.client(t)
		member.version, member.language = 317, protocol.LanguageGo
		h := heartbeat("go@1", consumer("G", subscription("T", "TagA || TagB", 7)))
		h.ProducerDataSet = []protocol.ProducerData{{GroupName: "P"}}
		member.beat(h)
		connection := protocol.Connection{ClientAddr: member.Local().String(), ClientId: "go@1", Language: "GO", Version: 317}
		body := parse[protocol.ConsumerConnection](t, c.call(protocol.ReqGetConsumerConnectionList, ext{"consumerGroup": "G"}, nil))
		require.Equal(t, []protocol.Connection{connection}, body.ConnectionSet)
		require.Equal(t, protocol.FromLastOffset, body.ConsumeFromWhere)
		require.Equal(t, protocol.ConsumePassively, body.ConsumeType)
		require.Equal(t, protocol.Clustering, body.MessageModel)
		require.Equal(t, protocol.SubscriptionData{
			Topic: "T", SubString: "TagA || TagB", SubVersion: 7, ExpressionType: "TAG", TagsSet: []string{"TagA", "TagB"}, CodeSet: []int32{2598919, 2598920},
		}, body.SubscriptionTable["T"])
		require.Contains(t, body.SubscriptionTable, "%RETRY%G")
		producers := parse[protocol.ProducerConnection](t, c.call(protocol.ReqGetProducerConnectionList, ext{"producerGroup": "P"}, nil))
		require.Equal(t, []protocol.Connection{connection}, producers.ConnectionSet)
	})
}

// remoting.md §2.8, codes 300 and 343.
func TestWhoConsumesWhatIsTold(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.makeTopic("U", 1)
	groups := func(topic string) []string {
		return parse[protocol.GroupList](t, c.call(protocol.ReqQueryTopicConsumeByWho, ext{"topic": topic}, nil)).GroupList
	}
	topics := func(group string) protocol.TopicList {
		return parse[protocol.TopicList](t, c.call(protocol.ReqQueryTopicsByConsumer, ext{"group": group}, nil))
	}
	require.Equal(t, []string{}, groups("T"))
	require.Equal(t, []string{}, topics("G").TopicList)
	c.commit("G", "T", 0, 0)
	c.commit("G", "U", 0, 0)
	c.join("c1", "H", "T")
	require.Equal(t, []string{"G", "H"}, groups("T"), "with offsets there, or subscribing it")
	require.Equal(t, []string{"G"}, groups("U"))
	require.Equal(t, []string{"T", "U"}, topics("G").TopicList)
	require.Equal(t, storeHost.String(), topics("G").BrokerAddr)
}

// remoting.md §12.2, quirk 7: the keys that clusterList and the exporter read, all of them numbers where they parse numbers.
func TestRuntimeInfoHasTheKeysThatToolsParse(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	c.mustSend("T", 0, "x", props("DELAY", "18"))
	c.read("T", 0, 0)
	table := parse[protocol.KVTable](t, c.call(protocol.ReqGetBrokerRuntimeInfo, nil, nil)).Table
	for _, key := range []string{
		"brokerVersion", "bootTimestamp", "earliestMessageTimeStamp", "startAcceptSendRequestTimeStamp", "putMessageTimesTotal", "putMessageSizeTotal",
		"putMessageAverageSize", "putMessageEntireTimeMax", "putMessageFailedTimes", "getMessageEntireTimeMax", "putLatency99", "putLatency999",
		"msgPutTotalYesterdayMorning", "msgPutTotalTodayMorning", "msgPutTotalTodayNow", "msgGetTotalYesterdayMorning", "msgGetTotalTodayMorning",
		"msgGetTotalTodayNow", "commitLogDiskRatio", "consumeQueueDiskRatio", "commitLogMinOffset", "commitLogMaxOffset", "dispatchBehindBytes",
		"dispatchMaxBuffer", "pageCacheLockTimeMills", "timerReadBehind", "timerOffsetBehind", "timerCongestNum", "timerEnqueueTps", "timerDequeueTps",
		"remainTransientStoreBufferNumbs", "EndTransactionQueueSize", "EndTransactionThreadPoolQueueCapacity", "sendThreadPoolQueueSize",
		"sendThreadPoolQueueCapacity", "sendThreadPoolQueueHeadWaitTimeMills", "pullThreadPoolQueueSize", "pullThreadPoolQueueCapacity",
		"pullThreadPoolQueueHeadWaitTimeMills", "queryThreadPoolQueueSize", "queryThreadPoolQueueCapacity", "queryThreadPoolQueueHeadWaitTimeMills",
		"litePullThreadPoolQueueSize", "ackThreadPoolQueueSize",
	} {
		_, err := strconv.ParseFloat(table[key], 64)
		require.NoError(t, err, "%s=%q", key, table[key])
	}
	for _, key := range []string{"putTps", "getTransferredTps", "getTransferedTps", "getFoundTps", "getMissTps", "getTotalTps"} {
		parts := strings.Split(table[key], " ")
		require.Len(t, parts, 3, "%s=%q", key, table[key])
		for _, p := range parts {
			_, err := strconv.ParseFloat(p, 64)
			require.NoError(t, err, "%s=%q", key, table[key])
		}
	}
	for bucket := range strings.SplitSeq(strings.TrimSpace(table["putMessageDistributeTime"]), " ") {
		require.Regexp(t, `^\[[^:\]]+\]:\d+$`, bucket)
	}
	require.Equal(t, "true", table["brokerActive"])
	require.Equal(t, "V5_5_0", table["brokerVersionDesc"])
	require.Equal(t, "1", table["msgPutTotalTodayNow"])
	require.Equal(t, "1", table["timerCongestNum"])
	require.Regexp(t, `^\[ \d+ days, \d+ hours, \d+ minutes, \d+ seconds \]$`, table["runtime"])
	require.Regexp(t, `^Total : [\d.]+ GiB, Free : [\d.]+ GiB\.$`, table["commitLogDirCapacity"])
	require.Regexp(t, `^\d+ B$`, table["remainHowManyDataToFlush"])
}

// remoting.md §2.10, code 26.
func TestSettingsAreTold(t *testing.T) {
	r := start(t, rigOptions{settings: map[string]string{"brokerName": "broker-a", "fileReservedTime": "72"}})
	c := r.client(t)
	a := c.ok(protocol.ReqGetBrokerConfig, nil, nil)
	require.Equal(t, "brokerName=broker-a\nfileReservedTime=72\n", string(a.Body))
	var version protocol.DataVersion
	require.NoError(t, protocol.ParseJSON([]byte(value(a, "version")), &version))
	require.Positive(t, version.Timestamp)
}

// remoting.md §2.10, code 25.
func TestSettingsAreChangedAllOrNone(t *testing.T) {
	calls := make(chan map[string]string, 10)
	set := func(_ context.Context, changes map[string]string, actor string) error {
		if changes["bad"] != "" {
			return errors.New("bad is no setting")
		}
		require.NotEmpty(t, actor)
		calls <- changes
		return nil
	}
	r := start(t, rigOptions{set: set})
	c := r.client(t)
	c.ok(protocol.ReqUpdateBrokerConfig, nil, []byte("# comment\nbrokerPermission=4\nname = v\u00e9 ${x}\n"))
	require.Equal(t, map[string]string{"brokerPermission": "4", "name": "v\u00e9 ${x}"}, <-calls)
	for _, key := range []string{"brokerConfigPath", "rocketmqHome", "configBlackList"} {
		a := c.call(protocol.ReqUpdateBrokerConfig, nil, []byte("brokerPermission=6\n"+key+"=/etc\n"))
		require.Equal(t, int32(16), a.Code)
		require.Contains(t, a.Remark, key)
	}
	a := c.call(protocol.ReqUpdateBrokerConfig, nil, []byte("bad=1"))
	require.Equal(t, int32(1), a.Code)
	require.Contains(t, a.Remark, "bad is no setting")
	require.Equal(t, int32(1), c.call(protocol.ReqUpdateBrokerConfig, nil, []byte("a=\\u00zz")).Code)
	require.Empty(t, calls)

	fixed := start(t, rigOptions{}).client(t)
	require.Equal(t, int32(1), fixed.call(protocol.ReqUpdateBrokerConfig, nil, []byte("a=b")).Code)
}
