package offset

import (
	"maps"
	"slices"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

// None is the offset of a queue that a group has not committed yet.
const None message.QueueOffset = -1

// Table holds the offsets of one group in one topic, indexed by queue.
type Table struct {
	offsets []message.QueueOffset // None where nothing was committed
	pending []bool                // a reset binds
	dirty   bool
}

// At is the offset committed for a queue, or None.
func (t *Table) At(queue int32) message.QueueOffset {
	if t == nil || int(queue) >= len(t.offsets) || queue < 0 {
		return None
	}
	return t.offsets[queue]
}

// Pending says whether a reset of the queue has not reached the group yet.
func (t *Table) Pending(queue int32) bool {
	return t != nil && queue >= 0 && int(queue) < len(t.pending) && t.pending[queue]
}

// Queues is one more than the largest queue that has an offset.
func (t *Table) Queues() int32 { return int32(len(t.offsets)) }

type key struct{ group, topic string }

// View is the table of offsets of all groups.
type View struct {
	groups map[string]map[string]*Table // group → topic → offsets
	dirty  map[key]struct{}
	gone   map[key]struct{}
	parsed entry.RawOffsets // of the command that is being folded
}

// New makes an empty view.
func New() *View {
	return &View{groups: map[string]map[string]*Table{}, dirty: map[key]struct{}{}, gone: map[key]struct{}{}}
}

// Of finds the offsets of a group in a topic; nil when there are none. Names may alias anything.
func (v *View) Of(group, topic []byte) *Table { return v.groups[string(group)][string(topic)] }

// TopicsOf lists the topics in which a group has offsets.
func (v *View) TopicsOf(group string) []string { return slices.Sorted(maps.Keys(v.groups[group])) }

// GroupsOf lists the groups that have offsets in a topic.
func (v *View) GroupsOf(topic string) (out []string) {
	for group, topics := range v.groups {
		if topics[topic] != nil {
			out = append(out, group)
		}
	}
	slices.Sort(out)
	return out
}

// Groups lists all groups that have offsets.
func (v *View) Groups() []string { return slices.Sorted(maps.Keys(v.groups)) }

// Commands implements shard.CommandView.
func (v *View) Commands() []entry.Kind {
	return []entry.Kind{entry.KindCommitOffsets, entry.KindResetOffsets, entry.KindDeleteTopic, entry.KindDeleteGroup}
}

// FoldCommand implements shard.CommandView.
func (v *View) FoldCommand(_ shard.At, c entry.Raw) error {
	switch c.Kind {
	case entry.KindCommitOffsets, entry.KindResetOffsets:
		o := &v.parsed
		if err := o.Parse(c.Body); err != nil {
			return err
		}
		t := v.changing(o.Group, o.Topic)
		for _, it := range o.Items {
			switch {
			case !t.reach(it.Queue):
			case c.Kind == entry.KindResetOffsets:
				t.offsets[it.Queue], t.pending[it.Queue] = it.Offset, o.Pending
			case !t.pending[it.Queue]:
				t.offsets[it.Queue] = max(t.offsets[it.Queue], it.Offset)
			}
		}
	case entry.KindDeleteTopic:
		var d entry.DeleteTopic
		if err := d.ParseBody(c.Body); err != nil {
			return err
		}
		for group := range v.groups {
			v.remove(key{group, d.Name})
		}
	case entry.KindDeleteGroup:
		var d entry.DeleteGroup
		if err := d.ParseBody(c.Body); err != nil {
			return err
		}
		if d.CleanOffsets {
			for topic := range v.groups[d.Name] {
				v.remove(key{d.Name, topic})
			}
		}
	}
	return nil
}

// maxQueues bounds what a queue number in an entry can make the table grow to.
const maxQueues = 1 << 16

// reach makes room for a queue.
func (t *Table) reach(queue int32) bool {
	if queue < 0 || queue >= maxQueues {
		return false
	}
	for int(queue) >= len(t.offsets) {
		t.offsets, t.pending = append(t.offsets, None), append(t.pending, false)
	}
	return true
}

// changing is the table of a group and topic, whose names may alias anything, marked as changed.
func (v *View) changing(group, topic []byte) *Table {
	if t := v.Of(group, topic); t != nil && t.dirty {
		return t
	}
	return v.table(string(group), string(topic))
}

func (v *View) table(group, topic string) *Table {
	topics := v.groups[group]
	if topics == nil {
		topics = map[string]*Table{}
		v.groups[group] = topics
	}
	t := topics[topic]
	if t == nil {
		t = &Table{}
		topics[topic] = t
	}
	if !t.dirty {
		t.dirty = true
		v.dirty[key{group, topic}] = struct{}{}
	}
	return t
}

func (v *View) remove(k key) {
	topics := v.groups[k.group]
	if topics[k.topic] == nil {
		return
	}
	delete(topics, k.topic)
	if len(topics) == 0 {
		delete(v.groups, k.group)
	}
	delete(v.dirty, k)
	v.gone[k] = struct{}{}
}
