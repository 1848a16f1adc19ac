package nameserver

import (
	"slices"

	"github.com/metaqio/metaq/internal/protocol"
)

// A localBroker is the table's side of the broker of this process.
type localBroker struct {
	*Local
	// shapes are the topics as the broker named them last. An administrator's change of permissions holds until the broker changes
	// the topic itself.
	shapes map[string]shape
}

// setLocal puts the broker of this process into the table, in place of the one before (nil: there was none) and of any replica that
// registered with the same name and id.
func (t *table) setLocal(before, l *localBroker) {
	if before != nil {
		t.removeLocal(before)
	}
	if l == nil {
		return
	}
	b := t.brokers[l.Name]
	if b == nil {
		b = &broker{name: l.Name}
		t.brokers[b.name] = b
	}
	t.prune(b, nil)
	b.cluster, b.zone = l.Cluster, l.Zone
	if same := b.member(l.BrokerID); same != nil {
		t.detach(b, same)
	}
	i, _ := b.at(l.BrokerID)
	b.members = slices.Insert(b.members, i, &member{id: l.BrokerID, local: l.Local})
	t.members++
	t.generation++
}

func (t *table) removeLocal(l *localBroker) {
	b := t.brokers[l.Name]
	if b == nil {
		return
	}
	if m := b.member(l.BrokerID); m != nil && m.local == l.Local {
		t.prune(b, nil) // remaining replicas bring the topics back with their next registration
		t.leave(b, m)
	}
}

// setLocalTopics makes the topics of the broker of this process what list says.
func (t *table) setLocalTopics(l *localBroker, list []protocol.TopicConfig) {
	named := make(map[string]struct{}, len(list))
	for i := range list {
		named[list[i].TopicName] = struct{}{}
		t.setLocalTopic(l, list[i].TopicName, &list[i])
	}
	for name := range l.shapes {
		if _, still := named[name]; !still {
			t.setLocalTopic(l, name, nil)
		}
	}
}

// setLocalTopic makes a topic of the broker of this process what c says; nil: it is gone.
func (t *table) setLocalTopic(l *localBroker, name string, c *protocol.TopicConfig) {
	b := t.brokers[l.Name]
	if b == nil {
		return
	}
	was, known := l.shapes[name]
	switch {
	case c == nil && known:
		delete(l.shapes, name)
		t.remove(name, b.name)
	case c == nil:
	case known && was == shapeOf(c) && t.find(name, b.name) != nil:
	default:
		l.shapes[name] = shapeOf(c)
		t.put(name, queues{broker: b, shape: shapeOf(c)})
	}
}
