package waiters

import "sync"

// Waiter waits in one list at a time.
type Waiter struct {
	// Notify is called after something arrived, by whoever made it arrive; it must
	// not block and may be called again before the waiter has looked.
	Notify func()

	list       *List
	next, prev *Waiter
}

// List is what waits for one thing. The zero value is ready; any goroutine may use it.
type List struct {
	mu   sync.Mutex // guards the links of the list and of its waiters
	head *Waiter
}

// Empty says whether nobody waits. REQUIRES: nobody can park meanwhile.
func (l *List) Empty() bool { return l.head == nil }

// Park adds a waiter that is in no list.
func (l *List) Park(w *Waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.list, w.prev, w.next = l, nil, l.head
	if l.head != nil {
		l.head.prev = w
	}
	l.head = w
}

// Leave takes the waiter out of its list; it may be called again.
func (w *Waiter) Leave() {
	l := w.list
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.head = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.list, w.prev, w.next = nil, nil, nil
}

// Parked says whether the waiter is in a list.
func (w *Waiter) Parked() bool { return w.list != nil }

// NotifyAll tells everybody who waits.
func (l *List) NotifyAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := l.head; w != nil; w = w.next {
		w.Notify()
	}
}
