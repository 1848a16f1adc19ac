package nameserver

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

// fakeConn is a connection of which only the addresses matter.
type fakeConn struct{ remote, local netip.AddrPort }

func (c *fakeConn) Remote() netip.AddrPort { return c.remote }
func (c *fakeConn) Local() netip.AddrPort  { return c.local }
func (c *fakeConn) Listener() string       { return "nameserver" }

// connAt is a connection by which the peer reached us at host.
func connAt(host string) *fakeConn {
	return &fakeConn{remote: netip.MustParseAddrPort("192.0.2.9:40000"), local: netip.AddrPortFrom(netip.MustParseAddr(host), 9876)}
}

func newServer(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := New(o)
	require.NoError(t, err)
	return s
}

// ask sends a request with ext fields given as pairs, and a body.
func ask(s *Server, c Conn, code, version int32, body []byte, ext ...string) *protocol.Command {
	cmd := &protocol.Command{Code: code, Version: version, Opaque: 7, Body: body}
	for i := 0; i < len(ext); i += 2 {
		cmd.Ext.Set(ext[i], ext[i+1])
	}
	return s.Serve(c, cmd)
}

// topicsOf makes topics with 4 queues each.
func topicsOf(names ...string) map[string]protocol.TopicConfig {
	topics := map[string]protocol.TopicConfig{}
	for _, name := range names {
		topics[name] = protocol.TopicConfig{TopicName: name, Perm: 6, ReadQueueNums: 4, WriteQueueNums: 4, TopicFilterType: "SINGLE_TAG"}
	}
	return topics
}

// A node is a broker that registers.
type node struct {
	name, addr, cluster string
	id                  int64
	version             protocol.DataVersion
	ext                 []string
}

func (n node) register(s *Server, c Conn, topics map[string]protocol.TopicConfig) *protocol.Command {
	body := protocol.AppendJSON(nil, &protocol.RegisterBrokerBody{
		TopicConfigSerializeWrapper: protocol.TopicConfigWrapper{DataVersion: n.version, TopicConfigTable: topics},
	})
	cmd := &protocol.Command{Code: protocol.ReqRegisterBroker, Version: protocol.ServerVersion, Body: body}
	cluster := n.cluster
	if cluster == "" {
		cluster = "C"
	}
	(&protocol.RegisterBrokerRequest{
		BrokerName: n.name, BrokerAddr: n.addr, ClusterName: cluster, BrokerId: n.id, HaServerAddr: "ha-" + n.addr,
	}).Encode(&cmd.Ext)
	for i := 0; i < len(n.ext); i += 2 {
		cmd.Ext.Set(n.ext[i], n.ext[i+1])
	}
	return s.Serve(c, cmd)
}

// routeOf asks for a route by a client of the newest version; nil when there is none.
func routeOf(t testing.TB, s *Server, c Conn, topic string, ext ...string) *protocol.TopicRouteData {
	t.Helper()
	r := ask(s, c, protocol.ReqGetRouteinfoByTopic, protocol.ServerVersion, nil, append([]string{"topic", topic}, ext...)...)
	if r.Code == protocol.RespTopicNotExist {
		return nil
	}
	require.EqualValues(t, protocol.RespSuccess, r.Code, r.Remark)
	var route protocol.TopicRouteData
	require.NoError(t, protocol.ParseJSON(r.Body, &route))
	return &route
}

func success(t testing.TB, r *protocol.Command) {
	t.Helper()
	require.NotNil(t, r)
	require.EqualValues(t, protocol.RespSuccess, r.Code, r.Remark)
}

func version(n int64) protocol.DataVersion {
	return protocol.DataVersion{Counter: n, Timestamp: 1000 * n}
}

func TestRegisteredBrokerIsInRoutes(t *testing.T) {
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	success(t, node{name: "a", addr: "10.0.0.1:10911", version: version(1)}.register(s, c, topicsOf("T", "TBW102")))
	r := ask(s, c, protocol.ReqGetRouteinfoByTopic, 317, nil, "topic", "T")
	require.Equal(t, `{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911"},"brokerName":"a","cluster":"C","enableActingMaster":false}],`+
		`"filterServerTable":{},"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}`, string(r.Body))
	s.Closed(connAt("127.0.0.1"))
	require.NotNil(t, routeOf(t, s, c, "T"))
	s.Closed(c)
	r = ask(s, c, protocol.ReqGetRouteinfoByTopic, 317, nil, "topic", "T")
	require.EqualValues(t, protocol.RespTopicNotExist, r.Code)
	require.Zero(t, s.table.entries)
	require.Empty(t, s.table.brokers)
}

// pass lets time go by, inside of a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }
