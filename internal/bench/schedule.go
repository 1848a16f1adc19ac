package bench

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"
)

// due tells when frame i of this connection is due. The frames of all connections together are evenly spaced.
func (p *producer) due(i int64) int64 {
	nth := float64(i)*float64(p.o.Connections) + float64(p.number)
	return int64(nth * float64(p.o.Batch) / p.o.Rate * 1e9)
}

// unsent is how many messages were due and never sent.
func (p *producer) unsent() int64 {
	if p.o.Rate <= 0 {
		return 0
	}
	until := float64(min(p.end, p.stopAt)) / 1e9
	frames := math.Ceil((until*p.o.Rate/float64(p.o.Batch) - float64(p.number)) / float64(p.o.Connections))
	return max(0, min(int64(frames)-p.frames, p.left)) * int64(p.o.Batch)
}

// scheduled sends by the clock, and reads answers in another goroutine.
func (p *producer) scheduled() error {
	var reading sync.WaitGroup
	var readErr error
	stop := make(chan struct{})
	reading.Go(func() {
		defer close(stop)
		readErr = p.readAll()
	})
	sendErr := p.sendAll(stop)
	p.mu.Lock()
	p.sentAll = true
	if p.inFlight() == 0 {
		_ = p.link.conn.SetReadDeadline(time.Now()) // nothing more will come
	} else if p.end == noEnd {
		_ = p.link.conn.SetReadDeadline(time.Now().Add(p.o.Drain)) // as in join
	}
	p.mu.Unlock()
	reading.Wait()
	return errors.Join(sendErr, readErr)
}

func (p *producer) readAll() error {
	for {
		more, err := p.readAnswers()
		if err != nil || !more {
			return err
		}
		p.mu.Lock()
		done := p.sentAll && p.inFlight() == 0
		p.mu.Unlock()
		if done {
			return nil
		}
	}
}

// sendAll sends what the schedule asks for, until it or the reading ends.
func (p *producer) sendAll(stop <-chan struct{}) error {
	defer func() { p.stopAt = p.now() }()
	for p.left > 0 {
		now := p.now()
		due := p.due(p.frames)
		if due >= p.end || p.stopped.Load() {
			return nil
		}
		if due > now {
			if !sleep(time.Duration(due-now), stop) {
				return nil
			}
			continue
		}
		if !p.addDue(now) {
			select {
			case <-p.room:
				if p.over(p.now()) {
					return nil
				}
			case <-time.After(time.Duration(min(p.end-now, int64(time.Minute)))):
				if p.over(p.now()) {
					return nil
				}
			case <-stop:
				return nil
			}
			continue
		}
		if _, err := p.link.conn.Write(p.link.out); errors.Is(err, os.ErrDeadlineExceeded) {
			return nil // what is under way counts as unanswered
		} else if err != nil {
			return fmt.Errorf("write: %w", err)
		}
		p.link.out = p.link.out[:0]
	}
	return nil
}

// addDue makes the frames that are due, as far as there is room; false when there is none.
func (p *producer) addDue(now int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.left > 0 && len(p.free) > 0 && len(p.link.out) < chunk {
		due := p.due(p.frames)
		if due > now || due >= p.end {
			break
		}
		if p.measured(now) {
			p.lateness.add(now-due, int64(p.o.Batch))
		}
		p.add(now, due)
	}
	return len(p.link.out) > 0
}
