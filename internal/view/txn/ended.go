package txn

import (
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/message"
)

// Ended is a transaction that was decided.
type Ended struct {
	Half     message.Position    // of the half message's record; of a resumed one, that of the stale record
	Offset   message.QueueOffset // in the queue of half messages
	Decision entry.Decision
	Time     int64 // ms
}

// What ended is remembered for so long, and so many at the most.
const (
	rememberTime  = 60 * 60 * 1000 // ms, of the entries' clock
	rememberCount = 1 << 16
)

// ended is what ended lately, in the order of the log. Each has a number; the first one ever has 0.
type ended struct {
	list []Ended
	head uint64 // number of list[0]
	by   map[message.Position]uint64

	// What the store has: numbers from savedHead to savedEnd.
	savedHead, savedEnd uint64
}

func newEnded() ended { return ended{by: map[message.Position]uint64{}} }

func (e *ended) end() uint64 { return e.head + uint64(len(e.list)) }

func (e *ended) get(half message.Position) (Ended, bool) {
	n, ok := e.by[half]
	if !ok {
		return Ended{}, false
	}
	return e.list[n-e.head], true
}

// add remembers one more and forgets what is too old. Time is the entries', so all replicas forget the same.
func (e *ended) add(one Ended) {
	e.by[one.Half] = e.end()
	e.list = append(e.list, one)
	for len(e.list) > rememberCount || e.list[0].Time < one.Time-rememberTime {
		if half := e.list[0].Half; e.by[half] == e.head {
			delete(e.by, half)
		}
		e.list = e.list[1:]
		e.head++
	}
}
