package admin

import (
	"bytes"
	"compress/zlib"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

func TestConnect(t *testing.T) {
	_, err := Connect(t.Context(), "", Options{})
	require.ErrorContains(t, err, "no server given")
	_, err = Connect(t.Context(), "127.0.0.1:1;127.0.0.1:2", Options{})
	require.ErrorContains(t, err, "127.0.0.1:1")
	require.ErrorContains(t, err, "127.0.0.1:2")

	_, s := connected(t, nil)
	c, err := Connect(t.Context(), "127.0.0.1:1;"+s.addr, Options{})
	require.NoError(t, err)
	require.Equal(t, s.addr, c.server)
	require.NoError(t, c.Close())
	_, err = c.Brokers(t.Context())
	require.Error(t, err)
}

func TestBrokersAndRoute(t *testing.T) {
	c, s := connected(t, nil)
	for range 2 {
		brokers, err := c.Brokers(t.Context())
		require.NoError(t, err)
		require.Equal(t, []Broker{{Cluster: "DefaultCluster", Name: "broker-a", Addr: s.addr}}, brokers)
	}
	require.Len(t, s.requests(protocol.ReqGetBrokerClusterInfo), 1, "it is remembered")
	r, err := c.Route(t.Context(), "VSend")
	require.NoError(t, err)
	require.Len(t, r.ReadQueues(), 4)
	require.Equal(t, Queue{Topic: "VSend", Broker: "broker-a", ID: 3, addr: s.addr}, r.WriteQueues()[3])
	require.Equal(t, "VSend", field(s.requests(protocol.ReqGetRouteinfoByTopic)[0], "topic"))
}

func TestServerThatIsABrokerOnly(t *testing.T) {
	c, s := connected(t, map[int32]string{
		protocol.ReqGetBrokerClusterInfo: "", protocol.ReqGetRouteinfoByTopic: "", protocol.ReqGetBrokerConfig: "config",
		protocol.ReqGetTopicConfig: "mqadmin/13", protocol.ReqGetAllTopicConfig: "mqadmin-more/25", protocol.ReqDeleteTopicInBroker: "mqadmin/24",
	})
	brokers, err := c.Brokers(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Broker{{Cluster: "DefaultCluster", Name: "broker-a", Addr: s.addr}}, brokers)
	r, err := c.Route(t.Context(), "VAdmin")
	require.NoError(t, err)
	require.Len(t, r.WriteQueues(), 4)
	topics, err := c.Topics(t.Context())
	require.NoError(t, err)
	require.Contains(t, names(topics), "VAdmin")
	require.NoError(t, c.DeleteTopic(t.Context(), "VAdmin"))
}

func TestNoRoute(t *testing.T) {
	c, s := connected(t, map[int32]string{protocol.ReqGetRouteinfoByTopic: "mqadmin/31"})
	_, err := c.Topic(t.Context(), "VStatic")
	require.ErrorIs(t, err, ErrNotThere)
	e, ok := errors.AsType[*Error](err)
	require.True(t, ok)
	require.Equal(t, int32(protocol.RespTopicNotExist), e.Code)
	require.Contains(t, err.Error(), "TOPIC_NOT_EXIST (17): ")
	require.Contains(t, err.Error(), "(asked "+s.addr+" for GET_ROUTEINFO_BY_TOPIC)")
	_, fresh, err := c.SendRoute(t.Context(), "VStatic")
	require.ErrorIs(t, err, ErrNotThere)
	require.False(t, fresh)
}

func TestTopics(t *testing.T) {
	c, s := connected(t, map[int32]string{
		protocol.ReqGetAllTopicListFromNameserver: "mqadmin/3", protocol.ReqGetAllTopicConfig: "mqadmin-more/25",
		protocol.ReqGetTopicConfig: "mqadmin/13", protocol.ReqUpdateAndCreateTopic: "mqadmin/15", protocol.ReqGetTopicStatsInfo: "mqadmin/12",
		protocol.ReqDeleteTopicInBroker: "mqadmin/24", protocol.ReqDeleteTopicInNamesrv: "mqadmin/25",
	})
	topics, err := c.Topics(t.Context())
	require.NoError(t, err)
	byName := map[string]Topic{}
	for _, topic := range topics {
		byName[topic.Name] = topic
	}
	require.True(t, byName["TBW102"].System)
	require.True(t, byName["broker-a"].System)
	require.False(t, byName["VAdmin"].System)
	require.Equal(t, int32(4), byName["VAdmin"].Brokers[0].WriteQueues)

	topic, err := c.Topic(t.Context(), "VAdmin")
	require.NoError(t, err)
	require.Equal(t, int32(6), topic.Brokers[0].Perm)

	config := topic.Brokers[0]
	config.Attributes = map[string]string{"message.type": "FIFO", "reserve.time": ""}
	require.NoError(t, c.PutTopic(t.Context(), "VAdmin", config))
	put := s.requests(protocol.ReqUpdateAndCreateTopic)[0]
	require.Equal(t, "+message.type=FIFO,-reserve.time", field(put, "attributes"))
	require.Equal(t, "VAdmin 4 4 6 SINGLE_TAG false", field(put, "topic")+" "+field(put, "readQueueNums")+" "+field(put, "writeQueueNums")+
		" "+field(put, "perm")+" "+field(put, "topicFilterType")+" "+field(put, "order"))
	config.Broker = "broker-z"
	require.ErrorIs(t, c.PutTopic(t.Context(), "VAdmin", config), ErrNotThere)

	stats, err := c.TopicStats(t.Context(), "VAdmin")
	require.NoError(t, err)
	require.Len(t, stats, 4)
	require.Equal(t, int32(2), stats[2].ID)
	require.Equal(t, int64(1), stats[2].Max)
	require.Positive(t, stats[2].Last)

	require.NoError(t, c.DeleteTopic(t.Context(), "VAdmin"))
	require.Len(t, s.requests(protocol.ReqDeleteTopicInNamesrv), 1)
}

func TestPutTopicRefused(t *testing.T) {
	c, _ := connected(t, map[int32]string{protocol.ReqUpdateAndCreateTopic: "mqadmin/17"})
	err := c.PutTopic(t.Context(), "TBW102", TopicConfig{ReadQueues: 2, WriteQueues: 2, Perm: 6})
	require.ErrorContains(t, err, "put topic TBW102 on broker-a: INVALID_PARAMETER (29)")
}

func TestGroups(t *testing.T) {
	c, s := connected(t, map[int32]string{
		protocol.ReqGetAllSubscriptiongroupConfig: "mqadmin-more/31", protocol.ReqUpdateAndCreateSubscriptiongroup: "mqadmin/34",
		protocol.ReqDeleteSubscriptiongroup: "mqadmin/42", protocol.ReqGetConsumerConnectionList: "mqadmin/56",
		protocol.ReqGetConsumeStats: "mqadmin/48",
	})
	g, err := c.Group(t.Context(), "CG_admin")
	require.NoError(t, err)
	require.Equal(t, int32(16), g.Brokers[0].RetryMaxTimes)
	require.False(t, g.System)
	_, err = c.Group(t.Context(), "CG_none")
	require.ErrorIs(t, err, ErrNotThere)

	config := g.Brokers[0]
	config.RetryMaxTimes, config.Orderly = 5, true
	require.NoError(t, c.PutGroup(t.Context(), "CG_admin", config))
	var sent protocol.SubscriptionGroupConfig
	require.NoError(t, protocol.ParseJSON(s.requests(protocol.ReqUpdateAndCreateSubscriptiongroup)[0].Body, &sent))
	want := protocol.NewSubscriptionGroupConfig("CG_admin")
	want.RetryMaxTimes, want.ConsumeMessageOrderly, want.Attributes = 5, true, sent.Attributes
	require.Equal(t, want, sent)
	require.Equal(t, int32(16), DefaultGroup().RetryMaxTimes)

	require.NoError(t, c.DeleteGroup(t.Context(), "CG_admin", true))
	deleted := s.requests(protocol.ReqDeleteSubscriptiongroup)[0]
	require.Equal(t, "CG_admin true", field(deleted, "groupName")+" "+field(deleted, "cleanOffset"))

	m, err := c.Members(t.Context(), "CG_admin")
	require.NoError(t, err)
	require.Len(t, m.Members, 1)
	require.Equal(t, "JAVA", m.Members[0].Language)
	require.Equal(t, []string{"broker-a"}, m.Members[0].Brokers)
	require.Equal(t, "CONSUME_PASSIVELY CLUSTERING", m.Type+" "+m.Model)
	require.NotEmpty(t, m.Subscriptions)

	progress, err := c.Progress(t.Context(), "CG_pop")
	require.NoError(t, err)
	require.Equal(t, "VPop", progress[0].Topic)
	require.Equal(t, int32(0), progress[0].ID)
	require.Equal(t, int64(7), progress[0].Committed)
	require.Zero(t, progress[0].Lag)
	require.Equal(t, "%RETRY%CG_pop_VPop", progress[len(progress)-1].Topic, "retry topics come last")
}

func TestMembersOfAGroupThatIsOffline(t *testing.T) {
	c, _ := connected(t, map[int32]string{protocol.ReqGetConsumerConnectionList: "mqadmin/57"})
	m, err := c.Members(t.Context(), "CG_off")
	require.NoError(t, err)
	require.Empty(t, m.Members)
}

func TestOffsetsAndReset(t *testing.T) {
	c, s := connected(t, map[int32]string{
		protocol.ReqGetMinOffset: "java-query/9", protocol.ReqGetMaxOffset: "java-query/8", protocol.ReqQueryConsumerOffset: "java-order/8",
		protocol.ReqSearchOffsetByTimestamp: "java-query/11", protocol.ReqInvokeBrokerToResetOffset: "mqadmin/178",
	})
	offsets, err := c.Offsets(t.Context(), "CG", "VSend")
	require.NoError(t, err)
	require.Len(t, offsets, 4)
	require.Equal(t, int64(NoOffset), offsets[0].Committed)
	first, next := offsets[0].Min, offsets[0].Max
	require.Less(t, first, next)

	for place, want := range map[Place]int64{Earliest(): first, Latest(): next, AtOffset(next): next} {
		plan, err := c.PlanReset(t.Context(), "CG", "VSend", place)
		require.NoError(t, err)
		require.Len(t, plan, 4)
		require.Equal(t, want, plan[3].To)
		require.Equal(t, int64(NoOffset), plan[3].From)
		found, err := c.Find(t.Context(), plan[3].Queue, place)
		require.NoError(t, err)
		require.Equal(t, want, found)
	}
	_, err = c.PlanReset(t.Context(), "CG", "VSend", AtOffset(next+1))
	require.ErrorContains(t, err, "has offsets")
	plan, err := c.PlanReset(t.Context(), "CG", "VSend", AtTime(1700000000000))
	require.NoError(t, err)
	require.Equal(t, "1700000000000", field(s.requests(protocol.ReqSearchOffsetByTimestamp)[0], "timestamp"))
	require.Empty(t, s.requests(protocol.ReqInvokeBrokerToResetOffset), "a plan changes nothing")

	plan[2].To = 7
	require.NoError(t, c.ApplyReset(t.Context(), "CG", plan[2:3]))
	reset := s.requests(protocol.ReqInvokeBrokerToResetOffset)[0]
	require.Equal(t, "CG VSend 2 7 true", field(reset, "group")+" "+field(reset, "topic")+" "+field(reset, "queueId")+" "+
		field(reset, "offset")+" "+field(reset, "isForce"))

	s.answers[protocol.ReqInvokeBrokerToResetOffset] = "mqadmin/57" // CONSUMER_NOT_ONLINE
	s.answers[protocol.ReqUpdateConsumerOffset] = "mqadmin/42"
	require.NoError(t, c.ApplyReset(t.Context(), "CG", plan[2:3]))
	commit := s.requests(protocol.ReqUpdateConsumerOffset)[0]
	require.Equal(t, "7", field(commit, "commitOffset"))
}

func TestSend(t *testing.T) {
	c, s := connected(t, map[int32]string{protocol.ReqSendMessageV2: "java-send/2", protocol.ReqSendBatchMessage: "java-send/7"})
	r, fresh, err := c.SendRoute(t.Context(), "VSend")
	require.NoError(t, err)
	require.False(t, fresh)
	q := r.WriteQueues()[3]
	sent, err := c.Send(t.Context(), q, Outgoing{
		Tag: "TagA", Keys: "k1 k2", Properties: [][2]string{{"color", "red"}}, Body: []byte("hello"),
	})
	require.NoError(t, err)
	require.Equal(t, "SUCCESS", sent[0].Status)
	require.Equal(t, int64(1), sent[0].Offset)
	require.Equal(t, "7F000002000051AF0000000000003F29", sent[0].OffsetID)
	request := s.requests(protocol.ReqSendMessageV2)[0]
	require.Equal(t, "color=red;KEYS=k1 k2;UNIQ_KEY="+sent[0].ID+";WAIT=true;TAGS=TagA;", shown([]byte(field(request, "i"))))
	require.Equal(t, "hello", string(request.Body))
	require.Equal(t, "3 TBW102 broker-a", field(request, "e")+" "+field(request, "c")+" "+field(request, "n"))

	sent, err = c.Send(t.Context(), q, Outgoing{Body: []byte("a")}, Outgoing{Body: []byte("b")}, Outgoing{Body: []byte("c")})
	require.NoError(t, err)
	require.Equal(t, int64(5), sent[2].Offset)
	require.Equal(t, "7F000002000051AF0000000000004608", sent[2].OffsetID)
	batch := message.NewBatchReader(s.requests(protocol.ReqSendBatchMessage)[0].Body)
	for i := range 3 {
		_, body, props, ok := batch.Next()
		require.True(t, ok)
		require.Equal(t, string('a'+rune(i)), string(body))
		key, _ := message.Property(props, message.PropertyUniqueKey)
		require.Equal(t, sent[i].ID, string(key))
	}
	_, err = c.Send(t.Context(), q, Outgoing{Properties: [][2]string{{"", "x"}}})
	require.ErrorContains(t, err, "property")
	_, err = c.Send(t.Context(), q, Outgoing{Tag: string(make([]byte, 40_000))})
	require.ErrorContains(t, err, "more than 32767")
}

func TestMessages(t *testing.T) {
	c, s := connected(t, map[int32]string{
		protocol.ReqViewMessageById: "mqadmin/87", protocol.ReqQueryMessage: "mqadmin/101", protocol.ReqPullMessage: "java-pull/14",
	})
	m, err := c.ByID(t.Context(), "", "7F000002000051AF000000000000C79E")
	require.NoError(t, err)
	require.Equal(t, "VAdmin broker-a 7F000002000051AF000000000000C79E", m.Topic+" "+m.Broker+" "+m.OffsetID)
	require.Equal(t, "51102", field(s.requests(protocol.ReqViewMessageById)[0], "offset"))

	found, err := c.ByKey(t.Context(), "VAdmin", "ak1", false, 5)
	require.NoError(t, err)
	require.NotEmpty(t, found)
	require.Contains(t, found[0].Keys, "ak1")

	m, err = c.ByID(t.Context(), "VAdmin", found[0].ID)
	require.NoError(t, err)
	require.Equal(t, found[0].ID, m.ID)
	require.Equal(t, "true", field(s.requests(protocol.ReqQueryMessage)[1], "_UNIQUE_KEY_QUERY"))
	_, err = c.ByID(t.Context(), "", found[0].ID)
	require.ErrorContains(t, err, "the topic is needed")
	s.answers[protocol.ReqQueryMessage] = "mqadmin/105"
	_, err = c.ByID(t.Context(), "VAdmin", found[0].ID)
	require.ErrorIs(t, err, ErrNotThere)

	q := Queue{Topic: "VPull", Broker: "broker-a", ID: 1}
	p, err := c.Pull(t.Context(), q, 2, 10, "a || b", time.Second)
	require.NoError(t, err)
	require.Empty(t, p.Messages)
	require.Equal(t, int64(2), p.Next)
	pull := s.requests(protocol.ReqPullMessage)[0]
	require.Equal(t, "6 1000 a || b", field(pull, "sysFlag")+" "+field(pull, "suspendTimeoutMillis")+" "+field(pull, "subscription"))
}

func TestUnpack(t *testing.T) {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write([]byte("hello"))
	require.NoError(t, z.Close())
	for _, c := range []struct {
		body, want, packed string
		flag               int32
	}{
		{"plain", "plain", "", 0},
		{b.String(), "hello", "", message.FlagCompressed},
		{b.String(), "hello", "", message.FlagCompressed | message.FlagCompressionZLIB},
		{"no zlib", "no zlib", "ZLIB", message.FlagCompressed},
		{"x", "x", "LZ4", message.FlagCompressed | message.FlagCompressionLZ4},
		{"x", "x", "ZSTD", message.FlagCompressed | message.FlagCompressionZSTD},
		{"x", "x", "unknown", message.FlagCompressed | 0x400},
	} {
		m := ToMessage("b", &message.Record{Body: []byte(c.body), SysFlag: c.flag})
		require.Equal(t, c.want+" "+c.packed, string(m.Body)+" "+m.Packed)
	}
}

func TestHolder(t *testing.T) {
	brokers := []Broker{{Addr: "10.0.0.1:10911"}, {Addr: "broker.example:20911"}, {Addr: "10.0.0.2:10911"}}
	for addr, want := range map[string]string{"10.0.0.2:10911": "10.0.0.2:10911", "192.0.2.1:20911": "broker.example:20911", "192.0.2.1:1": ""} {
		b, ok := holder(brokers, netip.MustParseAddrPort(addr))
		require.Equal(t, want != "", ok)
		require.Equal(t, want, b.Addr)
	}
	_, ok := holder(brokers[:1], netip.MustParseAddrPort("192.0.2.1:1"))
	require.True(t, ok)
}

func TestConfig(t *testing.T) {
	c, s := connected(t, map[int32]string{
		protocol.ReqGetBrokerConfig: "config", protocol.ReqUpdateBrokerConfig: "mqadmin/75", protocol.ReqGetBrokerRuntimeInfo: "mqadmin-more/29",
	})
	config, err := c.Config(t.Context(), s.addr)
	require.NoError(t, err)
	require.Equal(t, "broker-a", config["brokerName"])
	require.NoError(t, c.SetConfig(t.Context(), s.addr, map[string]string{"b": "x=y\\z", "a": "1"}))
	require.Equal(t, "a=1\nb=x\\=y\\\\z\n", string(s.requests(protocol.ReqUpdateBrokerConfig)[0].Body))
	require.Equal(t, map[string]string{"a": "1", "b": `x=y\z`, "c": "l1\nl2"}, parseProperties("# no\na = 1\nb=x\\=y\\\\z\r\nc=l1\\nl2\n\nno value"))
	info, err := c.Runtime(t.Context(), s.addr)
	require.NoError(t, err)
	require.NotEmpty(t, info["brokerVersionDesc"])
}
