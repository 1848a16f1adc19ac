package nameserver

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

// TestManyAtOnce has brokers, clients, administrators and the local broker use one server from many goroutines.
func TestManyAtOnce(t *testing.T) {
	h := &here{}
	h.set(topicWith("T", 6, 4))
	s := newServer(t, Options{})
	s.SetLocal(h.local())
	const rounds = 200
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() { // a broker that comes and goes
			n := node{name: fmt.Sprint("b", i%3), id: int64(i / 3), addr: fmt.Sprintf("10.0.0.%d:1", i)}
			for round := range int64(rounds) {
				c := connAt("127.0.0.1")
				n.version = version(round)
				n.register(s, c, topicsOf("T", "U", "V"+strconv.Itoa(i)))
				n.version = version(round + 1)
				n.register(s, c, topicsOf("T"))
				s.Closed(c)
			}
		})
		all.Go(func() { // a client
			c := connAt(fmt.Sprintf("127.0.0.%d", i+1))
			for range rounds {
				r := ask(s, c, protocol.ReqGetRouteinfoByTopic, []int32{317, 513}[i%2], nil, "topic", "T")
				success(t, r)
				if i%2 == 0 {
					require.Contains(t, goRoute(t, string(r.Body)), "0")
				}
				ask(s, c, protocol.ReqGetBrokerClusterInfo, 513, nil)
				ask(s, c, protocol.ReqGetAllTopicListFromNameserver, 513, nil)
			}
		})
	}
	all.Go(func() {
		for n := range int32(rounds) {
			h.set(topicWith("T", 6, 1+n), topicWith("L"+strconv.Itoa(int(n)), 6, 1))
			s.LocalChanged()
			require.Equal(t, 1+n, localQueues(t, s))
		}
	})
	all.Go(func() {
		c := connAt("127.0.0.1")
		for n := range rounds {
			ask(s, c, protocol.ReqWipeWritePermOfBroker, 513, nil, "brokerName", "b1")
			ask(s, c, protocol.ReqAddWritePermOfBroker, 513, nil, "brokerName", "b1")
			kvCall(s, protocol.ReqPutKvConfig, "ORDER_TOPIC_CONFIG", "T", strconv.Itoa(n))
			ask(s, c, protocol.ReqUpdateNamesrvConfig, 513, []byte("orderMessageEnable="+strconv.FormatBool(n%2 == 0)))
			ask(s, c, protocol.ReqDeleteTopicInNamesrv, 513, nil, "topic", "U")
			s.table.check(t, s)
		}
	})
	all.Wait()
	require.Len(t, s.table.brokers, 1)
	require.Equal(t, 1, s.table.members)
	require.Empty(t, s.table.conns)
	require.Len(t, s.table.topics, 2)
}

func localQueues(t *testing.T, s *Server) int32 {
	for _, q := range routeOf(t, s, connAt("127.0.0.1"), "T").QueueDatas {
		if q.BrokerName == "local" {
			return q.ReadQueueNums
		}
	}
	return 0
}

// check compares the counts and cross-references of a table with what is in it.
func (t *table) check(tb testing.TB, s *Server) {
	tb.Helper()
	s.mu.RLock()
	defer s.mu.RUnlock()
	members, bound, entries, mapped := 0, 0, 0, 0
	for name, b := range t.brokers {
		require.Equal(tb, name, b.name)
		require.NotEmpty(tb, b.members)
		for i, m := range b.members {
			members++
			require.True(tb, i == 0 || b.members[i-1].id < m.id)
			if m.conn != nil {
				require.Same(tb, b, t.conns[m.conn][m])
			}
		}
	}
	for c, of := range t.conns {
		for m := range of {
			require.Equal(tb, c, m.conn)
			bound++
		}
		require.NotEmpty(tb, of)
	}
	for name, e := range t.topics {
		require.NotEmpty(tb, e.queues, name)
		entries += len(e.queues)
		for _, q := range e.queues {
			require.Same(tb, t.brokers[q.broker.name], q.broker)
		}
		for _, info := range e.mapping {
			mapped += len(info.CurrIdMap)
		}
	}
	require.Equal(tb, t.members, members)
	require.LessOrEqual(tb, bound, members)
	require.Equal(tb, t.entries, entries)
	require.Equal(tb, t.mapped, mapped)
}

func BenchmarkRoute(b *testing.B) {
	h := &here{}
	h.set(topicWith("T", 6, 4))
	s := newServer(b, Options{})
	s.SetLocal(h.local())
	success(b, node{name: "remote", addr: "10.0.0.1:1"}.register(s, connAt("10.0.0.1"), topicsOf("T", "U")))
	c := connAt("127.0.0.1")
	var cmd protocol.Command
	cmd.Code, cmd.Version = protocol.ReqGetRouteinfoByTopic, 513
	cmd.Ext.Set("topic", "T")
	for _, x := range []struct {
		name  string
		fresh bool
	}{{"cached", false}, {"encoded", true}} {
		b.Run(x.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if x.fresh {
					s.mu.Lock()
					s.table.generation++
					s.mu.Unlock()
				}
				if s.Serve(c, &cmd).Code != protocol.RespSuccess {
					b.Fatal("no route")
				}
			}
		})
	}
}
