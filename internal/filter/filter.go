package filter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/metaqio/metaq/message"
)

// TypeTag is the type of expressions over tags; the empty type means the same.
const TypeTag = "TAG"

// ErrUnsupported marks an expression of a type that this broker does not evaluate.
var ErrUnsupported = errors.New("the broker does not support consumer to filter message by this expression type")

// maxTags bounds the tags of one expression.
const maxTags = 1000

// Filter is a parsed expression. The zero value matches everything. Immutable.
type Filter struct {
	tags  []string
	codes []int64 // hashes of tags, sorted
}

// Parse reads an expression: of type TAG, "*" or empty for all messages, else tags joined by "||".
func Parse(typ, expression string) (Filter, error) {
	if typ != "" && !strings.EqualFold(typ, TypeTag) {
		return Filter{}, fmt.Errorf("%w: %s", ErrUnsupported, typ)
	}
	expression = strings.TrimSpace(expression)
	if expression == "" || expression == "*" {
		return Filter{}, nil
	}
	var f Filter
	for tag := range strings.SplitSeq(expression, "||") {
		if tag = strings.TrimSpace(tag); tag == "" {
			continue
		}
		if len(f.tags) == maxTags {
			return Filter{}, fmt.Errorf("the expression has more than %d tags", maxTags)
		}
		f.tags = append(f.tags, tag)
		f.codes = append(f.codes, int64(message.TagHash([]byte(tag))))
	}
	if len(f.tags) == 0 {
		return Filter{}, fmt.Errorf("the expression %q names no tag", expression)
	}
	slices.Sort(f.codes)
	return f, nil
}

// All says whether every message matches.
func (f *Filter) All() bool { return len(f.codes) == 0 }

// MatchTag is the first stage: by the hash of the tag as the queue index has it. It
// may let a message through that the second stage stops, never the other way round.
func (f *Filter) MatchTag(hash int64) bool {
	if len(f.codes) == 0 {
		return true
	}
	if len(f.codes) <= 8 {
		return slices.Contains(f.codes, hash)
	}
	_, ok := slices.BinarySearch(f.codes, hash)
	return ok
}

// MatchProperties is the second stage: exactly.
func (f *Filter) MatchProperties(props []byte) bool {
	if len(f.tags) == 0 {
		return true
	}
	tag, ok := message.Property(props, message.PropertyTags)
	if !ok {
		return false
	}
	return slices.Contains(f.tags, string(tag))
}
