package protocol

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A Raw is a piece of a body that is passed on as it came. Nil is like null.
type Raw []byte

// ordinals is implemented by string types whose values are the names of a Java enum:
// clients may send the number of the name in this list instead, or other letters.
type ordinals interface{ ordinals() []string }

// defaults is implemented by pointers to bodies whose members have other defaults than
// zero. It runs before a body is read.
type defaults interface{ setDefaults() }

var (
	rawType      = reflect.TypeFor[Raw]()
	ordinalsType = reflect.TypeFor[ordinals]()
)

// A plan is what the reader and the writer know of a struct.
type plan struct {
	members []member       // sorted by name, as Java writes them
	byName  map[string]int // index in members
}

// A member is one field of a struct, under its name on the wire.
type member struct {
	name      string
	index     []int
	omitEmpty bool
}

var plans sync.Map // reflect.Type -> *plan

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{byName: map[string]int{}}
	p.add(t, nil)
	slices.SortFunc(p.members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	for i, m := range p.members {
		p.byName[m.name] = i
	}
	got, _ := plans.LoadOrStore(t, p)
	return got.(*plan)
}

// add takes the fields of t; those of an embedded struct are members of the outer one.
func (p *plan) add(t reflect.Type, at []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(at), i)
		if f.Anonymous {
			p.add(f.Type, index)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name == "" || !f.IsExported() {
			panic(fmt.Sprintf("protocol: %v.%s has no name on the wire", t, f.Name))
		}
		p.members = append(p.members, member{name: name, index: index, omitEmpty: options == "omitempty"})
	}
}

// find looks a member up by name, at last without regard to case: Java's reader does so.
func (p *plan) find(name []byte) *member {
	if i, ok := p.byName[string(name)]; ok {
		return &p.members[i]
	}
	for i := range p.members {
		if strings.EqualFold(p.members[i].name, string(name)) {
			return &p.members[i]
		}
	}
	return nil
}
