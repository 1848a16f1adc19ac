package broker

import (
	"context"
	"sync"

	"golang.org/x/time/rate"
)

// pool runs work that may block on a bounded number of goroutines, which are
// started when they are needed and end when there is nothing to do.
type pool struct {
	size, limit int

	mu      sync.Mutex // guards the following
	waiting []func()
	running int
	closed  bool
	done    sync.WaitGroup
}

func newPool(size, limit int) *pool {
	if size == 0 {
		size = 8
	}
	if limit == 0 {
		limit = 10_000
	}
	return &pool{size: size, limit: limit}
}

// Go runs f on a goroutine that may block. It reports false when too much waits
// already, or when the broker is closing.
func (b *Broker) Go(f func()) bool {
	p := b.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.waiting) >= p.limit {
		return false
	}
	if p.running >= p.size {
		p.waiting = append(p.waiting, f)
		return true
	}
	p.running++
	p.done.Go(func() { p.work(f) })
	return true
}

func (p *pool) work(f func()) {
	for {
		f()
		p.mu.Lock()
		if len(p.waiting) == 0 {
			p.running--
			p.mu.Unlock()
			return
		}
		f = p.waiting[0]
		p.waiting[0] = nil
		p.waiting = p.waiting[1:]
		p.mu.Unlock()
	}
}

func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.done.Wait()
}

// coldBudget limits the reads that are not in memory, so that one consumer far
// behind does not take the disk from everybody else.
type coldBudget struct {
	mu    sync.Mutex // guards the following
	slots chan struct{}
	bytes *rate.Limiter
}

func (c *coldBudget) set(reads int, bytesPerSec int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slots = make(chan struct{}, max(reads, 1))
	c.bytes = nil
	if bytesPerSec > 0 {
		c.bytes = rate.NewLimiter(rate.Limit(bytesPerSec), int(min(bytesPerSec, 1<<30)))
	}
}

// enter waits for a slot; the function it returns gives it back.
func (c *coldBudget) enter(ctx context.Context) (leave func(), err error) {
	c.mu.Lock()
	slots := c.slots
	c.mu.Unlock()
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// spend waits until n more bytes may be read.
func (c *coldBudget) spend(ctx context.Context, n int) error {
	c.mu.Lock()
	l := c.bytes
	c.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.WaitN(ctx, min(n, l.Burst()))
}
