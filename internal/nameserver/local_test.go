package nameserver

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

// here is a local broker on port 10911 with topics that a test changes.
type here struct {
	mu      sync.Mutex
	topics  []protocol.TopicConfig
	version int64
	asked   atomic.Int64
}

func (h *here) set(topics ...protocol.TopicConfig) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.topics = topics
	h.version++
}

func (h *here) local() Local {
	return Local{
		Cluster: "C", Name: "local",
		Address: func(c Conn) string { return net.JoinHostPort(c.Local().Addr().String(), "10911") },
		Topics: func() ([]protocol.TopicConfig, protocol.DataVersion) {
			h.asked.Add(1)
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.topics, version(h.version)
		},
	}
}

func topicWith(name string, perm, queues int32) protocol.TopicConfig {
	return protocol.TopicConfig{TopicName: name, Perm: perm, ReadQueueNums: queues, WriteQueueNums: queues}
}

func TestClientIsToldTheAddressByWhichItCame(t *testing.T) {
	h := &here{}
	h.set(topicWith("T", 6, 4), topicWith("TBW102", 7, 8))
	s := newServer(t, Options{})
	require.Nil(t, routeOf(t, s, connAt("127.0.0.1"), "T"))
	s.SetLocal(h.local())
	for range 2 { // the second time from the cache
		for host, want := range map[string]string{
			"127.0.0.1": "127.0.0.1:10911", "192.0.2.7": "192.0.2.7:10911", "2001:db8::7": "[2001:db8::7]:10911", "::1": "[::1]:10911",
		} {
			c := connAt(host)
			require.Equal(t, map[int64]string{0: want}, routeOf(t, s, c, "T").BrokerDatas[0].BrokerAddrs)
			require.Contains(t, string(ask(s, c, protocol.ReqGetBrokerClusterInfo, 513, nil).Body), `{0:"`+want+`"}`)
			require.Contains(t, string(ask(s, c, protocol.ReqGetSystemTopicListFromNs, 513, nil).Body), `"brokerAddr":"`+want+`"`)
			require.Contains(t, string(ask(s, c, protocol.ReqGetBrokerMemberGroup, 513, nil, "clusterName", "C", "brokerName", "local").Body), want)
			// Beside a broker that registered.
			remote := node{name: "remote", addr: "10.0.0.1:1"}
			success(t, remote.register(s, connAt("10.0.0.9"), topicsOf("T", "X")))
			route := routeOf(t, s, c, "T")
			require.Equal(t, []string{"local", "remote"}, []string{route.BrokerDatas[0].BrokerName, route.BrokerDatas[1].BrokerName})
		}
	}
	require.EqualValues(t, 1, h.asked.Load())
}

func TestHiddenLocalBroker(t *testing.T) {
	h := &here{}
	h.set(topicWith("T", 6, 4))
	s := newServer(t, Options{})
	l := h.local()
	l.Address = func(Conn) string { return "" }
	s.SetLocal(l)
	c := connAt("127.0.0.1")
	require.Nil(t, routeOf(t, s, c, "T"))
	require.Equal(t, `{"brokerAddrTable":{},"clusterAddrTable":{}}`, string(ask(s, c, protocol.ReqGetBrokerClusterInfo, 513, nil).Body))
	success(t, node{name: "remote", addr: "10.0.0.1:1"}.register(s, c, topicsOf("T", "U")))
	require.Len(t, routeOf(t, s, c, "T").BrokerDatas, 1)
	require.Len(t, routeOf(t, s, c, "T").QueueDatas, 1)
}

func TestLocalTopicsFollowEachChange(t *testing.T) {
	h := &here{}
	h.set(topicWith("T", 6, 4))
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	s.SetLocal(h.local())
	require.EqualValues(t, 4, routeOf(t, s, c, "T").QueueDatas[0].ReadQueueNums)
	for n := range int32(3) {
		h.set(topicWith("T", 6, 5+n), topicWith("N"+strconv.Itoa(int(n)), 6, 1))
		s.LocalChanged()
		require.Equal(t, 5+n, routeOf(t, s, c, "T").QueueDatas[0].ReadQueueNums)
		require.NotNil(t, routeOf(t, s, c, "N"+strconv.Itoa(int(n))))
		require.Nil(t, routeOf(t, s, c, "N"+strconv.Itoa(int(n-1))))
	}
	// Deleted here and there in either order.
	success(t, ask(s, c, protocol.ReqDeleteTopicInNamesrv, 513, nil, "topic", "T"))
	require.NotNil(t, routeOf(t, s, c, "T"), "the broker still has it")
	h.set()
	s.LocalChanged()
	require.Nil(t, routeOf(t, s, c, "T"))
	require.Equal(t, `{"topicList":[]}`, string(ask(s, c, protocol.ReqGetAllTopicListFromNameserver, 513, nil).Body))
}

func TestOneLocalTopicFollowsItsChange(t *testing.T) {
	h := &here{}
	h.set(topicWith("T", 6, 4), topicWith("Other", 6, 4))
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	now := func(c *protocol.TopicConfig) func(string) *protocol.TopicConfig {
		return func(string) *protocol.TopicConfig { return c }
	}
	made, changed := topicWith("New", 6, 2), topicWith("T", 6, 9)
	s.LocalTopicChanged("New", now(&made))
	require.Nil(t, routeOf(t, s, c, "New"), "there is no local broker yet")
	s.SetLocal(h.local())
	s.LocalTopicChanged("New", now(&made))
	require.EqualValues(t, 2, routeOf(t, s, c, "New").QueueDatas[0].ReadQueueNums)
	success(t, ask(s, c, protocol.ReqWipeWritePermOfBroker, 513, nil, "brokerName", "local"))
	s.LocalTopicChanged("T", now(&changed))
	require.EqualValues(t, 9, routeOf(t, s, c, "T").QueueDatas[0].ReadQueueNums)
	require.EqualValues(t, 6, routeOf(t, s, c, "T").QueueDatas[0].Perm, "its own change undoes a wipe")
	s.LocalTopicChanged("New", now(&made))
	require.EqualValues(t, 4, routeOf(t, s, c, "New").QueueDatas[0].Perm, "the same again does not")
	s.LocalTopicChanged("T", now(nil))
	s.LocalTopicChanged("T", now(nil))
	require.Nil(t, routeOf(t, s, c, "T"))
	require.NotNil(t, routeOf(t, s, c, "Other"))
	require.EqualValues(t, 1, h.asked.Load(), "nobody asked for the others")
	s.table.check(t, s)
}

func TestWipeOfTheLocalBroker(t *testing.T) {
	h := &here{}
	topics := []protocol.TopicConfig{topicWith("T", 6, 4), topicWith("TBW102", 7, 8)}
	h.set(topics...)
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	s.SetLocal(h.local())
	perm := func(topic string) int32 { return routeOf(t, s, c, topic).QueueDatas[0].Perm }
	r := ask(s, c, protocol.ReqWipeWritePermOfBroker, 513, nil, "brokerName", "local")
	n, _ := r.Ext.Get("wipeTopicCount")
	require.Equal(t, "2", string(n))
	require.EqualValues(t, 4, perm("T"))
	require.EqualValues(t, 5, perm("TBW102"))
	h.set(append(topics, topicWith("New", 6, 1))...)
	s.LocalChanged()
	require.EqualValues(t, 6, perm("New"))
	require.EqualValues(t, 4, perm("T"), "a new topic does not undo it for the others")
	h.set(topicWith("T", 6, 8), topics[1])
	s.LocalChanged()
	require.EqualValues(t, 6, perm("T"), "its own change does")
	success(t, ask(s, c, protocol.ReqAddWritePermOfBroker, 513, nil, "brokerName", "local"))
	require.EqualValues(t, 6, perm("TBW102"))
}

func TestOthersCannotBeTheLocalBroker(t *testing.T) {
	h := &here{}
	h.set(topicWith("T", 6, 4))
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	success(t, node{name: "local", addr: "10.0.0.1:1"}.register(s, c, topicsOf("T", "Old")))
	s.SetLocal(h.local())
	require.Nil(t, routeOf(t, s, c, "Old"))
	require.Equal(t, map[int64]string{0: "127.0.0.1:10911"}, routeOf(t, s, c, "T").BrokerDatas[0].BrokerAddrs)
	r := node{name: "local", addr: "10.0.0.1:1"}.register(s, c, topicsOf("T", "U"))
	require.EqualValues(t, protocol.RespSystemError, r.Code)
	require.Equal(t, "register broker failed: local with id 0 is the broker of this process", r.Remark)
	r = ask(s, c, protocol.ReqRegisterTopicInNamesrv, 513, []byte(`{"queueDatas":[{"brokerName":"local"}]}`), "topic", "V")
	require.EqualValues(t, protocol.RespSystemError, r.Code)
	success(t, ask(s, c, protocol.ReqUnregisterBroker, 513, nil, "clusterName", "C", "brokerAddr", "127.0.0.1:10911", "brokerName", "local", "brokerId", "0"))
	require.NotNil(t, routeOf(t, s, c, "T"))
	// A replica with another id stands beside it, is told the local master, and brings no topics.
	r = node{name: "local", id: 1, addr: "10.0.0.2:1", ext: []string{"enableActingMaster", "true"}}.register(s, c, topicsOf("T", "U"))
	master, _ := r.Ext.Get("masterAddr")
	require.Equal(t, "127.0.0.1:10911", string(master))
	require.Equal(t, map[int64]string{0: "127.0.0.1:10911", 1: "10.0.0.2:1"}, routeOf(t, s, c, "T").BrokerDatas[0].BrokerAddrs)
	require.Nil(t, routeOf(t, s, c, "U"))
}

func TestLocalBrokerCanBeReplaced(t *testing.T) {
	h := &here{}
	h.set(topicWith("T", 6, 4))
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	s.SetLocal(h.local())
	require.NotNil(t, routeOf(t, s, c, "T"))
	other := h.local()
	other.Name = "other"
	s.SetLocal(other)
	route := routeOf(t, s, c, "T")
	require.Len(t, route.QueueDatas, 1)
	require.Equal(t, "other", route.QueueDatas[0].BrokerName)
	require.Len(t, s.table.brokers, 1)
}

// goRoute reads a route as the official Go client 2.1 does: it finds the addresses textually.
func goRoute(t *testing.T, body string) map[string]string {
	t.Helper()
	addrs := map[string]string{}
	for _, part := range strings.Split(body, `"brokerAddrs":`)[1:] {
		end := strings.IndexByte(part, '}')
		require.Positive(t, end)
		for pair := range strings.SplitSeq(part[1:end], ",") {
			i := strings.IndexByte(pair, ':')
			require.Positive(t, i, "an address: %s", pair)
			_, err := strconv.ParseInt(pair[:i], 10, 64)
			require.NoError(t, err)
			addrs[pair[:i]] = strings.ReplaceAll(pair[i+1:], `"`, "")
		}
	}
	require.NotEmpty(t, addrs)
	return addrs
}

func TestRouteForms(t *testing.T) {
	h := &here{}
	h.set(topicWith("T", 6, 4))
	s := newServer(t, Options{})
	s.SetLocal(h.local())
	c := connAt("2001:db8::7")
	success(t, node{name: "local", id: 1, addr: "10.0.0.2:1"}.register(s, c, topicsOf("T", "U")))
	bare := `{"brokerAddrs":{0:"[2001:db8::7]:10911",1:"10.0.0.2:1"}`
	quoted := `{"brokerAddrs":{"0":"[2001:db8::7]:10911","1":"10.0.0.2:1"}`
	for _, x := range []struct {
		version int32
		accept  string
		want    string
	}{
		{317, "", bare}, {0, "", bare}, {400, "false", bare}, {401, "", quoted}, {513, "", quoted}, {-1, "", quoted}, {317, "true", quoted},
	} {
		for range 2 {
			ext := []string{"topic", "T"}
			if x.accept != "" {
				ext = append(ext, "acceptStandardJsonOnly", x.accept)
			}
			r := ask(s, c, protocol.ReqGetRouteinfoByTopic, x.version, nil, ext...)
			success(t, r)
			require.Contains(t, string(r.Body), x.want)
			require.NotContains(t, string(r.Body), " ")
			if x.want == bare {
				require.Equal(t, map[string]string{"0": "[2001:db8::7]:10911", "1": "10.0.0.2:1"}, goRoute(t, string(r.Body)))
			}
		}
	}
	r := ask(s, c, protocol.ReqGetRouteinfoByTopic, 513, nil)
	require.EqualValues(t, protocol.RespSystemError, r.Code)
	require.Equal(t, "header field topic is missing", r.Remark)
}

func TestZones(t *testing.T) {
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	zone := func(z string) []string { return []string{"__ZONE_NAME", z} }
	success(t, node{name: "a", addr: "10.0.0.1:1", ext: zone("Z1")}.register(s, c, topicsOf("T", "U")))
	success(t, node{name: "b", addr: "10.0.0.2:1", ext: zone("z2")}.register(s, c, topicsOf("T", "U")))
	success(t, node{name: "c", addr: "10.0.0.3:1"}.register(s, c, topicsOf("T", "U")))
	success(t, node{name: "d", id: 1, addr: "10.0.0.5:1", ext: zone("z2")}.register(s, c, nil))
	success(t, node{name: "d", addr: "10.0.0.4:1", ext: zone("z2")}.register(s, c, topicsOf("T", "U")))
	success(t, ask(s, c, protocol.ReqUnregisterBroker, 513, nil, "clusterName", "C", "brokerAddr", "10.0.0.4:1", "brokerName", "d", "brokerId", "0"))
	names := func(ext ...string) (names string) {
		route := routeOf(t, s, c, "T", ext...)
		for i, b := range route.BrokerDatas {
			require.Equal(t, b.BrokerName, route.QueueDatas[i].BrokerName)
			names += b.BrokerName
		}
		require.Len(t, route.QueueDatas, len(names))
		return names
	}
	require.Equal(t, "abcd", names())
	require.Equal(t, "abcd", names("__ZONE_MODE", "true"))
	require.Equal(t, "abcd", names("__ZONE_MODE", "false", "__ZONE_NAME", "z1"))
	require.Equal(t, "ad", names("__ZONE_MODE", "true", "__ZONE_NAME", "z1"), "its zone in any case, and the broker without a master")
	require.Equal(t, "d", names("__ZONE_MODE", "true", "__ZONE_NAME", "z9"))
	r := ask(s, c, protocol.ReqGetRouteinfoByTopic, 513, nil, "topic", "T", "__ZONE_MODE", "true", "__ZONE_NAME", "Z1")
	require.Contains(t, string(r.Body), `{0:"10.0.0.1:1"}`, "in the old form whatever the version")
	require.Contains(t, string(r.Body), `"enableActingMaster":false,"zoneName":"Z1"}`)
}

func TestFilterServers(t *testing.T) {
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	success(t, ask(s, c, protocol.ReqRegisterBroker, 399,
		[]byte(`{"filterServerList":["10.0.0.1:9"],"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{},"U":{}}}}`),
		"brokerName", "a", "brokerAddr", "10.0.0.1:1", "clusterName", "C", "brokerId", "0"))
	require.Equal(t, map[string][]string{"10.0.0.1:1": {"10.0.0.1:9"}}, routeOf(t, s, c, "T").FilterServerTable)
}

func TestIPv6AddressesGetBrackets(t *testing.T) {
	s, c := newServer(t, Options{}), connAt("::1")
	for _, addr := range []string{"::1:10911", "[::1]:10911"} {
		success(t, node{name: "a", addr: addr}.register(s, c, topicsOf("T", "U")))
		require.Equal(t, map[int64]string{0: "[::1]:10911"}, routeOf(t, s, c, "T").BrokerDatas[0].BrokerAddrs)
		success(t, ask(s, c, protocol.ReqUnregisterBroker, 513, nil, "clusterName", "C", "brokerAddr", addr, "brokerName", "a", "brokerId", "0"))
		require.Nil(t, routeOf(t, s, c, "T"))
	}
}
