package nameserver

import (
	"maps"
	"slices"

	"github.com/metaqio/metaq/internal/protocol"
)

// allTopics answers 206.
func (s *Server) allTopics(_ Conn, cmd *protocol.Command) *protocol.Command {
	return s.listTopics(cmd, func(string, *topic) bool { return s.settings.EnableAllTopicList })
}

// listTopics answers with the names of topics that match, sorted. match is called with the lock held.
func (s *Server) listTopics(cmd *protocol.Command, match func(name string, t *topic) bool) *protocol.Command {
	list := protocol.TopicList{TopicList: []string{}}
	s.mu.RLock()
	for name, t := range s.table.topics {
		if match(name, t) {
			list.TopicList = append(list.TopicList, name)
		}
	}
	s.mu.RUnlock()
	slices.Sort(list.TopicList)
	return s.withBody(cmd, protocol.AppendJSON(nil, &list))
}

// listDisabled is the answer to 224, 304 and 311 to 313 when enableTopicList is off; else nil.
func (s *Server) listDisabled(cmd *protocol.Command) *protocol.Command {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.settings.EnableTopicList {
		return nil
	}
	return cmd.Reply(protocol.RespSystemError, "disable: enableTopicList of the name server is false")
}

// topicsOfCluster answers 224.
func (s *Server) topicsOfCluster(_ Conn, cmd *protocol.Command) *protocol.Command {
	var h protocol.GetTopicsByClusterRequest
	if err := h.Decode(&cmd.Ext); err != nil {
		return invalid(cmd, err)
	}
	if r := s.listDisabled(cmd); r != nil {
		return r
	}
	return s.listTopics(cmd, func(_ string, t *topic) bool {
		return slices.ContainsFunc(t.queues, func(q queues) bool { return q.broker.cluster == h.Cluster })
	})
}

// systemTopics answers 304: names of clusters and brokers, which are topics too, and the address of one broker to ask for more.
func (s *Server) systemTopics(c Conn, cmd *protocol.Command) *protocol.Command {
	if r := s.listDisabled(cmd); r != nil {
		return r
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := protocol.TopicList{TopicList: []string{}}
	clusters := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.table.brokers)) {
		b := s.table.brokers[name]
		clusters[b.cluster] = true
		list.TopicList = append(list.TopicList, name)
		for _, m := range b.members {
			if list.BrokerAddr == "" {
				list.BrokerAddr = m.address(c)
			}
		}
	}
	list.TopicList = append(slices.Sorted(maps.Keys(clusters)), list.TopicList...)
	return s.withBody(cmd, protocol.AppendJSON(nil, &list))
}

// unitTopics, unitSubTopics and unitSubOnlyTopics answer 311 to 313.
func (s *Server) unitTopics(_ Conn, cmd *protocol.Command) *protocol.Command {
	return s.flaggedTopics(cmd, func(flag int32) bool { return flag&flagUnit != 0 })
}

func (s *Server) unitSubTopics(_ Conn, cmd *protocol.Command) *protocol.Command {
	return s.flaggedTopics(cmd, func(flag int32) bool { return flag&flagUnitSub != 0 })
}

func (s *Server) unitSubOnlyTopics(_ Conn, cmd *protocol.Command) *protocol.Command {
	return s.flaggedTopics(cmd, func(flag int32) bool { return flag&(flagUnit|flagUnitSub) == flagUnitSub })
}

func (s *Server) flaggedTopics(cmd *protocol.Command, match func(flag int32) bool) *protocol.Command {
	if r := s.listDisabled(cmd); r != nil {
		return r
	}
	return s.listTopics(cmd, func(_ string, t *topic) bool {
		return slices.ContainsFunc(t.queues, func(q queues) bool { return match(q.sysFlag) })
	})
}
