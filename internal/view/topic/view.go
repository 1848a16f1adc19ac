package topic

import (
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"sync/atomic"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/internal/shard"
)

// Keys of the view in the store (part of the on-disk format):
//
//	't' 'v'       → counter u64 │ time of the last change in ms u64
//	't' 'c' name  → the topic's fields, see package entry
const (
	prefix      = 't'
	kindVersion = 'v'
	kindConfig  = 'c'
)

// Topic is a topic as it is configured. Immutable: a change makes a new one.
type Topic struct {
	entry.Topic
}

// Readable says whether consumers may read from the topic.
func (t *Topic) Readable() bool { return t.Perm&PermRead != 0 }

// Writable says whether clients may send to the topic.
func (t *Topic) Writable() bool { return t.Perm&PermWrite != 0 }

// Inherits says whether the topic is a template for topics that are created by a send.
func (t *Topic) Inherits() bool { return t.Perm&PermInherit != 0 }

// Permission bits of a topic.
const (
	PermInherit = 1
	PermWrite   = 2
	PermRead    = 4
)

// Version counts changes of the table.
type Version struct {
	Counter int64
	Time    int64 // ms of the last change
}

// View is the table of topics.
type View struct {
	topics  map[string]*Topic
	version Version
	changes atomic.Int64 // like version.Counter, for readers without the lock
	dirty   map[string]struct{}
}

// New makes an empty table.
func New() *View { return &View{topics: map[string]*Topic{}, dirty: map[string]struct{}{}} }

// Get finds a topic; nil when there is none. The name may alias anything.
func (v *View) Get(name []byte) *Topic { return v.topics[string(name)] }

// Names gives the names of all topics, in no order.
func (v *View) Names() iter.Seq[string] { return maps.Keys(v.topics) }

// Len is the number of topics.
func (v *View) Len() int { return len(v.topics) }

// Version is the table's data version.
func (v *View) Version() Version { return v.version }

// Changes is a number that grows with each change; any goroutine may call it without the lock.
func (v *View) Changes() int64 { return v.changes.Load() }

// Commands implements shard.CommandView.
func (v *View) Commands() []entry.Kind {
	return []entry.Kind{entry.KindPutTopic, entry.KindDeleteTopic}
}

// FoldCommand implements shard.CommandView.
func (v *View) FoldCommand(at shard.At, c entry.Raw) error {
	switch c.Kind {
	case entry.KindPutTopic:
		var p entry.PutTopic
		if err := p.ParseBody(c.Body); err != nil {
			return err
		}
		if old := v.topics[p.Topic.Name]; old != nil && old.Equal(&p.Topic) {
			return nil // the same again is no change
		}
		v.topics[p.Topic.Name] = &Topic{p.Topic}
		v.changed(at, p.Topic.Name)
	case entry.KindDeleteTopic:
		var d entry.DeleteTopic
		if err := d.ParseBody(c.Body); err != nil {
			return err
		}
		if v.topics[d.Name] == nil {
			return nil
		}
		delete(v.topics, d.Name)
		v.changed(at, d.Name)
	}
	return nil
}

func (v *View) changed(at shard.At, name string) {
	v.dirty[name] = struct{}{}
	v.version = Version{Counter: v.version.Counter + 1, Time: at.Time}
	v.changes.Add(1)
}

// Load implements shard.View.
func (v *View) Load(s *kv.Store) error {
	err := s.Get([]byte{prefix, kindVersion}, func(b []byte) error {
		if len(b) != 16 {
			return fmt.Errorf("topic view: version has %d bytes", len(b))
		}
		v.version = Version{Counter: int64(binary.BigEndian.Uint64(b)), Time: int64(binary.BigEndian.Uint64(b[8:]))}
		return nil
	})
	if err != nil {
		return err
	}
	var bad error
	from := []byte{prefix, kindConfig}
	err = s.Scan(from, kv.PrefixEnd(from), func(_, b []byte) bool {
		t := &Topic{}
		if bad = t.ParseFields(b); bad == nil {
			v.topics[t.Name] = t
		}
		return bad == nil
	})
	if bad != nil {
		return fmt.Errorf("topic view: %w", bad)
	}
	return err
}

// Checkpoint implements shard.View.
func (v *View) Checkpoint() (write func(*kv.Batch), done func()) {
	type change struct {
		name string
		t    *Topic
	}
	changes := make([]change, 0, len(v.dirty))
	for name := range v.dirty {
		changes = append(changes, change{name, v.topics[name]})
	}
	clear(v.dirty)
	version := binary.BigEndian.AppendUint64(nil, uint64(v.version.Counter))
	version = binary.BigEndian.AppendUint64(version, uint64(v.version.Time))
	return func(b *kv.Batch) {
		b.Set([]byte{prefix, kindVersion}, version)
		for _, c := range changes {
			key := append([]byte{prefix, kindConfig}, c.name...)
			if c.t == nil {
				b.Delete(key)
			} else {
				b.Set(key, c.t.AppendFields(nil))
			}
		}
	}, func() {}
}
