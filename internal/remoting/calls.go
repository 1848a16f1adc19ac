package remoting

import (
	"sync"

	"github.com/metaqio/metaq/internal/protocol"
)

// callTable matches answers to the requests that we have sent over a session. The numbers are our own: those of the
// peer's requests may be the same.
type callTable struct {
	mu     sync.Mutex
	opaque int32
	calls  map[int32]chan callResult
	err    error // set when the session is over
}

type callResult struct {
	cmd *protocol.Command
	err error
}

// number returns the next opaque.
func (t *callTable) number() int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opaque++
	return t.opaque
}

// add begins a call. Its result comes through the channel, which has room for it.
func (t *callTable) add() (int32, chan callResult, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return 0, nil, t.err
	}
	t.opaque++
	if t.calls == nil {
		t.calls = make(map[int32]chan callResult)
	}
	ch := make(chan callResult, 1)
	t.calls[t.opaque] = ch
	return t.opaque, ch, nil
}

// drop forgets a call that nobody waits for any more.
func (t *callTable) drop(opaque int32) {
	t.mu.Lock()
	delete(t.calls, opaque)
	t.mu.Unlock()
}

// take returns the channel of a call and forgets the call; nil when nobody waits for that number.
func (t *callTable) take(opaque int32) chan callResult {
	t.mu.Lock()
	defer t.mu.Unlock()
	ch := t.calls[opaque]
	delete(t.calls, opaque)
	return ch
}

// fail ends all calls, and those that are still to come.
func (t *callTable) fail(err error) {
	t.mu.Lock()
	calls := t.calls
	t.calls = nil
	t.err = err
	t.mu.Unlock()
	for _, ch := range calls {
		ch <- callResult{err: err}
	}
}

// answered gives the answer that frame holds to whoever waits for it. The frame is only borrowed, so it is copied.
func (s *Session) answered(frame []byte, c *protocol.Command) {
	s.callsMu.Lock()
	t := s.calls
	s.callsMu.Unlock()
	if t == nil {
		return
	}
	ch := t.take(c.Opaque)
	if ch == nil {
		return
	}
	cmd, err := copyCommand(frame)
	ch <- callResult{cmd, err}
}

// copyCommand decodes a copy of frame, for somebody who keeps it.
func copyCommand(frame []byte) (*protocol.Command, error) {
	cmd := new(protocol.Command)
	if err := cmd.Decode(append([]byte(nil), frame...)); err != nil {
		return nil, err
	}
	return cmd, nil
}
