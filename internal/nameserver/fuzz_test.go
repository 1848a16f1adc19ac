package nameserver

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

// FuzzServe serves any request with any body: first what is given, then what a client and a tool would see of it.
func FuzzServe(f *testing.F) {
	for _, r := range recordings(f) {
		b, err := hex.DecodeString(r.Request)
		require.NoError(f, err)
		var cmd protocol.Command
		require.NoError(f, cmd.Decode(b))
		f.Add(b, cmd.Body)
		cmd.Body = nil
		f.Add(cmd.Append(nil), []byte(`{"queueDatas":[{"brokerName":"broker-a"}]}`))
	}
	body := protocol.RegisterBrokerBody{TopicConfigSerializeWrapper: protocol.TopicConfigWrapper{
		TopicConfigTable:         topicsOf("T", "U"),
		TopicQueueMappingInfoMap: map[string]protocol.TopicQueueMappingInfo{"T": {Bname: "a", Topic: "T", CurrIdMap: map[int32]int32{0: 1}}},
	}}
	register := protocol.Command{Code: protocol.ReqRegisterBroker, Version: 513}
	(&protocol.RegisterBrokerRequest{BrokerName: "broker-a", BrokerAddr: "[::1]:1", ClusterName: "C", HasEnableActingMaster: true}).Encode(&register.Ext)
	f.Add(register.Append(nil), protocol.AppendRegisterBroker(nil, &body, true))
	f.Add(register.Append(nil), protocol.AppendRegisterBroker(nil, &body, false))
	f.Add(register.Append(nil), []byte("kvConfigPath=x\norderMessageEnable=true"))

	f.Fuzz(func(t *testing.T, frame, body []byte) {
		var cmd protocol.Command
		if cmd.Decode(frame) != nil {
			return
		}
		h := &here{}
		h.set(topicWith("L", 6, 4))
		s, c := newServer(t, Options{Limits: Limits{MaxTopicEntries: 1000}}), connAt("127.0.0.1")
		s.SetLocal(h.local())
		for range 2 { // the first brokers and topics, and then once more
			success(t, node{name: "broker-a", addr: "10.0.0.1:1", cluster: "C"}.register(s, c, topicsOf("T", "U")))
			cmd.Body = body
			r := s.Serve(c, &cmd)
			require.Equal(t, cmd.IsOneway(), r == nil)
			if r != nil {
				r.Append(nil)
			}
			s.table.check(t, s)
			var info protocol.ClusterInfo
			require.NoError(t, protocol.ParseJSON(ask(s, c, protocol.ReqGetBrokerClusterInfo, 513, nil).Body, &info))
			for name := range s.table.topics {
				r := ask(s, c, protocol.ReqGetRouteinfoByTopic, 317, nil, "topic", name)
				success(t, r)
				goRoute(t, string(r.Body))
			}
		}
		s.Closed(c)
		s.table.check(t, s)
		require.Equal(t, 1, s.table.members, "the local broker remains")
	})
}
