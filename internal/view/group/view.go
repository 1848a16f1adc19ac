package group

import (
	"github.com/metaqio/metaq/internal/catalog"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
)

// prefix of the view's keys in the store (part of the on-disk format), see package catalog.
const prefix = 'g'

// Group is a group as it is configured. Immutable: a change makes a new one.
type Group struct {
	entry.Group
}

// View is the table of groups.
type View struct {
	*catalog.Table[Group, *Group]
}

// New makes an empty table.
func New() *View {
	return &View{catalog.New[Group, *Group](catalog.Definition[Group]{
		What: "group", Prefix: prefix, Put: entry.KindPutGroup, Delete: entry.KindDeleteGroup,
		ParsePut: func(body []byte) (string, *Group, error) {
			var p entry.PutGroup
			err := p.ParseBody(body)
			return p.Group.Name, &Group{p.Group}, err
		},
		ParseDelete: func(body []byte) (string, error) {
			var d entry.DeleteGroup
			err := d.ParseBody(body)
			return d.Name, err
		},
		Equal: func(a, b *Group) bool { return a.Equal(&b.Group) },
	})}
}

// FoldCommand implements shard.CommandView.
func (v *View) FoldCommand(at shard.At, c entry.Raw) error { return v.Fold(at.Time, c) }
