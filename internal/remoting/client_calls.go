package remoting

import (
	"github.com/metaqio/metaq/internal/protocol"
)

// A call's number is its place among the calls under way, and above it how often that place was used before: an answer
// that comes too late finds nobody.
const (
	slotBits = 20
	slotMask = 1<<slotBits - 1
	useMask  = 1<<(31-slotBits) - 1
)

// callTicks is after how many ticks of the timer a call of Go has timed out.
const callTicks = 4

// pendingCall is a call under way, of Call (ch) or of Go (fn).
type pendingCall struct {
	ch   chan callResult
	fn   func(*protocol.Command, error)
	tick uint32 // when the call began
}

func (p *pendingCall) empty() bool { return p.ch == nil && p.fn == nil }

// clientCalls are the calls under way. Its owner locks it.
type clientCalls struct {
	slots []callSlot
	free  []int32
	async int    // calls of Go under way
	ticks uint32 // of the timer
}

type callSlot struct {
	pendingCall
	use int32
}

// add remembers p and gives it a number.
func (t *clientCalls) add(p pendingCall) (int32, error) {
	var at int32
	if n := len(t.free); n > 0 {
		at = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		if len(t.slots) > slotMask {
			return 0, ErrTooManyCalls
		}
		at = int32(len(t.slots))
		t.slots = append(t.slots, callSlot{})
	}
	p.tick = t.ticks
	if p.fn != nil {
		t.async++
	}
	s := &t.slots[at]
	s.pendingCall = p
	return at | s.use<<slotBits, nil
}

// take forgets the call of that number and returns it; false when there is none.
func (t *clientCalls) take(opaque int32) (pendingCall, bool) {
	at, use := opaque&slotMask, opaque>>slotBits
	if int(at) >= len(t.slots) {
		return pendingCall{}, false
	}
	s := &t.slots[at]
	if s.use != use || s.empty() {
		return pendingCall{}, false
	}
	p := s.pendingCall
	s.pendingCall = pendingCall{}
	s.use = (s.use + 1) & useMask
	t.free = append(t.free, at)
	if p.fn != nil {
		t.async--
	}
	return p, true
}

// takeIf forgets and returns all calls that want picks.
func (t *clientCalls) takeIf(want func(*pendingCall) bool) []pendingCall {
	var taken []pendingCall
	for i := range t.slots {
		s := &t.slots[i]
		if s.empty() || !want(&s.pendingCall) {
			continue
		}
		if p, ok := t.take(int32(i) | s.use<<slotBits); ok {
			taken = append(taken, p)
		}
	}
	return taken
}
