package topic

import (
	"github.com/metaqio/metaq/internal/catalog"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
)

// prefix of the view's keys in the store (part of the on-disk format), see package catalog.
const prefix = 't'

// Topic is a topic as it is configured. Immutable: a change makes a new one.
type Topic struct {
	entry.Topic
}

// Readable says whether consumers may read from the topic.
func (t *Topic) Readable() bool { return t.Perm&PermRead != 0 }

// Permission bits of a topic.
const (
	PermInherit = 1
	PermWrite   = 2
	PermRead    = 4
)

// View is the table of topics.
type View struct {
	*catalog.Table[Topic, *Topic]
}

// New makes an empty table.
func New() *View {
	return &View{catalog.New[Topic, *Topic](catalog.Definition[Topic]{
		What: "topic", Prefix: prefix, Put: entry.KindPutTopic, Delete: entry.KindDeleteTopic,
		ParsePut: func(body []byte) (string, *Topic, error) {
			var p entry.PutTopic
			err := p.ParseBody(body)
			return p.Topic.Name, &Topic{p.Topic}, err
		},
		ParseDelete: func(body []byte) (string, error) {
			var d entry.DeleteTopic
			err := d.ParseBody(body)
			return d.Name, err
		},
		Equal: func(a, b *Topic) bool { return a.Equal(&b.Topic) },
	})}
}

// FoldCommand implements shard.CommandView.
func (v *View) FoldCommand(at shard.At, c entry.Raw) error { return v.Fold(at.Time, c) }
