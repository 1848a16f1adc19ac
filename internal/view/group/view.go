package group

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
//	'g' 'v'       → counter u64 │ time of the last change in ms u64
//	'g' 'c' name  → the group's fields, see package entry
const (
	prefix      = 'g'
	kindVersion = 'v'
	kindConfig  = 'c'
)

// Group is a group as it is configured. Immutable: a change makes a new one.
type Group struct {
	entry.Group
}

// Version counts changes of the table.
type Version struct {
	Counter int64
	Time    int64 // ms of the last change
}

// View is the table of groups.
type View struct {
	groups  map[string]*Group
	version Version
	changes atomic.Int64 // like version.Counter, for readers without the lock
	dirty   map[string]struct{}
}

// New makes an empty table.
func New() *View { return &View{groups: map[string]*Group{}, dirty: map[string]struct{}{}} }

// Get finds a group; nil when there is none. The name may alias anything.
func (v *View) Get(name []byte) *Group { return v.groups[string(name)] }

// Names gives the names of all groups, in no order.
func (v *View) Names() iter.Seq[string] { return maps.Keys(v.groups) }

// Len is the number of groups.
func (v *View) Len() int { return len(v.groups) }

// Version is the table's data version.
func (v *View) Version() Version { return v.version }

// Changes is a number that grows with each change; any goroutine may call it without the lock.
func (v *View) Changes() int64 { return v.changes.Load() }

// Commands implements shard.CommandView.
func (v *View) Commands() []entry.Kind {
	return []entry.Kind{entry.KindPutGroup, entry.KindDeleteGroup}
}

// FoldCommand implements shard.CommandView.
func (v *View) FoldCommand(at shard.At, c entry.Raw) error {
	switch c.Kind {
	case entry.KindPutGroup:
		var p entry.PutGroup
		if err := p.ParseBody(c.Body); err != nil {
			return err
		}
		if old := v.groups[p.Group.Name]; old != nil && old.Equal(&p.Group) {
			return nil // the same again is no change
		}
		v.groups[p.Group.Name] = &Group{p.Group}
		v.changed(at, p.Group.Name)
	case entry.KindDeleteGroup:
		var d entry.DeleteGroup
		if err := d.ParseBody(c.Body); err != nil {
			return err
		}
		if v.groups[d.Name] == nil {
			return nil
		}
		delete(v.groups, d.Name)
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
			return fmt.Errorf("group view: version has %d bytes", len(b))
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
		t := &Group{}
		if bad = t.ParseFields(b); bad == nil {
			v.groups[t.Name] = t
		}
		return bad == nil
	})
	if bad != nil {
		return fmt.Errorf("group view: %w", bad)
	}
	return err
}

// Checkpoint implements shard.View.
func (v *View) Checkpoint() (write func(*kv.Batch), done func()) {
	type change struct {
		name string
		t    *Group
	}
	changes := make([]change, 0, len(v.dirty))
	for name := range v.dirty {
		changes = append(changes, change{name, v.groups[name]})
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
