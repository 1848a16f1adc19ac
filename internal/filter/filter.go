package filter

import (
	"slices"

	"github.com/metaqio/metaq/internal/filter/sql"
	"github.com/metaqio/metaq/message"
)

// Filter is a parsed expression. The zero value matches everything. Immutable.
type Filter struct {
	tags      []string
	codes     []int64 // hashes of tags, sorted
	condition *sql.Expression
}

// All says whether every message matches.
func (f *Filter) All() bool { return len(f.codes) == 0 && f.condition == nil }

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
	if f.condition != nil {
		return f.condition.Match(props)
	}
	if len(f.tags) == 0 {
		return true
	}
	tag, ok := message.Property(props, message.PropertyTags)
	if !ok {
		return false
	}
	return slices.Contains(f.tags, string(tag))
}

// Weight is how often MatchProperties looks through the properties, at most.
func (f *Filter) Weight() int {
	switch {
	case f.condition != nil:
		return f.condition.Weight()
	case len(f.tags) > 0:
		return 1
	}
	return 0
}
