package nameserver

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

// recorded is an exchange between an official client and RocketMQ's name server 5.5.0, see testdata/README.md.
type recorded struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Request  string `json:"request"`
	Response string `json:"response"`
}

func frame(t testing.TB, text string) *protocol.Command {
	t.Helper()
	b, err := hex.DecodeString(text)
	require.NoError(t, err)
	cmd := new(protocol.Command)
	require.NoError(t, cmd.Decode(b))
	return cmd
}

func recordings(t testing.TB) (all []recorded) {
	t.Helper()
	f, err := os.Open("testdata/recorded.jsonl")
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r recorded
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		all = append(all, r)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, all)
	return all
}

// prepare brings a server into the state in which the recorded one gave its answer.
func prepare(t *testing.T, s *Server, request, answer *protocol.Command) {
	t.Helper()
	c := connAt("127.0.0.1")
	broker := node{name: "broker-a", addr: "127.0.0.2:20911", cluster: "DefaultCluster", version: version(1)}
	topics := topicsOf("broker-a", "DefaultCluster")
	switch {
	case request.Code == protocol.ReqGetRouteinfoByTopic && answer.Code == protocol.RespSuccess:
		var route protocol.TopicRouteData
		require.NoError(t, protocol.ParseJSON(answer.Body, &route))
		name, _ := request.Ext.Get("topic")
		q := route.QueueDatas[0]
		broker.addr = route.BrokerDatas[0].BrokerAddrs[0]
		topics[string(name)] = protocol.TopicConfig{
			TopicName: string(name), Perm: q.Perm, ReadQueueNums: q.ReadQueueNums, WriteQueueNums: q.WriteQueueNums, TopicSysFlag: q.TopicSysFlag,
		}
	case request.Code == protocol.ReqGetAllTopicListFromNameserver:
		var list protocol.TopicList
		require.NoError(t, protocol.ParseJSON(answer.Body, &list))
		topics = topicsOf(list.TopicList...)
	case request.Code == protocol.ReqWipeWritePermOfBroker, request.Code == protocol.ReqAddWritePermOfBroker:
		for i := len(topics); i < 60; i++ {
			topics["T"+strconv.Itoa(i)] = protocol.TopicConfig{Perm: 6}
		}
	case request.Code == protocol.ReqGetKvConfig:
		value, _ := answer.Ext.Get("value")
		success(t, ask(s, c, protocol.ReqPutKvConfig, 513, nil, "namespace", "ORDER_TOPIC_CONFIG", "key", "VAdmin", "value", string(value)))
	}
	success(t, broker.register(s, c, topics))
}

func TestRecordedExchanges(t *testing.T) {
	for _, r := range recordings(t) {
		if strings.HasPrefix(r.ID, "broker-register/") {
			continue // one after the other: TestRecordedRegistration
		}
		t.Run(r.ID+" "+r.Name, func(t *testing.T) {
			request, want := frame(t, r.Request), frame(t, r.Response)
			s := newServer(t, Options{})
			prepare(t, s, request, want)
			got := s.Serve(connAt("127.0.0.1"), request)
			require.Equal(t, request.Encoding, got.Encoding, "we answer in the encoding of the request, 5.5 in JSON")
			same(t, request.Code, want, got)
		})
	}
}

// same compares what is answered with what was recorded. The bytes of bodies are the same where no set is shown.
func same(t *testing.T, code int32, want, got *protocol.Command) {
	t.Helper()
	require.Equal(t, want.Code, got.Code, got.Remark)
	require.Equal(t, want.Remark, got.Remark)
	require.Equal(t, want.Opaque, got.Opaque)
	require.True(t, got.IsResponse())
	require.Equal(t, want.Ext.Len(), got.Ext.Len())
	for i := range want.Ext.Len() {
		f := want.Ext.At(i)
		value, ok := got.Ext.Get(string(f.Key))
		require.True(t, ok, string(f.Key))
		require.Equal(t, string(f.Value), string(value), string(f.Key))
	}
	switch code {
	case protocol.ReqGetAllTopicListFromNameserver:
		var a, b protocol.TopicList
		require.NoError(t, protocol.ParseJSON(want.Body, &a))
		require.NoError(t, protocol.ParseJSON(got.Body, &b))
		require.ElementsMatch(t, a.TopicList, b.TopicList)
	case protocol.ReqGetNamesrvConfig:
		theirs, err := parseProperties(string(want.Body))
		require.NoError(t, err)
		ours, err := parseProperties(string(got.Body))
		require.NoError(t, err)
		require.Len(t, ours, len(settingKeys)+1)
		for key, value := range ours {
			require.Equal(t, theirs[key], value, key)
		}
	default:
		require.Equal(t, string(want.Body), string(got.Body))
	}
}

func TestRecordedRegistration(t *testing.T) {
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	exchanges := map[string]recorded{}
	for _, r := range recordings(t) {
		exchanges[r.ID] = r
	}
	play := func(id string) {
		t.Helper()
		request := frame(t, exchanges[id].Request)
		same(t, request.Code, frame(t, exchanges[id].Response), s.Serve(c, request))
	}
	play("broker-register/1")
	play("broker-register/2")
	route := routeOf(t, s, c, "TBW102")
	require.Equal(t, []protocol.QueueData{{BrokerName: "broker-a", Perm: 7, ReadQueueNums: 8, WriteQueueNums: 8}}, route.QueueDatas)
	require.Equal(t, map[int64]string{0: "127.0.0.1:15911"}, route.BrokerDatas[0].BrokerAddrs)
	require.EqualValues(t, 1024, routeOf(t, s, c, "BenchmarkTest").QueueDatas[0].WriteQueueNums)
	play("broker-register/3")
	require.Nil(t, routeOf(t, s, c, "TBW102"))
	require.Empty(t, s.table.conns)
}
