package broker

import (
	"sync"
	"sync/atomic"
	"time"
)

// QueueID names a queue.
type QueueID struct {
	Topic string
	Queue int32
}

// locks says which client may consume a queue of a group in order. A lock is held
// until its lease is over, it is given back, or the client's connection is gone.
// Only then does anybody else get it. Whoever does not hold the lock of a locked
// queue gets no messages of it and cannot commit: so a consumer that lost its lock
// without knowing can do no harm. That holds for connections that have said in a
// heartbeat whose they are: old Java clients commit through a second one, which has not.
type locks struct {
	lease func() time.Duration
	count atomic.Int64 // of entries, so that the usual case costs nothing

	mu     sync.Mutex // guards the following
	groups map[string]map[QueueID]lock
}

type lock struct {
	client string
	until  time.Time // monotonic
}

func newLocks(lease func() time.Duration) *locks {
	return &locks{lease: lease, groups: map[string]map[QueueID]lock{}}
}

// take locks queues for a client, or renews its locks, and returns those it now holds.
func (l *locks) take(group, client string, queues []QueueID) (got []QueueID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	held := l.groups[group]
	if held == nil {
		held = map[QueueID]lock{}
		l.groups[group] = held
	}
	for _, q := range queues {
		if old, ok := held[q]; ok && old.client != client && now.Before(old.until) {
			continue
		} else if !ok {
			l.count.Add(1)
		}
		held[q] = lock{client, now.Add(l.lease())}
		got = append(got, q)
	}
	l.tidy(group)
	return got
}

// giveBack unlocks queues that the client holds.
func (l *locks) giveBack(group, client string, queues []QueueID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range queues {
		if old, ok := l.groups[group][q]; ok && old.client == client {
			delete(l.groups[group], q)
			l.count.Add(-1)
		}
	}
	l.tidy(group)
}

// release unlocks everything that a client holds in a group.
func (l *locks) release(group, client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for q, old := range l.groups[group] {
		if old.client == client {
			delete(l.groups[group], q)
			l.count.Add(-1)
		}
	}
	l.tidy(group)
}

// expire forgets locks whose lease is over: their clients may never come again.
func (l *locks) expire() {
	if l.count.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for group, held := range l.groups {
		for q, k := range held {
			if !now.Before(k.until) {
				delete(held, q)
				l.count.Add(-1)
			}
		}
		l.tidy(group)
	}
}

func (l *locks) tidy(group string) {
	if len(l.groups[group]) == 0 {
		delete(l.groups, group)
	}
}

// held says whether anybody holds a lock in the group.
func (l *locks) held(group string) bool {
	if l.count.Load() == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, k := range l.groups[group] {
		if now.Before(k.until) {
			return true
		}
	}
	return false
}

// deny says whether another client holds the lock of the queue that is to be pulled.
func (l *locks) deny(r *PullRequest) bool {
	if l.count.Load() == 0 || r.Client == nil {
		return false
	}
	return l.denies(string(r.Group), string(r.Topic), r.QueueID, r.Client)
}

func (l *locks) denies(group, topic string, queue int32, client *Client) bool {
	if l.count.Load() == 0 || client == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k, ok := l.groups[group][QueueID{topic, queue}]
	return ok && k.client != client.ID && time.Now().Before(k.until)
}

// LockQueues locks queues of a group for a client and returns those that it holds.
func (b *Broker) LockQueues(group, client string, queues []QueueID) []QueueID {
	return b.locks.take(group, client, queues)
}

// UnlockQueues gives back locks that the client holds.
func (b *Broker) UnlockQueues(group, client string, queues []QueueID) {
	b.locks.giveBack(group, client, queues)
}
