package nameserver

import (
	"slices"
	"time"
)

// detach takes a replica out of its broker, which may be left without any.
func (t *table) detach(b *broker, m *member) {
	t.unbind(m)
	b.members = slices.DeleteFunc(b.members, func(x *member) bool { return x == m })
	t.members--
	t.generation++
}

// leave takes a replica out of the table: its broker's topics too when it was the last, and the permission to write to them when slaves
// remain that may act as master. The notice is set when the smallest id has changed.
func (t *table) leave(b *broker, m *member) *notice {
	least := b.min() == m
	t.detach(b, m)
	if len(b.members) == 0 {
		t.prune(b, nil)
		delete(t.brokers, b.name)
		return nil
	}
	if b.actingMaster && b.member(masterID) == nil {
		t.setPerm(b.name, withoutWrite)
	}
	if !least {
		return nil
	}
	return b.notice(m.addr, "")
}

// A departure is a replica that is gone, and why, for the log and for notices.
type departure struct {
	broker, addr string
	id           int64
	min          *notice
}

// closed takes out the replicas that registered by a connection that ended.
func (t *table) closed(c Conn) (gone []departure) {
	for m, b := range t.conns[c] {
		gone = append(gone, departure{broker: b.name, addr: m.addr, id: m.id, min: t.leave(b, m)})
	}
	return gone
}

// expire takes out the replicas that have been silent for too long.
func (t *table) expire(now time.Time) (gone []departure) {
	for _, b := range t.brokers {
		for _, m := range slices.Clone(b.members) {
			if m.local == nil && now.Sub(m.seen) > m.expiry {
				gone = append(gone, departure{broker: b.name, addr: m.addr, id: m.id, min: t.leave(b, m)})
			}
		}
	}
	return gone
}

// unregister takes out the replica with an address, if there is one.
func (t *table) unregister(broker, addr string) (gone []departure) {
	b := t.brokers[broker]
	if b == nil {
		return nil
	}
	m := b.byAddr(addr)
	if m == nil {
		return nil
	}
	return []departure{{broker: b.name, addr: m.addr, id: m.id, min: t.leave(b, m)}}
}

// touch notes that a replica is alive, and finds it; nil when it is unknown.
func (t *table) touch(broker, addr string, now time.Time) *member {
	b := t.brokers[broker]
	if b == nil {
		return nil
	}
	m := b.byAddr(addr)
	if m != nil {
		m.seen = now
	}
	return m
}
