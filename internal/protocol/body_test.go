package protocol

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var requestBodies = map[int32]func() any{
	ReqUpdateAndCreateTopicList:             func() any { return new(TopicConfigList) },
	ReqHeartBeat:                            func() any { return new(HeartbeatData) },
	ReqLockBatchMq:                          func() any { return new(LockBatchRequest) },
	ReqUnlockBatchMq:                        func() any { return new(LockBatchRequest) },
	ReqCheckClientConfig:                    func() any { return new(CheckClientRequest) },
	ReqRegisterBroker:                       func() any { return new(RegisterBrokerBody) },
	ReqUpdateAndCreateSubscriptiongroup:     func() any { return new(SubscriptionGroupConfig) },
	ReqUpdateAndCreateSubscriptiongroupList: func() any { return new(SubscriptionGroupList) },
	ReqQueryAssignment:                      func() any { return new(QueryAssignmentRequest) },
	ReqSetMessageRequestMode:                func() any { return new(SetMessageRequestMode) },
	ReqUpdateAndCreateStaticTopic:           func() any { return new(TopicQueueMappingDetail) },
	ReqAuthCreateUser:                       func() any { return new(UserInfo) },
	ReqAuthUpdateUser:                       func() any { return new(UserInfo) },
	ReqAuthCreateAcl:                        func() any { return new(AclInfo) },
	ReqAuthUpdateAcl:                        func() any { return new(AclInfo) },
}

var responseBodies = map[int32]func() any{
	ReqGetAllTopicConfig:             func() any { return new(TopicConfigWrapper) },
	ReqGetBrokerRuntimeInfo:          func() any { return new(KVTable) },
	ReqGetConsumerListByGroup:        func() any { return new(ConsumerIdList) },
	ReqLockBatchMq:                   func() any { return new(LockBatchResponse) },
	ReqGetRouteinfoByTopic:           func() any { return new(TopicRouteData) },
	ReqGetBrokerClusterInfo:          func() any { return new(ClusterInfo) },
	ReqGetAllSubscriptiongroupConfig: func() any { return new(SubscriptionGroupWrapper) },
	ReqGetTopicStatsInfo:             func() any { return new(TopicStatsTable) },
	ReqGetConsumerConnectionList:     func() any { return new(ConsumerConnection) },
	ReqGetProducerConnectionList:     func() any { return new(ProducerConnection) },
	ReqGetAllTopicListFromNameserver: func() any { return new(TopicList) },
	ReqGetConsumeStats:               func() any { return new(ConsumeStats) },
	ReqInvokeBrokerToResetOffset:     func() any { return new(ResetOffsetBody) },
	ReqQueryTopicConsumeByWho:        func() any { return new(GroupList) },
	ReqGetSystemTopicListFromBroker:  func() any { return new(TopicList) },
	ReqGetConsumerRunningInfo:        func() any { return new(ConsumerRunningInfo) },
	ReqConsumeMessageDirectly:        func() any { return new(ConsumeMessageDirectlyResult) },
	ReqViewBrokerStatsData:           func() any { return new(BrokerStatsData) },
	ReqGetBrokerConsumeStats:         func() any { return new(ConsumeStatsList) },
	ReqQueryConsumeQueue:             func() any { return new(QueryConsumeQueueResponse) },
	ReqGetAllProducerInfo:            func() any { return new(ProducerTableInfo) },
	ReqGetTopicConfig:                func() any { return new(TopicConfigAndQueueMapping) },
	ReqQueryAssignment:               func() any { return new(QueryAssignmentResponse) },
	ReqGetBrokerHaStatus:             func() any { return new(HARuntimeInfo) },
	ReqAuthGetUser:                   func() any { return new(UserInfo) },
	ReqAuthListUser:                  func() any { return new([]UserInfo) },
	ReqAuthGetAcl:                    func() any { return new(AclInfo) },
	ReqAuthListAcl:                   func() any { return new([]AclInfo) },
	ReqGetColdDataFlowCtrInfo:        func() any { return new(map[string]Raw) },
	ReqCheckRocksdbCqWriteProgress:   func() any { return new(map[string]Raw) },
	ReqGetBrokerLiteInfo:             func() any { return new(map[string]Raw) },
}

// TestVectorsBodies reads every recorded JSON body into its struct, writes it and
// compares the meaning with what another decoder saw.
func TestVectorsBodies(t *testing.T) {
	seen := 0
	for _, v := range vectors(t) {
		for side, f := range v.frames() {
			if f.Body == nil || f.Body.JSON == nil {
				continue
			}
			t.Run(v.ID+"/"+side, func(t *testing.T) {
				var c Command
				require.NoError(t, c.Decode(f.bytes(t)))
				want := parseAny(t, f.Body.JSON)
				sameJSON(t, "", want, parseAny(t, c.Body))

				make := map[string]map[int32]func() any{"request": requestBodies, "response": responseBodies}[side][v.Code]
				require.NotNil(t, make, v.Name)
				body := make()
				require.NoError(t, ParseJSON(c.Body, body))
				sameJSON(t, "", want, parseAny(t, AppendJSON(nil, body)))
				standard := AppendStandardJSON(nil, body)
				if v.Code != ReqGetConsumerRunningInfo { // it has raw parts
					require.True(t, json.Valid(standard), "%s", standard)
				}
				again := make()
				require.NoError(t, ParseJSON(standard, again))
				require.Equal(t, body, again)
			})
			seen++
		}
	}
	require.Greater(t, seen, 60)
}

func parseAny(t *testing.T, b []byte) (x any) {
	require.NoError(t, ParseJSON(b, &x), "%s", b)
	return x
}

// sameJSON compares two bodies of unknown shape. got may have more, but only zeros.
func sameJSON(t *testing.T, path string, want, got any) {
	t.Helper()
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		require.True(t, ok, "%s is %T", path, got)
		for k, x := range w {
			sameJSON(t, path+"."+k, x, g[k])
		}
		for k, x := range g {
			if _, ok := w[k]; !ok {
				require.True(t, emptyJSON(x), "%s has %s more: %v", path, k, x)
			}
		}
	case []any:
		g, ok := got.([]any)
		require.True(t, ok, "%s is %T", path, got)
		require.Len(t, g, len(w), path)
		byKey := pairs(g)
		for i, x := range w {
			if p := pairs(w); p != nil {
				require.NotNil(t, byKey, path)
				key := fmt.Sprint(x.(map[string]any)["key"])
				sameJSON(t, path+"."+key, p[key], byKey[key])
			} else {
				sameJSON(t, fmt.Sprintf("%s[%d]", path, i), x, g[i])
			}
		}
	default:
		require.Equal(t, plainText(want), plainText(got), path)
	}
}

// plainText makes numbers comparable, also with numbers in strings.
func plainText(x any) string {
	s := fmt.Sprint(x)
	if f, err := strconv.ParseFloat(s, 64); err == nil && strings.ContainsAny(s, ".eE") {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return s
}

// pairs gives the entries of a map with objects as keys, whose order means nothing.
func pairs(list []any) map[string]any {
	out := map[string]any{}
	for _, x := range list {
		m, ok := x.(map[string]any)
		if !ok || len(m) != 2 || m["key"] == nil {
			return nil
		}
		out[fmt.Sprint(m["key"])] = m["value"]
	}
	return out
}

func emptyJSON(x any) bool {
	switch x := x.(type) {
	case map[string]any:
		return len(x) == 0
	case []any:
		return len(x) == 0
	case string:
		return x == ""
	case Number:
		return x == "0" || x == "0.0"
	}
	return x == nil || x == false
}

func TestDialectForms(t *testing.T) {
	mq := MessageQueue{BrokerName: "broker-a", QueueId: 3, Topic: "TopicTest"}
	for want, body := range map[string]any{
		`{"brokerAddrs":{0:"127.0.0.1:10911",1:"127.0.0.1:20911"},"brokerName":"broker-a","cluster":"DefaultCluster","enableActingMaster":false}`: BrokerData{
			BrokerAddrs: map[int64]string{1: "127.0.0.1:20911", 0: "127.0.0.1:10911"}, BrokerName: "broker-a", Cluster: "DefaultCluster"},
		`{"offsetTable":{{"brokerName":"broker-a","queueId":3,"topic":"TopicTest"}:12}}`:          &ResetOffsetBody{OffsetTable: map[MessageQueue]int64{mq: 12}},
		`{"offsetTable":[{"brokerName":"broker-a","offset":12,"queueId":3,"topic":"TopicTest"}]}`: (&ResetOffsetBody{OffsetTable: map[MessageQueue]int64{mq: 12}}).ForC(),
		`{"consumerIdList":[]}`:                ConsumerIdList{},
		`{"topicList":["é\u0001"]}`:            TopicList{TopicList: []string{"é\x01"}},
		`{"offsetTable":{},"topicPutTps":0.0}`: TopicStatsTable{},
		`{"statsDay":{"avgpt":0.0,"sum":0,"tps":1.5},"statsHour":{"avgpt":100000000.0,"sum":0,"tps":0.0},"statsMinute":{"avgpt":0.0,"sum":0,"tps":0.0008}}`: BrokerStatsData{
			StatsDay: BrokerStatsItem{Tps: 1.5}, StatsHour: BrokerStatsItem{Avgpt: 1e8}, StatsMinute: BrokerStatsItem{Tps: 8e-4}},
		`{"acks":[{"b":"AQI=","c":"g","it":4,"pt":3,"q":1,"r":"0","rq":2,"so":5,"t":"t"}],"brokerName":"broker-a"}`: BatchAckRequest{BrokerName: "broker-a", Acks: []BatchAck{{
			Bits: []byte{1, 2}, ConsumerGroup: "g", InvisibleTime: 4, PopTime: 3, QueueId: 1, Retry: "0", ReviveQueueId: 2, StartOffset: 5, Topic: "t"}}},
		`{"dataVersion":{"counter":3,"stateVersion":0,"timestamp":1},"offsetTable":{"topic@group":{0:5,1:7}}}`: ConsumerOffsets{
			DataVersion: DataVersion{Counter: 3, Timestamp: 1}, OffsetTable: map[string]map[int32]int64{"topic@group": {1: 7, 0: 5}}},
		`{"messageQueueAssignments":[]}`: QueryAssignmentResponse{MessageQueueAssignments: []MessageQueueAssignment{}},
		`{}`:                             QueryAssignmentResponse{},
		`{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,"consumeMessageOrderly":false,"consumeTimeoutMinute":15,"groupName":"CG","groupRetryPolicy":{"type":"CUSTOMIZED"},"groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}`: NewSubscriptionGroupConfig("CG"),
		`{"brokerMemberGroup":{"brokerAddrs":{0:"x:1"},"brokerName":"b","cluster":"c"}}`:                                 BrokerMemberGroupBody{&BrokerMemberGroup{map[int64]string{0: "x:1"}, "b", "c"}},
		`{"consumerTable":{"cid":{{"brokerName":"broker-a","queueId":3,"topic":"TopicTest"}:3}},"messageQueueTable":{}}`: GetConsumerStatusBody{ConsumerTable: map[string]map[MessageQueue]int64{"cid": {mq: 3}}},
	} {
		require.Equal(t, want, string(AppendJSON(nil, body)))
		again := reflect.New(reflect.Indirect(reflect.ValueOf(body)).Type())
		require.NoError(t, ParseJSON([]byte(want), again.Interface()))
		require.Equal(t, want, string(AppendJSON(nil, again.Interface())))
	}
	require.Equal(t, []int64{5, 14}, (&BatchAck{Bits: []byte{1, 2}, StartOffset: 5}).Offsets())
	want := `{"offsetTable":{"{\"brokerName\":\"broker-a\",\"queueId\":3,\"topic\":\"TopicTest\"}":12}}`
	require.Equal(t, want, string(AppendStandardJSON(nil, ResetOffsetBody{OffsetTable: map[MessageQueue]int64{mq: 12}})))
}

func TestRouteInBothDialects(t *testing.T) {
	route := &TopicRouteData{
		BrokerDatas: []BrokerData{{BrokerAddrs: map[int64]string{0: "127.0.0.1:10911"}, BrokerName: "b", Cluster: "é"}},
		QueueDatas:  []QueueData{{BrokerName: "b", Perm: 6, ReadQueueNums: 4, WriteQueueNums: 4}},
	}
	const queues = `,"filterServerTable":{},"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}`
	bare := `{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:10911"},"brokerName":"b","cluster":"é","enableActingMaster":false}]` + queues
	quoted := `{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.1:10911"},"brokerName":"b","cluster":"\u00e9","enableActingMaster":false}]` + queues
	require.Equal(t, bare, string(AppendJSON(nil, route)))
	require.Equal(t, quoted, string(AppendStandardJSON(nil, route)))
}

// What the C++ client sends: ordinals, numbers as strings, no empty lists.
func TestHeartbeatOfCpp(t *testing.T) {
	h, err := ParseHeartbeat([]byte(`{"clientID":"10.0.0.1@1","consumerDataSet":[{"consumeFromWhere":4,"consumeType":1,"groupName":"g","messageModel":"1",
		"subscriptionDataSet":[{"codeSet":["2598919"],"subString":"TagA || 标签","subVersion":"17","tagsSet":["TagA","标签"],"topic":"t"}]}]}` + "\n"))
	require.NoError(t, err)
	require.Equal(t, &HeartbeatData{
		ClientID: "10.0.0.1@1",
		ConsumerDataSet: []ConsumerData{{
			ConsumeFromWhere: FromFirstOffset, ConsumeType: ConsumePassively, GroupName: "g", MessageModel: Clustering,
			SubscriptionDataSet: []SubscriptionData{{
				CodeSet: []int32{2598919, 0x6807*31 + 0x7B7E}, SubString: "TagA || 标签", SubVersion: 17, TagsSet: []string{"TagA", "标签"},
				Topic: "t", ExpressionType: "TAG",
			}},
		}},
	}, h)
}

func TestHeartbeatLeniency(t *testing.T) {
	h, err := ParseHeartbeat([]byte(`{consumerDataSet:[{'messageModel':'BroadCasting',"consumeType":"consume_pop","consumeFromWhere":"KLINGON",
		subscriptionDataSet:[{expressionType:null,subString:"a||b || a",codeSet:["1"]},{"expressionType":"SQL92","subString":"a>1","codeSet":[5]}]},
		null /* none */ ], // the rest
		"heartbeatFingerprint":"-7","withoutSub":"TRUE","unknown":{"x":[{}]}}`))
	require.NoError(t, err)
	require.Len(t, h.ConsumerDataSet, 1)
	c := h.ConsumerDataSet[0]
	require.Equal(t, []any{Broadcasting, ConsumePop, ConsumeFromWhere("")}, []any{c.MessageModel, c.ConsumeType, c.ConsumeFromWhere})
	require.Equal(t, []string{"a", "b"}, c.SubscriptionDataSet[0].TagsSet)
	require.Equal(t, []int32{'a', 'b'}, c.SubscriptionDataSet[0].CodeSet)
	require.Equal(t, []int32{5}, c.SubscriptionDataSet[1].CodeSet)
	require.Equal(t, int32(-7), h.HeartbeatFingerprint)
	require.True(t, h.WithoutSub)
}

func TestParseSubscription(t *testing.T) {
	for in, tags := range map[string][]string{
		"": {}, "*": {}, "TagA": {"TagA"}, "TagA || TagB": {"TagA", "TagB"}, "a||a|| b ": {"a", "b"}, "a|b": {"a|b"}, " || ": {}, "a|| ||b": {"a", "b"},
	} {
		s, err := ParseSubscription("t", in, "", 5)
		require.NoError(t, err, in)
		require.Equal(t, tags, s.TagsSet, in)
		require.Len(t, s.CodeSet, len(tags))
		require.Equal(t, "TAG", s.ExpressionType)
		require.NotEmpty(t, s.SubString)
		require.Equal(t, int64(5), s.SubVersion)
	}
	s, err := ParseSubscription("t", "TagA", "tag", 0)
	require.NoError(t, err)
	require.Equal(t, []int32{2598919}, s.CodeSet)
	s, err = ParseSubscription("t", "a > 1", "SQL92", 0)
	require.NoError(t, err)
	require.False(t, s.IsTag())
	require.Empty(t, s.TagsSet)
	for _, bad := range [][2]string{{"||", ""}, {"||||", "TAG"}, {" ", "SQL92"}, {"", "SQL92"}} {
		_, err := ParseSubscription("t", bad[0], bad[1], 0)
		var f *FieldError
		require.ErrorAs(t, err, &f, bad)
	}
}

func TestParseJSONForms(t *testing.T) {
	mq := MessageQueue{BrokerName: "b", QueueId: 1, Topic: "t"}
	for _, in := range []string{
		`{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"t"}:12}}`,
		`{"offsetTable":{{"topic":"t","queueId":"1","brokerName":"b"}:"12"}}`,
		`{"offsetTable":{"{\"brokerName\":\"b\",\"queueId\":1,\"topic\":\"t\"}":12}}`,
		`{"offsetTable":[[{"brokerName":"b","queueId":1,"topic":"t"},12]]}`,
		` { offsetTable : { { brokerName : 'b' , queueId : 1.0 , topic : t } : 12 } } `,
		`{"OFFSETTABLE":{{"brokerName":"b","queueId":1,"topic":"t"}:1.2e1}}`,
	} {
		var body ResetOffsetBody
		require.NoError(t, ParseJSON([]byte(in), &body), in)
		require.Equal(t, map[MessageQueue]int64{mq: 12}, body.OffsetTable, in)
	}
	var broker BrokerData
	require.NoError(t, ParseJSON([]byte(`{"brokerAddrs":{0:"a","1":"b"},"zoneName":null,"enableActingMaster":1,"cluster":17,"brokerName":{"x":1}}`), &broker))
	require.Equal(t, BrokerData{BrokerAddrs: map[int64]string{0: "a", 1: "b"}, EnableActingMaster: true, Cluster: "17", BrokerName: `{"x":1}`}, broker)

	group := SubscriptionGroupConfig{}
	require.NoError(t, ParseJSON([]byte(`{"groupName":"g","retryMaxTimes":null,"groupRetryPolicy":{"type":"exponential","exponentialRetryPolicy":{"max":9}}}`), &group))
	want := NewSubscriptionGroupConfig("g")
	want.GroupRetryPolicy = GroupRetryPolicy{Type: RetryExponential, ExponentialRetryPolicy: &ExponentialRetryPolicy{Initial: 5000, Max: 9, Multiplier: 2}}
	require.Equal(t, want, group)

	var info ConsumerRunningInfo
	in := `{"mqTable":{{"brokerName":"b"}:{"dropped":false}},"properties":{"a":"b"},"statusTable":{},"mqPopTable":null}`
	require.NoError(t, ParseJSON([]byte(in), &info))
	passed := `{"mqTable":{{"brokerName":"b"}:{"dropped":false}},"properties":{"a":"b"},"statusTable":{}}`
	require.Equal(t, passed, string(AppendJSON(nil, info)))
}

func TestParseJSONErrors(t *testing.T) {
	deep := strings.Repeat(`{"x":`, 100) + "1" + strings.Repeat("}", 100)
	for _, k := range []struct{ in, path, why string }{
		{` `, "", "is empty"},
		{`{`, "", "ends too early"},
		{`[]`, "", "other than an object"},
		{`{}x`, "", "goes on"},
		{`{"a" 1}`, "", "colon"},
		{`{"clientID":"x`, "clientID", "inside a string"},
		{`{"clientID":"\q"}`, "clientID", "escape"},
		{`{"clientID":"x" "y":1}`, "", "comma"},
		{`{"consumerDataSet":{}}`, "consumerDataSet", "other than a list"},
		{`{"consumerDataSet":[{"unitMode":7}]}`, "consumerDataSet[0].unitMode", "other than a bool"},
		{`{"consumerDataSet":[{},{"subscriptionDataSet":[{"codeSet":[1,"x"]}]}]}`, "consumerDataSet[1].subscriptionDataSet[0].codeSet[1]", "other than a int32"},
		{`{"heartbeatFingerprint":2147483648}`, "heartbeatFingerprint", "other than a int32"},
		{`{"heartbeatFingerprint":[1]}`, "heartbeatFingerprint", "instead of a single value"},
		{`{"producerDataSet":[{"$ref":"$.x"}]}`, "producerDataSet[0]", "reference"},
		{`{"y":` + deep + `}`, "", "too deeply"},
		{`{"consumerDataSet":[` + strings.Repeat("{},", 1<<15) + `{}]}`, "consumerDataSet", "memory"},
		{`{/*`, "", "no value"},
	} {
		err := ParseJSON([]byte(k.in), new(HeartbeatData))
		var b *BodyError
		require.ErrorAs(t, err, &b, "%.40s", k.in)
		require.ErrorIs(t, err, ErrMalformed)
		require.Equal(t, k.path, b.Path, "%.40s", k.in)
		require.Contains(t, b.Error(), k.why)
	}
	for _, in := range []string{`{"offsetTable":{"{}x":1}}`, `{"offsetTable":[1]}`, `{"offsetTable":[[{}]]}`, `{"offsetTable":[[{},1,2]]}`, `{"offsetTable":{1:2}}`, `{"offsetTable":7}`} {
		require.Error(t, ParseJSON([]byte(in), new(ResetOffsetBody)), in)
	}
	require.Error(t, ParseJSON([]byte(`{"acks":[{"b":"%"}]}`), new(BatchAckRequest)))
	require.ErrorContains(t, ParseJSON(make([]byte, maxBody+1), new(KVTable)), "longer than")
	var x any
	require.Error(t, ParseJSON([]byte(deep), &x))
	require.Error(t, ParseJSON([]byte(`nil`), &x))
}

func TestRegisterBroker(t *testing.T) {
	body := &RegisterBrokerBody{
		FilterServerList: []string{},
		TopicConfigSerializeWrapper: TopicConfigWrapper{
			DataVersion: DataVersion{Counter: 1, StateVersion: 2, Timestamp: 3},
			TopicConfigTable: map[string]TopicConfig{
				"A": {TopicName: "A", Perm: 6, ReadQueueNums: 4, WriteQueueNums: 8, TopicFilterType: SingleTag, Attributes: map[string]string{"message.type": "FIFO with a space"}},
				"B": {TopicName: "B", Perm: 2, ReadQueueNums: 1, WriteQueueNums: 1, TopicFilterType: MultiTag, Attributes: map[string]string{}},
			},
			TopicQueueMappingInfoMap: map[string]TopicQueueMappingInfo{"S": {Bname: "b", CurrIdMap: map[int32]int32{0: 1}, Topic: "S", TotalQueues: 2}},
		},
	}
	for _, compressed := range []bool{false, true} {
		b := AppendRegisterBroker(nil, body, compressed)
		got, err := ParseRegisterBroker(b, ServerVersion, BodyCRC(b))
		require.NoError(t, err)
		require.Equal(t, body, got)
		_, err = ParseRegisterBroker(b, ServerVersion, 1)
		require.ErrorContains(t, err, "CRC")
	}
	// Before 3.0.11 the wrapper came without the body around it.
	got, err := ParseRegisterBroker(AppendJSON(nil, body.TopicConfigSerializeWrapper), 36, 0)
	require.NoError(t, err)
	require.Equal(t, body.TopicConfigSerializeWrapper, got.TopicConfigSerializeWrapper)

	// Before 5.0 the mapping was not there, and attributes neither.
	old := deflate(t, piece(`{"counter":1}`)+"\x00\x00\x00\x01"+piece("A 4 4 6 SINGLE_TAG")+piece("[]"))
	got, err = ParseRegisterBroker(old, 399, 0)
	require.NoError(t, err)
	require.Equal(t, map[string]TopicConfig{"A": {TopicName: "A", Perm: 6, ReadQueueNums: 4, WriteQueueNums: 4, TopicFilterType: SingleTag, Attributes: map[string]string{}}},
		got.TopicConfigSerializeWrapper.TopicConfigTable)
	require.Nil(t, got.TopicConfigSerializeWrapper.TopicQueueMappingInfoMap)
}

func piece(text string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
}

func TestRegisterBrokerErrors(t *testing.T) {
	many := strings.Repeat(piece("a 1 1 1 X"), 1<<17)
	for name, in := range map[string][]byte{
		"empty":      nil,
		"no stream":  {zlibMagic, 0},
		"nothing":    deflate(t, ""),
		"cut":        deflate(t, "\x00\x00\x00\x09{}"),
		"negative":   deflate(t, "\xff\xff\xff\xff"),
		"huge":       deflate(t, "\x7f\xff\xff\xff"),
		"version":    deflate(t, piece("x")),
		"few parts":  deflate(t, piece("{}")+"\x00\x00\x00\x01"+piece("A 4 4 6")),
		"number":     deflate(t, piece("{}")+"\x00\x00\x00\x01"+piece("A 4 x 6 SINGLE_TAG")),
		"attributes": deflate(t, piece("{}")+"\x00\x00\x00\x01"+piece("A 4 4 6 SINGLE_TAG [")),
		"too few":    deflate(t, piece("{}")+"\x00\x00\x00\x02"+piece("A 4 4 6 SINGLE_TAG")),
		"filters":    deflate(t, piece("{}")+"\x00\x00\x00\x00"+piece("{}")),
		"half count": deflate(t, piece("{}")+"\x00\x00\x00\x00"+piece("[]")+"\x00"),
		"mapping":    deflate(t, piece("{}")+"\x00\x00\x00\x00"+piece("[]")+"\x00\x00\x00\x01"),
		"memory":     deflate(t, piece("{}")+"\x00\x02\x00\x00"+many),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseRegisterBroker(in, ServerVersion, 0)
			var b *BodyError
			require.ErrorAs(t, err, &b)
		})
	}
}

// The zlib stream of a worked example of the Java client inflates here.
func TestZlibOfJava(t *testing.T) {
	b, err := hex.DecodeString("785e4b4ca40c0000148d1841")
	require.NoError(t, err)
	_, err = ParseRegisterBroker(b, ServerVersion, 0)
	require.ErrorContains(t, err, "a length of 1633771873") // aaaa
}
