package bench

import (
	"errors"

	"github.com/metaqio/metaq/message"
)

// checks look at every message that a consumer gets.
type checks struct {
	topic   string
	run     uint32
	whole   []bool // by index of the queue
	streams map[streamID]*sequences

	duplicates, reordered, damaged, badCRC, misrouted, offsetGaps, foreign int64
}

// streamID is one producing connection's messages in one queue of one consumer.
type streamID struct {
	run, stream uint32
	queue       int // its index
}

func newChecks(o ConsumeOptions) checks {
	return checks{topic: o.Target.Topic, run: o.Run, streams: map[streamID]*sequences{}}
}

// check looks at a message of the queue with that index and id; known tells whether a load generator made it.
func (c *checks) check(at int, id int32, expected message.QueueOffset, r *message.Record) (m mark, known bool) {
	if r.CheckBody() != nil {
		c.badCRC++
	}
	if r.QueueOffset != expected {
		c.offsetGaps++
	}
	if r.QueueID != id || string(r.Topic) != c.topic {
		c.misrouted++
	}
	switch err := m.parse(r.Body); {
	case errors.Is(err, errForeign):
		c.foreign++
		return m, false
	case err != nil:
		c.damaged++
		return m, false
	case c.run != 0 && m.run != c.run:
		c.foreign++
		return m, false
	}
	if m.queue != uint32(id) {
		c.misrouted++
	}
	key := streamID{m.run, m.stream, at}
	s := c.streams[key]
	if s == nil {
		s = new(sequences)
		first := m.sequence
		if c.whole[at] {
			first = 0
		}
		s.begin(first)
		c.streams[key] = s
	}
	switch s.add(m.sequence) {
	case arrivedAgain:
		c.duplicates++
	case arrivedLate:
		c.reordered++
	case arrivedFirst, arrivedEarly:
	}
	return m, true
}

// sum adds what was found to a result.
func (c *checks) sum(r *ConsumeResult) {
	r.Duplicates += c.duplicates
	r.Reordered += c.reordered
	r.Damaged += c.damaged
	r.BadCRC += c.badCRC
	r.Misrouted += c.misrouted
	r.OffsetGaps += c.offsetGaps
	r.Foreign += c.foreign
	for _, s := range c.streams {
		r.Missing += int64(s.missing())
	}
}
