package main

import (
	"slices"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// arrival is a message and when it came.
type arrival struct {
	*primitive.MessageExt
	text string
	at   time.Time
}

// inbox keeps what consumers received, in the order of arrival; the bodies of
// a scenario are texts that differ.
type inbox struct {
	mu       sync.Mutex
	arrivals []arrival
	counts   map[string]int
	news     chan struct{} // closed and replaced at every arrival
}

func newInbox() *inbox {
	return &inbox{counts: map[string]int{}, news: make(chan struct{})}
}

func (in *inbox) add(messages ...*primitive.MessageExt) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, m := range messages {
		text := string(m.Body)
		in.arrivals = append(in.arrivals, arrival{m, text, time.Now()})
		in.counts[text]++
	}
	close(in.news)
	in.news = make(chan struct{})
}

func (in *inbox) all() []arrival {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.arrivals)
}

func (in *inbox) texts() []string {
	var texts []string
	for _, a := range in.all() {
		texts = append(texts, a.text)
	}
	return texts
}

func (in *inbox) size() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.arrivals)
}

func (in *inbox) distinct() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.counts)
}

// repeats tells how many deliveries were not the first of their message.
func (in *inbox) repeats() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.arrivals) - len(in.counts)
}

// missing gives the texts that did not come.
func (in *inbox) missing(texts []string) []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(texts), func(t string) bool { return in.counts[t] > 0 })
}

// await waits until done holds, at most for the limit, and tells whether it does.
func (in *inbox) await(limit time.Duration, done func() bool) bool {
	timeout := time.After(limit)
	for {
		in.mu.Lock()
		news := in.news
		in.mu.Unlock()
		if done() {
			return true
		}
		select {
		case <-news:
		case <-timeout:
			return done()
		}
	}
}

// awaitDistinct waits for n different messages.
func (in *inbox) awaitDistinct(r *rig, n int) []arrival {
	if !in.await(soon, func() bool { return in.distinct() >= n }) {
		r.fail("want %d different messages within %s, got %d (%d with repeats)", n, soon, in.distinct(), in.size())
	}
	return in.all()
}

// awaitTexts waits for all these messages.
func (in *inbox) awaitTexts(r *rig, texts []string) {
	if !in.await(soon, func() bool { return len(in.missing(texts)) == 0 }) {
		missing := in.missing(texts)
		r.fail("of %d messages %d did not come within %s: %q", len(texts), len(missing), soon, missing[:min(5, len(missing))])
	}
}

// staysAt waits the whole time and tells whether nothing came beyond the first n.
func (in *inbox) staysAt(n int, d time.Duration) bool {
	return !in.await(d, func() bool { return in.size() > n })
}
