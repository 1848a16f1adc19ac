package ops_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

// ledger is what senders have sent and been told, by queue.
type ledger struct {
	mu       sync.Mutex
	sent     []int
	acked    []map[int]bool
	total    int
	reached  chan struct{} // closed when total gets to the next goal
	goal     int
	inFlight sync.WaitGroup
}

func newLedger(queues int) *ledger {
	l := &ledger{sent: make([]int, queues), acked: make([]map[int]bool, queues)}
	for q := range l.acked {
		l.acked[q] = map[int]bool{}
	}
	return l
}

// await is closed when that many messages more have been acknowledged.
func (l *ledger) await(more int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.goal, l.reached = l.total+more, make(chan struct{})
	return l.reached
}

func (l *ledger) body(queue, n int) string {
	return fmt.Sprintf("%d/%d %s", queue, n, strings.Repeat("z", n%500))
}

// next sends the next message to a queue, and one more whenever one was acknowledged, until the connection ends.
func (l *ledger) next(c *client, queue int) {
	l.mu.Lock()
	n := l.sent[queue]
	l.sent[queue]++
	l.mu.Unlock()
	l.inFlight.Add(1)
	c.Go(sendCommand("T", int32(queue), []byte(l.body(queue, n))), func(a *protocol.Command, err error) {
		defer l.inFlight.Done()
		if err != nil || a.Code != protocol.RespSuccess {
			return
		}
		l.mu.Lock()
		l.acked[queue][n] = true
		if l.total++; l.reached != nil && l.total >= l.goal {
			close(l.reached)
			l.reached = nil
		}
		l.mu.Unlock()
		l.next(c, queue)
	})
}

// check holds a queue against the ledger: every acknowledged message once, none that was not sent, none twice.
func (l *ledger) check(t *testing.T, queue int, bodies []string) {
	t.Helper()
	seen := map[int]bool{}
	for _, b := range bodies {
		var q, n int
		_, err := fmt.Sscanf(b, "%d/%d ", &q, &n)
		require.NoError(t, err)
		require.Equal(t, l.body(queue, n), b)
		require.False(t, seen[n], "message %d of queue %d is there twice", n, queue)
		require.Less(t, n, l.sent[queue])
		seen[n] = true
	}
	for n := range l.acked[queue] {
		require.True(t, seen[n], "message %d of queue %d was acknowledged and is lost", n, queue)
	}
}

func TestNothingAcknowledgedIsLostByKill(t *testing.T) {
	for _, durability := range []string{"sync", "async"} {
		t.Run(durability, func(t *testing.T) {
			const queues, window = 4, 16
			dir := t.TempDir()
			l := newLedger(queues)
			for round := range 4 {
				s := start(t, dir, "--durability", durability, "--set", "checkpoint-bytes=1MiB", "--set", "segment-bytes=1MiB", "--set", "max-message-bytes=256KiB")
				enough := l.await(400 << round)
				c := s.dial()
				for q := range queues {
					for range window {
						l.next(c, q)
					}
				}
				<-enough
				s.kill()
				l.inFlight.Wait()
			}
			s := start(t, dir, "--durability", durability, "--set", "segment-bytes=1MiB", "--set", "max-message-bytes=256KiB")
			c := s.dial()
			found := 0
			for q := range queues {
				bodies := c.read("T", int32(q))
				l.check(t, q, bodies)
				found += len(bodies)
			}
			t.Logf("%d acknowledged, %d found", l.total, found)
			c.mustSend("T", 0, []byte("it goes on"))
			s.stop()
		})
	}
}
