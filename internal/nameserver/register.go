package nameserver

import (
	"fmt"
	"slices"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
)

// An arrival is a registration as it came in, checked as far as that goes without the table.
type arrival struct {
	header protocol.RegisterBrokerRequest
	body   *protocol.RegisterBrokerBody
	conn   Conn
	now    time.Time
	expiry time.Duration
	// replace says that topics that the broker no longer names are removed (setting deleteTopicWithBrokerRegistration).
	replace bool
}

// accepted is what a registration is answered with.
type accepted struct {
	ignored bool    // another replica with the same id is newer
	master  *member // of a slave, when there is one; a copy
	// min is set when the smallest id of the broker has changed, for a notice.
	min *notice
}

// register takes a registration into the table. The error is why not, and nothing has changed then.
func (t *table) register(a *arrival, limits *Limits) (accepted, error) {
	h := &a.header
	b := t.brokers[h.BrokerName]
	same, err := t.admit(b, a, limits)
	if err != nil {
		return accepted{}, err
	}
	if b == nil {
		b = &broker{name: h.BrokerName, cluster: h.ClusterName}
		t.brokers[b.name] = b
		t.generation++
	}
	t.describe(b, h)
	if moved := b.byAddr(h.BrokerAddr); moved != nil && moved.id != h.BrokerId {
		t.detach(b, moved) // a slave that became master is not to be both
	}
	reg := &registration{conn: a.conn, addr: h.BrokerAddr, version: a.body.TopicConfigSerializeWrapper.DataVersion}
	if same != nil && same.addr != h.BrokerAddr && same.last.version.StateVersion > reg.version.StateVersion {
		return accepted{ignored: true}, nil
	}
	before := minID(b)
	first := same == nil
	if first {
		same = &member{id: h.BrokerId}
		i, _ := b.at(h.BrokerId)
		b.members = slices.Insert(b.members, i, same)
		t.members++
	}
	if same.addr != h.BrokerAddr {
		same.addr = h.BrokerAddr
		t.generation++
	}
	t.merge(b, same, reg, first, a)
	if !reg.overtaken(same.last) {
		same.last = reg
	}
	same.ha, same.seen, same.expiry = h.HaServerAddr, a.now, a.expiry
	if list := a.body.FilterServerList; !slices.Equal(list, same.filterServers) {
		same.filterServers = list
		t.generation++
	}
	t.bind(b, same, a.conn)
	return t.accept(b, same, before), nil
}

// accept makes the answer: a slave is told its master.
func (t *table) accept(b *broker, m *member, before int64) (r accepted) {
	if m.id != masterID {
		if master := b.member(masterID); master != nil {
			copied := *master
			r.master = &copied
		}
	}
	if before > m.id {
		r.min = b.notice("", m.ha)
	}
	return r
}

// minID is the smallest id of a broker, or 0 when it has none: then a new one is no change.
func minID(b *broker) int64 {
	if len(b.members) == 0 {
		return 0
	}
	return b.min().id
}

// admit finds the replica that registers again, nil when it is new, and checks what can be wrong about it.
func (t *table) admit(b *broker, a *arrival, limits *Limits) (same *member, err error) {
	h, topics := &a.header, a.body.TopicConfigSerializeWrapper.TopicConfigTable
	if b != nil {
		same = b.member(h.BrokerId)
		if same != nil && same.local != nil {
			return nil, fmt.Errorf("register broker failed: %s with id %d is the broker of this process", b.name, h.BrokerId)
		}
		alone := len(b.members) == 1 && (same != nil || b.byAddr(h.BrokerAddr) != nil)
		if b.cluster != h.ClusterName && !alone {
			return nil, fmt.Errorf("register broker failed: %s belongs to cluster %s, not %s", b.name, b.cluster, h.ClusterName)
		}
	}
	if same == nil && len(topics) == 1 {
		return nil, fmt.Errorf("register broker failed: the first registration of %s with id %d must name all its topics", h.BrokerName, h.BrokerId)
	}
	if same == nil && t.members >= limits.MaxBrokers {
		return nil, fmt.Errorf("register broker failed: there are MaxBrokers (%d) already", limits.MaxBrokers)
	}
	if fresh := t.fresh(h.BrokerName, topics); t.entries+fresh > limits.MaxTopicEntries {
		return nil, fmt.Errorf("register broker failed: %d more topics exceed MaxTopicEntries (%d)", fresh, limits.MaxTopicEntries)
	}
	return same, t.admitMapping(h.BrokerName, a.body, limits)
}

// fresh counts the topics that a broker did not have before.
func (t *table) fresh(broker string, topics map[string]protocol.TopicConfig) (n int) {
	if t.brokers[broker] == nil {
		return len(topics)
	}
	for name := range topics {
		if t.find(name, broker) == nil {
			n++
		}
	}
	return n
}

func (t *table) admitMapping(broker string, body *protocol.RegisterBrokerBody, limits *Limits) error {
	more := 0
	for name, info := range body.TopicConfigSerializeWrapper.TopicQueueMappingInfoMap {
		more += len(info.CurrIdMap)
		if e := t.topics[name]; e != nil {
			more -= len(e.mapping[broker].CurrIdMap)
		}
	}
	if more > 0 && t.mapped+more > limits.MaxMappedQueues {
		return fmt.Errorf("register broker failed: %d more logical queues exceed MaxMappedQueues (%d)", more, limits.MaxMappedQueues)
	}
	return nil
}

// describe takes over what a registration says of the broker as a whole.
func (t *table) describe(b *broker, h *protocol.RegisterBrokerRequest) {
	acting := h.HasEnableActingMaster && h.EnableActingMaster
	if b.actingMaster != acting || b.zone != h.ZoneName || b.cluster != h.ClusterName {
		t.generation++
	}
	b.actingMaster, b.zone, b.cluster = acting, h.ZoneName, h.ClusterName
}

// merge takes over topics. Those of the master count, or of the smallest id where slaves may act as one.
func (t *table) merge(b *broker, m *member, reg *registration, first bool, a *arrival) {
	primeSlave := a.header.HasEnableActingMaster && m.id != masterID && b.min() == m
	if b.isLocal() || m.id != masterID && !primeSlave {
		return
	}
	wrapper := &a.body.TopicConfigSerializeWrapper
	changed := first || reg.version != m.last.version
	if a.replace && changed && len(wrapper.TopicQueueMappingInfoMap) == 0 && !reg.overtaken(m.last) {
		t.prune(b, wrapper.TopicConfigTable)
	}
	for name, c := range wrapper.TopicConfigTable {
		known := t.find(name, b.name)
		if known != nil && (!changed || reg.overtaken(known.from)) {
			continue
		}
		q := queues{broker: b, shape: shapeOf(&c), from: reg}
		if primeSlave && b.actingMaster {
			q.perm = withoutWrite(q.perm)
		}
		t.put(name, q)
	}
	if changed {
		t.mergeMapping(b, wrapper.TopicQueueMappingInfoMap)
	}
}

func (t *table) mergeMapping(b *broker, infos map[string]protocol.TopicQueueMappingInfo) {
	for name, info := range infos {
		e := t.topics[name]
		if e == nil || t.find(name, b.name) == nil {
			continue // a mapping of a topic that the broker does not have is not shown by anything
		}
		if e.mapping == nil {
			e.mapping = map[string]protocol.TopicQueueMappingInfo{}
		}
		t.mapped += len(info.CurrIdMap) - len(e.mapping[b.name].CurrIdMap)
		e.mapping[b.name] = info
		t.generation++
	}
}

// prune removes a broker's topics that are not among keep.
func (t *table) prune(b *broker, keep map[string]protocol.TopicConfig) {
	for name, e := range t.topics {
		if _, kept := keep[name]; kept {
			continue
		}
		if _, has := e.at(b.name); has {
			t.remove(name, b.name)
		}
	}
}
