package nameserver

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
)

// Bits of a topic's permission and of its system flag.
const (
	permWrite = 2
	permRead  = 4

	flagUnit    = 1
	flagUnitSub = 2
)

// masterID is the id of the replica that clients send to.
const masterID = 0

// A table is what is known of brokers and topics. Server.mu guards it.
//
// It holds that a broker has at least one member, and that a topic has queues on at least one broker, each of which is in brokers.
type table struct {
	brokers map[string]*broker
	topics  map[string]*topic
	// conns finds the members that registered by a connection, for the moment it ends.
	conns   map[Conn]map[*member]*broker
	members int // of all brokers
	entries int // queues of all topics
	mapped  int // logical queues of all static topics
	// generation grows with every change that a route can show.
	generation uint64
}

// A broker is a name under which one or more replicas are reached.
type broker struct {
	name, cluster, zone string
	// actingMaster says that clients may be told a slave as master while there is none.
	actingMaster bool
	members      []*member // by id
}

// A member is one replica of a broker: an id and an address.
type member struct {
	id    int64
	addr  string // unless local
	local *Local // when it is the broker of this process

	ha            string
	filterServers []string
	last          *registration // the newest; nil if local
	conn          Conn          // by which it registered last
	seen          time.Time
	expiry        time.Duration
}

// A topic is known by the queues that brokers have of it.
type topic struct {
	queues []queues // by broker name
	// mapping is there for static topics: where each broker has its logical queues.
	mapping map[string]protocol.TopicQueueMappingInfo
	cache   routeCache
}

// queues of a topic on one broker.
type queues struct {
	broker *broker
	shape
	from *registration // that brought them; nil: one that has no version
}

// A shape is what a registration says of a topic.
type shape struct{ read, write, perm, sysFlag int32 }

func shapeOf(c *protocol.TopicConfig) shape {
	return shape{read: c.ReadQueueNums, write: c.WriteQueueNums, perm: c.Perm, sysFlag: c.TopicSysFlag}
}

// A registration is who brought queues, and how new they are.
type registration struct {
	conn    Conn
	addr    string
	version protocol.DataVersion
}

// overtaken says that r was made before other, by the same broker, although it arrived later.
func (r *registration) overtaken(other *registration) bool {
	return other != nil && r != nil && r.conn == other.conn && r.addr == other.addr &&
		r.version.StateVersion == other.version.StateVersion &&
		r.version.Counter < other.version.Counter && r.version.Timestamp <= other.version.Timestamp
}

func newTable() table {
	return table{brokers: map[string]*broker{}, topics: map[string]*topic{}, conns: map[Conn]map[*member]*broker{}}
}

func (b *broker) at(id int64) (int, bool) {
	return slices.BinarySearchFunc(b.members, id, func(m *member, id int64) int { return cmp.Compare(m.id, id) })
}

// member finds the replica with an id; nil when there is none.
func (b *broker) member(id int64) *member {
	if i, ok := b.at(id); ok {
		return b.members[i]
	}
	return nil
}

// byAddr finds the replica that is not local and has an address; nil when there is none.
func (b *broker) byAddr(addr string) *member {
	for _, m := range b.members {
		if m.local == nil && m.addr == addr {
			return m
		}
	}
	return nil
}

// isLocal says whether one of the replicas is the broker of this process. It alone then says which topics there are.
func (b *broker) isLocal() bool {
	return slices.ContainsFunc(b.members, func(m *member) bool { return m.local != nil })
}

// min is the replica with the smallest id.
func (b *broker) min() *member { return b.members[0] }

func (t *topic) at(broker string) (int, bool) {
	return slices.BinarySearchFunc(t.queues, broker, func(q queues, name string) int { return strings.Compare(q.broker.name, name) })
}

// find gives the queues of a topic on a broker; nil when there are none.
func (t *table) find(topic, broker string) *queues {
	if e := t.topics[topic]; e != nil {
		if i, ok := e.at(broker); ok {
			return &e.queues[i]
		}
	}
	return nil
}

// put gives a topic queues on a broker, in place of those it had there.
func (t *table) put(name string, q queues) {
	e := t.topics[name]
	if e == nil {
		e = &topic{}
		t.topics[strings.Clone(name)] = e
	}
	i, ok := e.at(q.broker.name)
	switch {
	case !ok:
		e.queues = slices.Insert(e.queues, i, q)
		t.entries++
		t.generation++
	case e.queues[i].shape != q.shape:
		t.generation++
		fallthrough
	default:
		e.queues[i] = q
	}
}

// remove takes a topic's queues off a broker, and forgets the topic when it has no others.
func (t *table) remove(name, broker string) bool {
	e := t.topics[name]
	if e == nil {
		return false
	}
	i, ok := e.at(broker)
	if !ok {
		return false
	}
	e.queues = slices.Delete(e.queues, i, i+1)
	t.mapped -= len(e.mapping[broker].CurrIdMap)
	delete(e.mapping, broker)
	t.entries--
	t.generation++
	if len(e.queues) == 0 {
		delete(t.topics, name)
	}
	return true
}

// topicsOf calls fn for the queues of every topic on a broker; fn may change their shape, and reports whether it did.
func (t *table) topicsOf(broker string, fn func(q *queues) bool) (n int) {
	for _, e := range t.topics {
		if i, ok := e.at(broker); ok {
			n++
			if fn(&e.queues[i]) {
				t.generation++
			}
		}
	}
	return n
}

// setPerm changes the permission of all topics of a broker and counts them.
func (t *table) setPerm(broker string, change func(perm int32) int32) int {
	return t.topicsOf(broker, func(q *queues) bool {
		was := q.perm
		q.perm = change(was)
		return q.perm != was
	})
}

func withoutWrite(perm int32) int32 { return perm &^ permWrite }

// readWrite is what administrators add: whatever the permission was, as RocketMQ does it.
func readWrite(int32) int32 { return permRead | permWrite }

// bind notes by which connection a member registered last.
func (t *table) bind(b *broker, m *member, c Conn) {
	if m.conn == c && c != nil {
		return
	}
	t.unbind(m)
	if m.conn = c; c == nil {
		return
	}
	if t.conns[c] == nil {
		t.conns[c] = map[*member]*broker{}
	}
	t.conns[c][m] = b
}

func (t *table) unbind(m *member) {
	if m.conn == nil {
		return
	}
	if of := t.conns[m.conn]; of != nil {
		if delete(of, m); len(of) == 0 {
			delete(t.conns, m.conn)
		}
	}
	m.conn = nil
}
