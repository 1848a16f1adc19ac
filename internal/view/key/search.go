package key

import (
	"errors"
	"slices"

	"github.com/metaqio/metaq/message"
)

// Search is the index as it was at one moment. It may read the disk, needs no lock, and must be closed.
type Search struct {
	items [2][]item // in memory, the newer ones first
	runs  []*run
}

// Search takes down the index as it is now. REQUIRES: the state lock, shared.
func (v *View) Search() *Search {
	s := &Search{items: [2][]item{v.fresh, v.writing}, runs: append([]*run(nil), v.runs...)}
	for _, r := range s.runs {
		r.users.Add(1)
	}
	return s
}

// Each calls f for the positions of messages that may have the key whose hash is h,
// the newest first, until f returns false. Only those between two store times (ms)
// are asked for; others may be among them, as may be messages with another key.
func (s *Search) Each(h Hash, begin, end int64, f func(message.Position) bool) error {
	for _, items := range s.items {
		for _, i := range slices.Backward(items) {
			if i.hash == h && !f(i.pos) {
				return nil
			}
		}
	}
	for _, r := range slices.Backward(s.runs) {
		if r.Last < begin || r.First > end {
			continue
		}
		if more, err := r.each(h.short(), f); !more || err != nil {
			return err
		}
	}
	return nil
}

// Close ends the search.
func (s *Search) Close() (err error) {
	for _, r := range s.runs {
		err = errors.Join(err, r.release())
	}
	s.runs = nil
	return err
}
