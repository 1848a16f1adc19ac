package bench

import "math/bits"

// sequences remembers which numbers of one stream have arrived: all below base, and those whose bit is set. A stream that
// comes in order needs one word, whatever its length.
type sequences struct {
	base  uint64 // a multiple of 64
	words []uint64
	high  uint64 // one more than the highest that arrived
	last  uint64 // one more than the last that arrived
	began uint64 // the first that is expected; those below count as arrived
}

// begin makes from the first number that is expected. What is lower is ignored.
func (s *sequences) begin(from uint64) {
	s.base = from &^ 63
	s.began, s.high, s.last = from, from, from
	if low := from & 63; low > 0 {
		s.words = append(s.words, 1<<low-1)
	}
}

// What add finds.
type arrival byte

const (
	arrivedFirst arrival = iota
	arrivedAgain
	arrivedLate // the first time, but after a higher number
	arrivedEarly
)

// add takes a number that has arrived.
func (s *sequences) add(n uint64) arrival {
	if n < s.began {
		return arrivedEarly
	}
	if n < s.base {
		return arrivedAgain
	}
	at := (n - s.base) / 64
	for uint64(len(s.words)) <= at {
		s.words = append(s.words, 0)
	}
	bit := uint64(1) << (n & 63)
	if s.words[at]&bit != 0 {
		return arrivedAgain
	}
	s.words[at] |= bit
	late := n+1 < s.last
	s.last = n + 1
	s.high = max(s.high, n+1)
	s.forget()
	if late {
		return arrivedLate
	}
	return arrivedFirst
}

// forget drops the full words at the front.
func (s *sequences) forget() {
	full := 0
	for full < len(s.words) && s.words[full] == ^uint64(0) {
		full++
	}
	if full > 0 {
		s.words = append(s.words[:0], s.words[full:]...)
		s.base += uint64(full) * 64
	}
}

// missing counts the numbers below the highest that have not arrived.
func (s *sequences) missing() uint64 {
	have := s.base
	for _, w := range s.words {
		have += uint64(bits.OnesCount64(w))
	}
	return s.high - have
}
