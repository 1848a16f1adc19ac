package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Target is where a run sends to or consumes from.
type Target struct {
	Topic   string
	Brokers []Broker
}

// Broker is a broker that has queues of the topic.
type Broker struct {
	Name   string
	Addr   string // host:port
	Queues []int32
}

func (t *Target) check() error {
	if t.Topic == "" || len(t.Brokers) == 0 {
		return fmt.Errorf("no broker has topic %q", t.Topic)
	}
	for _, b := range t.Brokers {
		if len(b.Queues) == 0 {
			return fmt.Errorf("broker %s has no queues of topic %q", b.Name, t.Topic)
		}
	}
	return nil
}

// Progress is how far a run is. Functions that get it are called about once a second, by one goroutine.
type Progress struct {
	Elapsed  time.Duration
	Messages int64   // so far
	Errors   int64   // so far
	Rate     float64 // messages a second, since the last call
	Bytes    float64 // bytes of bodies a second, since the last call
	WarmUp   bool    // what happens is not measured yet
}

// tally is counted by one connection and read for the progress. It fills a cache line, so that connections do not disturb each other.
type tally struct {
	messages, bytes, errors atomic.Int64
	_                       [40]byte
}

// course is what the connections of a run share.
type course struct {
	clock
	begin, end int64 // the measured window; end may be moved closer by stop
	stopped    atomic.Bool
	tallies    []tally
}

// newCourse begins now.
func newCourse(connections int, warmUp, duration time.Duration) *course {
	c := &course{clock: startClock(), tallies: make([]tally, connections)}
	c.begin = int64(warmUp)
	c.end = noEnd
	if duration > 0 {
		c.end = c.begin + int64(duration)
	}
	return c
}

// noEnd is the end of a run without one.
const noEnd = int64(1) << 62

// over tells whether nothing more is to be begun.
func (c *course) over(now int64) bool { return now >= c.end || c.stopped.Load() }

// measured tells whether something that was completed then counts.
func (c *course) measured(now int64) bool { return now >= c.begin && now < c.end }

// report calls fn about once a second until ctx ends.
func (c *course) report(ctx context.Context, fn func(Progress)) {
	if fn == nil {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var messages, bytes, last int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := c.now()
		var m, b, e int64
		for i := range c.tallies {
			t := &c.tallies[i]
			m, b, e = m+t.messages.Load(), b+t.bytes.Load(), e+t.errors.Load()
		}
		since := float64(now-last) / 1e9
		fn(Progress{
			Elapsed: time.Duration(now), Messages: m, Errors: e, WarmUp: now < c.begin,
			Rate: float64(m-messages) / since, Bytes: float64(b-bytes) / since,
		})
		messages, bytes, last = m, b, now
	}
}

// drive runs one function for each connection, and the report of their progress, until all functions have returned. When ctx ends,
// stop is called for each connection.
func (c *course) drive(ctx context.Context, n int, fn func(i int) error, stop func(i int), progress func(Progress)) []error {
	reporting, endReport := context.WithCancel(context.Background())
	var side, main sync.WaitGroup
	side.Go(func() { c.report(reporting, progress) })
	undo := context.AfterFunc(ctx, func() {
		c.stopped.Store(true)
		for i := range n {
			stop(i)
		}
	})
	errs := make([]error, n)
	for i := range n {
		main.Go(func() { errs[i] = fn(i) })
	}
	main.Wait()
	undo()
	endReport()
	side.Wait()
	return errs
}
