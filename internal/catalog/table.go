package catalog

import (
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"sync/atomic"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/kv"
)

// Keys of a table in the store, behind its prefix (part of the on-disk format):
//
//	'v'       → counter u64 │ time of the last change in ms u64
//	'c' name  → the row's fields, see package entry
const (
	kindVersion = 'v'
	kindConfig  = 'c'
)

// Row is what a table of T consists of: pointers to T that can be written and read.
type Row[T any] interface {
	*T
	// AppendFields appends all fields, with the name.
	AppendFields(dst []byte) []byte
	// ParseFields sets all fields; the error is about damage.
	ParseFields(b []byte) error
}

// Definition says what a table holds.
type Definition[T any] struct {
	What        string // of error texts: "topic"
	Prefix      byte   // of the keys in the store
	Put, Delete entry.Kind
	// ParsePut and ParseDelete read bodies of those commands.
	ParsePut    func(body []byte) (name string, row *T, err error)
	ParseDelete func(body []byte) (name string, err error)
	// Equal says that a put changes nothing.
	Equal func(a, b *T) bool
}

// Version counts changes of a table.
type Version struct {
	Counter int64
	Time    int64 // ms of the last change
}

// Table holds rows by name. Its rows are immutable: a change makes a new one.
type Table[T any, R Row[T]] struct {
	def     Definition[T]
	rows    map[string]*T
	version Version
	changes atomic.Int64 // like version.Counter, for readers without the lock
	dirty   map[string]struct{}
}

// New makes an empty table.
func New[T any, R Row[T]](d Definition[T]) *Table[T, R] {
	return &Table[T, R]{def: d, rows: map[string]*T{}, dirty: map[string]struct{}{}}
}

// Get finds a row; nil when there is none. The name may alias anything.
func (t *Table[T, R]) Get(name []byte) *T { return t.rows[string(name)] }

// Names gives the names of all rows, in no order.
func (t *Table[T, R]) Names() iter.Seq[string] { return maps.Keys(t.rows) }

// Len is the number of rows.
func (t *Table[T, R]) Len() int { return len(t.rows) }

// Version is the table's data version.
func (t *Table[T, R]) Version() Version { return t.version }

// Changes is a number that grows with each change; any goroutine may call it without the lock.
func (t *Table[T, R]) Changes() int64 { return t.changes.Load() }

// Commands are the kinds that Fold wants.
func (t *Table[T, R]) Commands() []entry.Kind { return []entry.Kind{t.def.Put, t.def.Delete} }

// Fold makes the table what a command says, which became true at a time in ms. The error is about a damaged command.
func (t *Table[T, R]) Fold(time int64, c entry.Raw) error {
	switch c.Kind {
	case t.def.Put:
		name, row, err := t.def.ParsePut(c.Body)
		if err != nil {
			return err
		}
		if old := t.rows[name]; old != nil && t.def.Equal(old, row) {
			return nil // the same again is no change
		}
		t.rows[name] = row
		t.changed(time, name)
	case t.def.Delete:
		name, err := t.def.ParseDelete(c.Body)
		if err != nil {
			return err
		}
		if t.rows[name] == nil {
			return nil
		}
		delete(t.rows, name)
		t.changed(time, name)
	}
	return nil
}

func (t *Table[T, R]) changed(time int64, name string) {
	t.dirty[name] = struct{}{}
	t.version = Version{Counter: t.version.Counter + 1, Time: time}
	t.changes.Add(1)
}

// Load reads the table from the store into an empty one.
func (t *Table[T, R]) Load(s *kv.Store) error {
	err := s.Get([]byte{t.def.Prefix, kindVersion}, func(b []byte) error {
		if len(b) != 16 {
			return fmt.Errorf("%s view: version has %d bytes", t.def.What, len(b))
		}
		t.version = Version{Counter: int64(binary.BigEndian.Uint64(b)), Time: int64(binary.BigEndian.Uint64(b[8:]))}
		return nil
	})
	if err != nil {
		return err
	}
	var bad error
	from := []byte{t.def.Prefix, kindConfig}
	err = s.Scan(from, kv.PrefixEnd(from), func(key, b []byte) bool {
		row := new(T)
		if bad = R(row).ParseFields(b); bad == nil {
			t.rows[string(key[len(from):])] = row
		}
		return bad == nil
	})
	if bad != nil {
		return fmt.Errorf("%s view: %w", t.def.What, bad)
	}
	return err
}

// Checkpoint takes down what changed since the last one: see shard.View.
func (t *Table[T, R]) Checkpoint() (write func(*kv.Batch), done func()) {
	type change struct {
		name string
		row  *T // nil: deleted
	}
	changes := make([]change, 0, len(t.dirty))
	for name := range t.dirty {
		changes = append(changes, change{name, t.rows[name]})
	}
	clear(t.dirty)
	version := binary.BigEndian.AppendUint64(nil, uint64(t.version.Counter))
	version = binary.BigEndian.AppendUint64(version, uint64(t.version.Time))
	return func(b *kv.Batch) {
		b.Set([]byte{t.def.Prefix, kindVersion}, version)
		for _, c := range changes {
			key := append([]byte{t.def.Prefix, kindConfig}, c.name...)
			if c.row == nil {
				b.Delete(key)
			} else {
				b.Set(key, R(c.row).AppendFields(nil))
			}
		}
	}, func() {}
}
