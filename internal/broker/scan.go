package broker

import (
	"bytes"
	"strconv"

	"github.com/metaqio/metaq/message"
)

// scanned is what one look at a message's properties says.
type scanned struct {
	keyAt, keyLen int // of the unique key's value
	tagAt, tagLen int
	keysAt        int // of the value of KEYS
	keysLen       int
	delay         int32 // delay level
	oddDelay      bool  // which is not a number
	timer         byte  // which timer property: 0 none, 1 seconds, 2 ms, 3 absolute; the first in this order counts
	timerAt       int
	timerLen      int
	half          bool // half message of a transaction
	group         bool // names a producer group
	receipt       bool // has a pop receipt, which is not the producer's to give
	own           bool // has a property that the broker would add
	parked        bool // has been timed before
}

// timed says whether the message is to be delivered later. One that was timed before has had its delay.
func (s *scanned) timed() bool { return s.delay > 0 || s.timer != 0 && !s.parked }

func (s *scanned) tagHash(props []byte) int64 {
	if s.tagLen == 0 {
		return 0
	}
	return int64(message.TagHash(props[s.tagAt : s.tagAt+s.tagLen]))
}

// scan looks at each property once.
func scan(props []byte) (s scanned) {
	for at := 0; at < len(props); {
		end := bytes.IndexByte(props[at:], 2)
		if end < 0 {
			end = len(props) - at
		}
		entry := props[at : at+end]
		if sep := bytes.IndexByte(entry, 1); sep > 0 && sep < len(entry)-1 {
			s.property(entry[:sep], entry[sep+1:], at+sep+1)
		}
		at += end + 1
	}
	return s
}

func (s *scanned) property(name, value []byte, at int) {
	switch string(name) {
	case message.PropertyUniqueKey:
		s.keyAt, s.keyLen = at, len(value)
	case message.PropertyTags:
		s.tagAt, s.tagLen = at, len(value)
	case message.PropertyKeys:
		s.keysAt, s.keysLen = at, len(value)
	case message.PropertyDelayLevel:
		n, err := strconv.ParseInt(string(value), 10, 32)
		s.delay, s.oddDelay = int32(n), err != nil
	case message.PropertyTimerDelaySec:
		s.setTimer(1, at, len(value))
	case message.PropertyTimerDelayMs:
		s.setTimer(2, at, len(value))
	case message.PropertyTimerDeliverMs:
		s.setTimer(3, at, len(value))
	case message.PropertyTimerOutMs:
		s.parked = true
	case message.PropertyHalf:
		s.half = string(value) == "true"
	case message.PropertyProducerGroup:
		s.group = true
	case message.PropertyPopReceipt:
		s.receipt = true
	case message.PropertyRegion, message.PropertyTraceOn, message.PropertyCluster:
		s.own = true
	}
}

func (s *scanned) setTimer(kind byte, at, n int) {
	if s.timer == 0 || kind <= s.timer { // of two with the same name the later one counts
		s.timer, s.timerAt, s.timerLen = kind, at, n
	}
}
