package nameserver

import (
	"maps"
	"slices"

	"github.com/metaqio/metaq/internal/protocol"
)

// address is how a client that asks over c reaches the replica; empty when it cannot.
func (m *member) address(c Conn) string {
	if m.local != nil {
		return m.local.Address(c)
	}
	return m.addr
}

// haAddress is the same for replication.
func (m *member) haAddress(c Conn) string {
	switch {
	case m.local == nil:
		return m.ha
	case m.local.HAAddress == nil:
		return ""
	}
	return m.local.HAAddress(c)
}

// localAddress is the address of the broker of this process for c; empty when there is none. The caller holds the lock.
func (s *Server) localAddress(c Conn) string {
	if s.local == nil {
		return ""
	}
	return s.local.Address(c)
}

// clusterInfo answers 106.
func (s *Server) clusterInfo(c Conn, cmd *protocol.Command) *protocol.Command {
	s.mu.RLock()
	defer s.mu.RUnlock()
	local := s.localAddress(c)
	info := protocol.ClusterInfo{BrokerAddrTable: map[string]protocol.BrokerData{}, ClusterAddrTable: map[string][]string{}}
	for _, name := range slices.Sorted(maps.Keys(s.table.brokers)) {
		b := s.table.brokers[name]
		data := b.data(local)
		if len(data.BrokerAddrs) == 0 {
			continue
		}
		info.BrokerAddrTable[name] = data
		info.ClusterAddrTable[b.cluster] = append(info.ClusterAddrTable[b.cluster], name)
	}
	return s.withBody(cmd, protocol.AppendJSON(nil, &info))
}

// memberGroup answers 901.
func (s *Server) memberGroup(c Conn, cmd *protocol.Command) *protocol.Command {
	var h protocol.GetBrokerMemberGroupRequest
	if err := h.Decode(&cmd.Ext); err != nil {
		return invalid(cmd, err)
	}
	group := &protocol.BrokerMemberGroup{BrokerAddrs: map[int64]string{}, BrokerName: h.BrokerName, Cluster: h.ClusterName}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if b := s.table.brokers[h.BrokerName]; b != nil {
		group.BrokerAddrs = b.data(s.localAddress(c)).BrokerAddrs
	}
	return s.withBody(cmd, protocol.AppendJSON(nil, &protocol.BrokerMemberGroupBody{BrokerMemberGroup: group}))
}

// wipeWrite answers 205.
func (s *Server) wipeWrite(c Conn, cmd *protocol.Command) *protocol.Command {
	var h protocol.WipeWritePermRequest
	if err := h.Decode(&cmd.Ext); err != nil {
		return invalid(cmd, err)
	}
	n := s.setPerm(c, h.BrokerName, "wiped", withoutWrite)
	r := cmd.Reply(protocol.RespSuccess, "")
	(&protocol.WipeWritePermResponse{WipeTopicCount: n}).Encode(&r.Ext)
	return r
}

// addWrite answers 327.
func (s *Server) addWrite(c Conn, cmd *protocol.Command) *protocol.Command {
	var h protocol.AddWritePermRequest
	if err := h.Decode(&cmd.Ext); err != nil {
		return invalid(cmd, err)
	}
	n := s.setPerm(c, h.BrokerName, "added", readWrite)
	r := cmd.Reply(protocol.RespSuccess, "")
	(&protocol.AddWritePermResponse{AddTopicCount: n}).Encode(&r.Ext)
	return r
}

func (s *Server) setPerm(c Conn, broker, what string, change func(int32) int32) int32 {
	s.mu.Lock()
	n := s.table.setPerm(broker, change)
	s.mu.Unlock()
	s.log.Info("write permission changed", "how", what, "broker", broker, "topics", n, "by", c.Remote())
	return int32(n)
}
