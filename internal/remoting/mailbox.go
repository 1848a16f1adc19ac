package remoting

import "sync"

// mailKind is what a piece of mail asks its driver to do.
type mailKind uint8

const (
	mailWake   mailKind = iota // make a pass
	mailAnswer                 // append the frame to the session's Out; it answers requests
	mailNotice                 // append the frame to the session's Out; it is a request of ours
	mailRun                    // call fn
	mailClose                  // end the session with err, in order
	mailAdopt                  // a new session
	mailStop                   // end every session once its answers are written
	mailKill                   // end every session now
)

// mail is something that another goroutine wants of a driver. Its frame, if any, ends at end in the mailbox's bytes and
// begins where the one before ends.
type mail struct {
	kind mailKind
	end  int
	s    *Session
	fn   func()
	err  error
}

// How many bytes of frames a mailbox keeps room for between passes, of an event loop and of a single connection. Of
// pieces of mail it is a 64th.
const (
	keepLoopMail   = 1 << 20
	keepSingleMail = 4 << 10
)

// mailbox takes what other goroutines want of a driver. A driver that waits is woken once, by the first piece of mail.
type mailbox struct {
	mu     sync.Mutex
	items  []mail
	bytes  []byte
	asleep bool   // the driver waits, or will before it looks here again
	closed bool   // the driver has ended
	keep   int    // keepLoopMail or keepSingleMail
	wake   func() // called with mu held
}

// put adds m and a copy of its frame. It reports false when the driver has ended, and then drops m.
func (b *mailbox) put(m mail, frame []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.bytes = append(b.bytes, frame...)
	m.end = len(b.bytes)
	b.items = append(b.items, m)
	if b.asleep {
		b.asleep = false
		b.wake()
	}
	return true
}

// take returns all mail and leaves the given, used up slices for new mail.
func (b *mailbox) take(items []mail, bytes []byte) ([]mail, []byte) {
	clear(items)
	if cap(bytes) > b.keep {
		bytes = nil
	}
	if cap(items) > b.keep/64 {
		items = nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	items, b.items = b.items, items[:0]
	bytes, b.bytes = b.bytes, bytes[:0]
	return items, bytes
}

// sleep reports whether the driver may wait: there is no mail, and the next piece will wake it.
func (b *mailbox) sleep() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asleep = len(b.items) == 0
	return b.asleep
}

// awake says that the driver will look at its mail without being woken.
func (b *mailbox) awake() {
	b.mu.Lock()
	b.asleep = false
	b.mu.Unlock()
}

// close refuses all further mail.
func (b *mailbox) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
}
