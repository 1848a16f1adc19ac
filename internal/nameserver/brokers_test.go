package nameserver

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

func TestSilentBrokerExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()

		usual, short := connAt("127.0.0.1"), connAt("127.0.0.1")
		success(t, node{name: "usual", addr: "10.0.0.1:1"}.register(s, usual, topicsOf("T", "U")))
		success(t, node{name: "short", addr: "10.0.0.2:1", ext: []string{"heartbeatTimeoutMillis", "10000"}}.register(s, short, topicsOf("T", "S")))
		require.Len(t, routeOf(t, s, usual, "T").BrokerDatas, 2)

		heartbeat := []string{"clusterName", "C", "brokerAddr", "10.0.0.2:1", "brokerName", "short"}
		for range 3 { // 904 keeps it, 322 does
			pass(8 * time.Second)
			success(t, ask(s, short, protocol.ReqBrokerHeartbeat, 513, nil, heartbeat...))
		}
		pass(8 * time.Second)
		r := ask(s, short, protocol.ReqQueryDataVersion, 513, []byte(`{"counter":9}`), append(heartbeat, "brokerId", "0")...)
		success(t, r)
		pass(9 * time.Second)
		require.Len(t, routeOf(t, s, usual, "T").BrokerDatas, 2)
		pass(7 * time.Second) // 10 s, and the scan
		require.Len(t, routeOf(t, s, usual, "T").BrokerDatas, 1)
		require.Nil(t, routeOf(t, s, usual, "S"))

		pass(71 * time.Second)
		require.NotNil(t, routeOf(t, s, usual, "U"))
		pass(7 * time.Second)
		require.Nil(t, routeOf(t, s, usual, "U"))
		require.Empty(t, s.table.conns)
		require.Zero(t, s.table.members)
		cancel()
		require.NoError(t, <-done)
	})
}

func TestClosedConnectionCountsOnlyForTheLastOne(t *testing.T) {
	s, before, after := newServer(t, Options{}), connAt("127.0.0.1"), connAt("127.0.0.1")
	n := node{name: "a", addr: "10.0.0.1:1", version: version(1)}
	success(t, n.register(s, before, topicsOf("T", "U")))
	success(t, n.register(s, after, topicsOf("T", "U")))
	s.Closed(before)
	require.NotNil(t, routeOf(t, s, after, "T"))
	s.Closed(after)
	require.Nil(t, routeOf(t, s, after, "T"))
}

func TestRegistrationConflicts(t *testing.T) {
	state := func(n int64) protocol.DataVersion {
		return protocol.DataVersion{Counter: 1, StateVersion: n, Timestamp: 1}
	}
	c := connAt("127.0.0.1")
	master := node{name: "a", addr: "10.0.0.1:1", version: state(2)}
	for _, x := range []struct {
		name   string
		with   node
		topics map[string]protocol.TopicConfig
		code   int32
		remark string
		addrs  map[int64]string
	}{
		{"a second address of the same id wins", node{name: "a", addr: "10.0.0.2:1", version: state(2)}, topicsOf("T", "U"), 0, "",
			map[int64]string{0: "10.0.0.2:1"}},
		{"unless its state is older", node{name: "a", addr: "10.0.0.2:1", version: state(1)}, topicsOf("T", "U"), 0, "",
			map[int64]string{0: "10.0.0.1:1"}},
		{"a slave comes beside", node{name: "a", id: 1, addr: "10.0.0.2:1"}, topicsOf("T", "U"), 0, "",
			map[int64]string{0: "10.0.0.1:1", 1: "10.0.0.2:1"}},
		{"an address has one id", node{name: "a", id: 1, addr: "10.0.0.1:1"}, topicsOf("T", "U"), 0, "", map[int64]string{1: "10.0.0.1:1"}},
		{"another cluster", node{name: "a", id: 1, addr: "10.0.0.2:1", cluster: "D"}, topicsOf("T", "U"), 1,
			"register broker failed: a belongs to cluster C, not D", map[int64]string{0: "10.0.0.1:1"}},
		{"its own new cluster", node{name: "a", addr: "10.0.0.1:1", cluster: "D", version: state(3)}, topicsOf("T", "U"), 0, "",
			map[int64]string{0: "10.0.0.1:1"}},
		{"one topic of an unknown replica", node{name: "a", id: 1, addr: "10.0.0.2:1"}, topicsOf("T"), 1,
			"register broker failed: the first registration of a with id 1 must name all its topics", map[int64]string{0: "10.0.0.1:1"}},
		{"one topic of a known one", node{name: "a", addr: "10.0.0.1:1", version: state(3)}, topicsOf("V"), 0, "",
			map[int64]string{0: "10.0.0.1:1"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := newServer(t, Options{})
			success(t, master.register(s, c, topicsOf("T", "U")))
			r := x.with.register(s, c, x.topics)
			require.Equal(t, x.code, r.Code)
			require.Equal(t, x.remark, r.Remark)
			require.Equal(t, x.addrs, routeOf(t, s, c, "T").BrokerDatas[0].BrokerAddrs)
			require.Len(t, x.addrs, s.table.members)
		})
	}
}

func TestSlaveIsToldItsMaster(t *testing.T) {
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	r := node{name: "a", id: 1, addr: "10.0.0.2:1"}.register(s, c, topicsOf("T", "U"))
	success(t, r)
	require.Zero(t, r.Ext.Len())
	require.Nil(t, routeOf(t, s, c, "T"), "topics of a slave do not count")
	success(t, node{name: "a", addr: "10.0.0.1:1"}.register(s, c, topicsOf("T", "U")))
	r = node{name: "a", id: 1, addr: "10.0.0.2:1"}.register(s, c, topicsOf("X", "Y"))
	var h protocol.RegisterBrokerResponse
	require.NoError(t, h.Decode(&r.Ext))
	require.Equal(t, protocol.RegisterBrokerResponse{MasterAddr: "10.0.0.1:1", HaServerAddr: "ha-10.0.0.1:1"}, h)
	require.Nil(t, routeOf(t, s, c, "X"))
}

func TestOnlyChangesAreMerged(t *testing.T) {
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	n := node{name: "a", addr: "10.0.0.1:1", version: version(1)}
	queues := func(topic string) int32 { return routeOf(t, s, c, topic).QueueDatas[0].WriteQueueNums }
	with := func(topic string, queues int32) map[string]protocol.TopicConfig {
		topics := topicsOf(topic)
		topics[topic] = protocol.TopicConfig{TopicName: topic, Perm: 6, WriteQueueNums: queues, ReadQueueNums: queues}
		return topics
	}
	success(t, n.register(s, c, topicsOf("T", "U")))
	success(t, n.register(s, c, with("T", 8)))
	require.EqualValues(t, 4, queues("T"), "the same version is no change")
	success(t, n.register(s, c, with("V", 8)))
	require.EqualValues(t, 8, queues("V"), "an unknown topic is taken all the same")
	n.version = version(2)
	success(t, n.register(s, c, with("T", 8)))
	require.EqualValues(t, 8, queues("T"))
	require.EqualValues(t, 4, queues("U"), "topics that are not named stay")

	// A registration that was made before the last one, and comes after it.
	n.version = version(4)
	success(t, n.register(s, c, with("U", 16)))
	n.version = version(3)
	success(t, n.register(s, c, map[string]protocol.TopicConfig{"U": with("U", 2)["U"], "T": with("T", 12)["T"]}))
	require.EqualValues(t, 16, queues("U"), "older than what is there")
	require.EqualValues(t, 12, queues("T"), "newer than what is there")
	r := ask(s, c, protocol.ReqQueryDataVersion, 513, protocol.AppendJSON(nil, version(4)),
		"brokerName", "a", "brokerAddr", "10.0.0.1:1", "clusterName", "C", "brokerId", "0")
	changed, _ := r.Ext.Get("changed")
	require.Equal(t, "false", string(changed))
	require.JSONEq(t, `{"counter":4,"stateVersion":0,"timestamp":4000}`, string(r.Body))

	// The same from another connection: the broker started again with less than it had.
	success(t, n.register(s, connAt("127.0.0.1"), with("U", 2)))
	require.EqualValues(t, 2, queues("U"))
}

func TestFullRegistrationDeletesWhenAskedFor(t *testing.T) {
	settings := DefaultSettings()
	settings.DeleteTopicWithBrokerRegistration = true
	s, c := newServer(t, Options{Settings: &settings}), connAt("127.0.0.1")
	success(t, node{name: "a", addr: "10.0.0.1:1", version: version(1)}.register(s, c, topicsOf("T", "U")))
	success(t, node{name: "a", addr: "10.0.0.1:1", version: version(2)}.register(s, c, topicsOf("U", "V")))
	require.Nil(t, routeOf(t, s, c, "T"))
	require.NotNil(t, routeOf(t, s, c, "U"))
}

func TestVersionIsUnknownOfUnknownBroker(t *testing.T) {
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	r := ask(s, c, protocol.ReqQueryDataVersion, 513, []byte(`{"counter":1,"timestamp":1,"stateVersion":0}`),
		"brokerName", "a", "brokerAddr", "10.0.0.1:1", "clusterName", "C", "brokerId", "0")
	success(t, r)
	changed, _ := r.Ext.Get("changed")
	require.Equal(t, "true", string(changed))
	require.Empty(t, r.Body)
	success(t, ask(s, c, protocol.ReqBrokerHeartbeat, 513, nil, "clusterName", "C", "brokerAddr", "10.0.0.1:1", "brokerName", "a"))
	success(t, ask(s, c, protocol.ReqUnregisterBroker, 513, nil, "clusterName", "C", "brokerAddr", "10.0.0.1:1", "brokerName", "a", "brokerId", "0"))
}

func TestCompressedRegistration(t *testing.T) {
	for _, version := range []int32{399, 513, -1} {
		for _, flag := range []string{"true", "false"} { // brokers of 5.x compress and say false
			s, c := newServer(t, Options{}), connAt("127.0.0.1")
			body := protocol.RegisterBrokerBody{TopicConfigSerializeWrapper: protocol.TopicConfigWrapper{TopicConfigTable: topicsOf("T", "U")}}
			packed := protocol.AppendRegisterBroker(nil, &body, true)
			success(t, ask(s, c, protocol.ReqRegisterBroker, version, packed, "brokerName", "a", "brokerAddr", "10.0.0.1:1",
				"clusterName", "C", "haServerAddr", "", "brokerId", "0", "compressed", flag,
				"bodyCrc32", strconv.Itoa(int(protocol.BodyCRC(packed)))))
			require.EqualValues(t, 4, routeOf(t, s, c, "U").QueueDatas[0].ReadQueueNums)
		}
	}
}

func TestOldestBrokersSendTheBareTable(t *testing.T) {
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	body := []byte(`{"dataVersion":{"counter":1,"timatamp":2},"topicConfigTable":{'T':{topicName:"T",perm:6,readQueueNums:3,writeQueueNums:3},` +
		`"U":{"topicName":"U"}}}`)
	success(t, ask(s, c, protocol.ReqRegisterBroker, 28, body, "brokerName", "a", "brokerAddr", "10.0.0.1:1", "clusterName", "C", "brokerId", "0"))
	require.EqualValues(t, 3, routeOf(t, s, c, "T").QueueDatas[0].ReadQueueNums)
}

func TestWipeAndAddWritePermission(t *testing.T) {
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	topics := topicsOf("T", "R", "W", "TBW102")
	for name, perm := range map[string]int32{"R": 4, "W": 2, "TBW102": 7} {
		topics[name] = protocol.TopicConfig{TopicName: name, Perm: perm, ReadQueueNums: 1, WriteQueueNums: 1}
	}
	n := node{name: "a", addr: "10.0.0.1:1", version: version(1)}
	success(t, n.register(s, c, topics))
	success(t, node{name: "b", addr: "10.0.0.2:1", version: version(1)}.register(s, c, topicsOf("T", "X")))
	perms := func() string {
		var all []string
		for _, topic := range []string{"T", "R", "W", "TBW102"} {
			all = append(all, strconv.Itoa(int(routeOf(t, s, c, topic).QueueDatas[0].Perm)))
		}
		return strings.Join(all, " ")
	}
	count := func(code int32, broker, field string) string {
		r := ask(s, c, code, 513, nil, "brokerName", broker)
		success(t, r)
		n, _ := r.Ext.Get(field)
		return string(n)
	}
	require.Equal(t, "4", count(protocol.ReqWipeWritePermOfBroker, "a", "wipeTopicCount"))
	require.Equal(t, "4 4 0 5", perms())
	require.EqualValues(t, 6, routeOf(t, s, c, "T").QueueDatas[1].Perm, "of the other broker")
	success(t, n.register(s, c, topics))
	require.Equal(t, "4 4 0 5", perms(), "until something changes")
	n.version = version(2)
	success(t, n.register(s, c, topics))
	require.Equal(t, "6 4 2 7", perms())
	require.Equal(t, "4", count(protocol.ReqAddWritePermOfBroker, "a", "addTopicCount"))
	require.Equal(t, "6 6 6 6", perms())
	require.Equal(t, "0", count(protocol.ReqWipeWritePermOfBroker, "nobody", "wipeTopicCount"))
	require.EqualValues(t, protocol.RespSystemError, ask(s, c, protocol.ReqWipeWritePermOfBroker, 513, nil).Code)
}

func TestSingleTopicRegistration(t *testing.T) {
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	success(t, node{name: "a", addr: "10.0.0.1:1", version: version(1)}.register(s, c, topicsOf("T", "U")))
	add := func(brokers ...string) *protocol.Command {
		var route protocol.TopicRouteData
		for _, b := range brokers {
			route.QueueDatas = append(route.QueueDatas, protocol.QueueData{BrokerName: b, Perm: 6, ReadQueueNums: 2, WriteQueueNums: 2, TopicSysFlag: 1})
		}
		return ask(s, c, protocol.ReqRegisterTopicInNamesrv, 513, protocol.AppendJSON(nil, &route), "topic", "New")
	}
	r := add("a", "unknown")
	require.EqualValues(t, protocol.RespSystemError, r.Code)
	require.Equal(t, `register topic failed: broker "unknown" is not registered`, r.Remark)
	require.Nil(t, routeOf(t, s, c, "New"))
	success(t, add("a"))
	require.Equal(t, []protocol.QueueData{{BrokerName: "a", Perm: 6, ReadQueueNums: 2, WriteQueueNums: 2, TopicSysFlag: 1}}, routeOf(t, s, c, "New").QueueDatas)
	require.NotNil(t, routeOf(t, s, c, "T"))
}

func TestDeleteTopic(t *testing.T) {
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	success(t, node{name: "a", addr: "10.0.0.1:1"}.register(s, c, topicsOf("T", "U")))
	success(t, node{name: "b", addr: "10.0.0.2:1", cluster: "D"}.register(s, c, topicsOf("T", "U")))
	success(t, ask(s, c, protocol.ReqDeleteTopicInNamesrv, 513, nil, "topic", "T", "clusterName", "D"))
	require.Equal(t, "a", routeOf(t, s, c, "T").QueueDatas[0].BrokerName)
	success(t, ask(s, c, protocol.ReqDeleteTopicInNamesrv, 513, nil, "topic", "U"))
	require.Nil(t, routeOf(t, s, c, "U"))
	success(t, ask(s, c, protocol.ReqDeleteTopicInNamesrv, 513, nil, "topic", "U"))
	require.Equal(t, 1, s.table.entries)
}

func TestActingMaster(t *testing.T) {
	settings := DefaultSettings()
	settings.SupportActingMaster = true
	s := newServer(t, Options{Settings: &settings})
	masterConn, slaveConn, c := connAt("127.0.0.1"), connAt("127.0.0.1"), connAt("127.0.0.1")
	acting := []string{"enableActingMaster", "true"}
	const sync = "rmq_sys_SYNC_BROKER_MEMBER_a"
	master := node{name: "a", addr: "10.0.0.1:1", version: version(1), ext: acting}
	success(t, master.register(s, masterConn, topicsOf("T", "U", sync)))
	success(t, node{name: "a", id: 2, addr: "10.0.0.2:1", version: version(1), ext: acting}.register(s, slaveConn, topicsOf("T", "U", sync)))
	success(t, node{name: "a", id: 3, addr: "10.0.0.3:1", version: version(1), ext: acting}.register(s, slaveConn, topicsOf("T", "U", sync)))
	s.Closed(masterConn)
	r := routeOf(t, s, c, "T")
	require.EqualValues(t, 4, r.QueueDatas[0].Perm, "nothing can be written without the master")
	require.Equal(t, map[int64]string{0: "10.0.0.2:1", 3: "10.0.0.3:1"}, r.BrokerDatas[0].BrokerAddrs)
	require.True(t, r.BrokerDatas[0].EnableActingMaster)
	require.Equal(t, map[int64]string{2: "10.0.0.2:1", 3: "10.0.0.3:1"}, routeOf(t, s, c, sync).BrokerDatas[0].BrokerAddrs)
	// The slave with the smallest id brings topics, without the permission to write.
	success(t, node{name: "a", id: 2, addr: "10.0.0.2:1", version: version(2), ext: acting}.register(s, slaveConn, topicsOf("T", "N")))
	require.EqualValues(t, 4, routeOf(t, s, c, "N").QueueDatas[0].Perm)
	success(t, ask(s, c, protocol.ReqUpdateNamesrvConfig, 513, []byte("supportActingMaster=false\n")))
	require.Equal(t, map[int64]string{2: "10.0.0.2:1", 3: "10.0.0.3:1"}, routeOf(t, s, c, "T").BrokerDatas[0].BrokerAddrs)
	master.version = version(3)
	success(t, master.register(s, masterConn, topicsOf("T", "U")))
	require.EqualValues(t, 6, routeOf(t, s, c, "T").QueueDatas[0].Perm)
}

func TestMemberGroup(t *testing.T) {
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	success(t, node{name: "a", addr: "10.0.0.1:1"}.register(s, c, topicsOf("T", "U")))
	success(t, node{name: "a", id: 1, addr: "10.0.0.2:1"}.register(s, c, topicsOf("T", "U")))
	r := ask(s, c, protocol.ReqGetBrokerMemberGroup, 513, nil, "clusterName", "C", "brokerName", "a")
	require.Equal(t, `{"brokerMemberGroup":{"brokerAddrs":{0:"10.0.0.1:1",1:"10.0.0.2:1"},"brokerName":"a","cluster":"C"}}`, string(r.Body))
	r = ask(s, c, protocol.ReqGetBrokerMemberGroup, 513, nil, "clusterName", "C", "brokerName", "x")
	require.Equal(t, `{"brokerMemberGroup":{"brokerAddrs":{},"brokerName":"x","cluster":"C"}}`, string(r.Body))
}

func TestTopicLists(t *testing.T) {
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	topics := topicsOf("T", "Unit", "Sub", "Both")
	for name, flag := range map[string]int32{"Unit": 1, "Sub": 2, "Both": 3} {
		topics[name] = protocol.TopicConfig{TopicName: name, TopicSysFlag: flag}
	}
	success(t, node{name: "a", addr: "10.0.0.1:1"}.register(s, c, topics))
	success(t, node{name: "b", addr: "10.0.0.2:1", cluster: "D"}.register(s, c, topicsOf("T", "U")))
	for _, x := range []struct {
		code int32
		ext  []string
		want string
	}{
		{protocol.ReqGetAllTopicListFromNameserver, nil, `{"topicList":["Both","Sub","T","U","Unit"]}`},
		{protocol.ReqGetTopicsByCluster, []string{"cluster", "D"}, `{"topicList":["T","U"]}`},
		{protocol.ReqGetTopicsByCluster, []string{"cluster", "X"}, `{"topicList":[]}`},
		{protocol.ReqGetSystemTopicListFromNs, nil, `{"brokerAddr":"10.0.0.1:1","topicList":["C","D","a","b"]}`},
		{protocol.ReqGetUnitTopicList, nil, `{"topicList":["Both","Unit"]}`},
		{protocol.ReqGetHasUnitSubTopicList, nil, `{"topicList":["Both","Sub"]}`},
		{protocol.ReqGetHasUnitSubUnunitTopicList, nil, `{"topicList":["Sub"]}`},
		{protocol.ReqGetBrokerClusterInfo, nil, `{"brokerAddrTable":{"a":{"brokerAddrs":{0:"10.0.0.1:1"},"brokerName":"a","cluster":"C","enableActingMaster":false},` +
			`"b":{"brokerAddrs":{0:"10.0.0.2:1"},"brokerName":"b","cluster":"D","enableActingMaster":false}},"clusterAddrTable":{"C":["a"],"D":["b"]}}`},
	} {
		r := ask(s, c, x.code, 513, nil, x.ext...)
		success(t, r)
		require.Equal(t, x.want, string(r.Body))
	}
	success(t, ask(s, c, protocol.ReqUpdateNamesrvConfig, 513, []byte("enableTopicList=false\nenableAllTopicList = false")))
	require.Equal(t, `{"topicList":[]}`, string(ask(s, c, protocol.ReqGetAllTopicListFromNameserver, 513, nil).Body))
	for _, code := range []int32{protocol.ReqGetTopicsByCluster, protocol.ReqGetSystemTopicListFromNs, protocol.ReqGetHasUnitSubTopicList} {
		r := ask(s, c, code, 513, nil, "cluster", "C")
		require.EqualValues(t, protocol.RespSystemError, r.Code)
		require.Contains(t, r.Remark, "enableTopicList")
	}
}

func TestBadRegistrationsSayWhatIsWrong(t *testing.T) {
	good := map[string]string{"brokerName": "a", "brokerAddr": "10.0.0.1:1", "clusterName": "C", "brokerId": "0"}
	body := protocol.AppendJSON(nil, &protocol.RegisterBrokerBody{TopicConfigSerializeWrapper: protocol.TopicConfigWrapper{TopicConfigTable: topicsOf("T", "U")}})
	bad := func(name string) []byte { return []byte(strings.ReplaceAll(string(body), `"T"`, name)) }
	for _, x := range []struct {
		name, field, value string
		body               []byte
		remark             string
	}{
		{"no name", "brokerName", "", body, "header field brokerName is missing"},
		{"id", "brokerId", "x", body, `header field brokerId is not a 64-bit integer: "x"`},
		{"negative id", "brokerId", "-1", body, "brokerId is -1"},
		{"port", "brokerAddr", "10.0.0.1", body, `brokerAddr "10.0.0.1" is not host:port`},
		{"two addresses", "brokerAddr", "10.0.0.1:1,10.0.0.2:1", body, "has a character that names do not have"},
		{"control", "clusterName", "a\x01", body, "clusterName \"a\\x01\" has a character"},
		{"long", "clusterName", strings.Repeat("c", 256), body, "is longer than MaxNameBytes"},
		{"zone", "__ZONE_NAME", "z z", body, "zone name"},
		{"checksum", "bodyCrc32", "1", body, "crc32 not match"},
		{"JSON", "brokerName", "a", []byte("{"), "register broker failed: "},
		{"zlib", "brokerName", "a", []byte{0x78, 1, 2}, "register broker failed: "},
		{"topic", "brokerName", "a", bad(`"a b"`), `topic "a b" has a character`},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := newServer(t, Options{})
			var ext []string
			for k, v := range good {
				if k != x.field {
					ext = append(ext, k, v)
				}
			}
			r := ask(s, connAt("127.0.0.1"), protocol.ReqRegisterBroker, 513, x.body, append(ext, x.field, x.value)...)
			require.EqualValues(t, protocol.RespSystemError, r.Code)
			require.Contains(t, r.Remark, x.remark)
			require.Empty(t, s.table.brokers)
		})
	}
}

func TestLimits(t *testing.T) {
	c := connAt("127.0.0.1")
	s := newServer(t, Options{Limits: Limits{MaxBrokers: 2, MaxTopicEntries: 5, MaxKVBytes: 20, MaxMappedQueues: 3, MaxFilterServers: 1, MaxBodyBytes: 100}})
	refused := func(r *protocol.Command, limit string) {
		t.Helper()
		require.EqualValues(t, protocol.RespSystemError, r.Code)
		require.Contains(t, r.Remark, limit)
	}
	success(t, node{name: "a", addr: "10.0.0.1:1"}.register(s, c, topicsOf("T", "U")))
	refused(node{name: "b", addr: "10.0.0.2:1"}.register(s, c, topicsOf("1", "2", "3", "4")), "MaxTopicEntries (5)")
	success(t, node{name: "b", addr: "10.0.0.2:1"}.register(s, c, topicsOf("1", "2", "3")))
	success(t, node{name: "b", addr: "10.0.0.2:1", version: version(2)}.register(s, c, topicsOf("1", "2")))
	refused(node{name: "c", addr: "10.0.0.3:1"}.register(s, c, nil), "MaxBrokers (2)")
	refused(ask(s, c, protocol.ReqRegisterTopicInNamesrv, 513, []byte(`{"queueDatas":[{"brokerName":"a"}]}`), "topic", "V"), "MaxTopicEntries (5)")
	refused(ask(s, c, protocol.ReqGetRouteinfoByTopic, 513, nil, "topic", "T"), "MaxBodyBytes (100)")

	body := func(wrapper string) *protocol.Command {
		return ask(s, c, protocol.ReqRegisterBroker, 513, []byte(`{"filterServerList":["f:1","g:1"],"topicConfigSerializeWrapper":`+wrapper+`}`),
			"brokerName", "a", "brokerAddr", "10.0.0.1:1", "clusterName", "C", "brokerId", "0")
	}
	refused(body("{}"), "MaxFilterServers (1)")
	r := ask(s, c, protocol.ReqRegisterBroker, 513, []byte(`{"topicConfigSerializeWrapper":{"dataVersion":{"counter":7},"topicQueueMappingInfoMap":{"T":{"currIdMap":{0:0,1:1,2:2,3:3}}}}}`),
		"brokerName", "a", "brokerAddr", "10.0.0.1:1", "clusterName", "C", "brokerId", "0")
	refused(r, "MaxMappedQueues (3)")

	success(t, ask(s, c, protocol.ReqPutKvConfig, 513, nil, "namespace", "N", "key", "k", "value", strings.Repeat("v", 18)))
	refused(ask(s, c, protocol.ReqPutKvConfig, 513, nil, "namespace", "N", "key", "k", "value", strings.Repeat("v", 19)), "MaxKVBytes (20)")
}

func TestStaticTopics(t *testing.T) {
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	register := func(counter int, mapping string) {
		t.Helper()
		topics, err := json.Marshal(topicsOf("S", "T"))
		require.NoError(t, err)
		success(t, ask(s, c, protocol.ReqRegisterBroker, 513, []byte(`{"topicConfigSerializeWrapper":{"dataVersion":{"counter":`+strconv.Itoa(counter)+`},`+
			`"topicConfigTable":`+string(topics)+`,"topicQueueMappingInfoMap":{`+mapping+`}}}`),
			"brokerName", "a", "brokerAddr", "10.0.0.1:1", "clusterName", "C", "brokerId", "0"))
	}
	register(1, `"S":{"bname":"a","currIdMap":{0:0,1:1},"dirty":false,"epoch":3,"scope":"__global__","topic":"S","totalQueues":4},"unknown":{"currIdMap":{0:0}}`)
	r := ask(s, c, protocol.ReqGetRouteinfoByTopic, 399, nil, "topic", "S")
	require.Contains(t, string(r.Body), `,"topicQueueMappingByBroker":{"a":{"bname":"a","currIdMap":{0:0,1:1},"dirty":false,"epoch":3,`+
		`"scope":"__global__","topic":"S","totalQueues":4}}}`)
	require.NotContains(t, string(ask(s, c, protocol.ReqGetRouteinfoByTopic, 513, nil, "topic", "T").Body), "topicQueueMappingByBroker")
	register(2, `"S":{"bname":"a","currIdMap":{0:0},"topic":"S","totalQueues":4}`)
	require.Equal(t, 1, s.table.mapped)
	s.Closed(c)
	require.Zero(t, s.table.mapped)
}
