package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// restarts has the server end and come back while clients work: nothing that
// was acknowledged may be lost.
func restarts(s *suite) {
	s.addFor("restart-kill", restarting, 150*time.Second, func(r *rig) { restartUnder(r, "kill", false) })
	s.addFor("restart-term", restarting, 150*time.Second, func(r *rig) { restartUnder(r, "term", false) })
	s.addFor("restart-orderly", restarting, 150*time.Second, func(r *rig) { restartUnder(r, "kill", true) })
}

// traffic is producers that go on whatever happens, and what the server
// acknowledged to them.
type traffic struct {
	stop    chan struct{}
	senders sync.WaitGroup

	mu           sync.Mutex
	acknowledged []string
	refused      int
}

func startTraffic(p rocketmq.Producer, topic string, senders int) *traffic {
	t := &traffic{stop: make(chan struct{})}
	for i := range senders {
		t.senders.Go(func() { t.send(p, topic, "p"+strconv.Itoa(i)) })
	}
	return t
}

// send sends name/0, name/1 … each until it is acknowledged; so the first
// copies are stored in order.
func (t *traffic) send(p rocketmq.Producer, topic, name string) {
	wait := 2 * time.Millisecond
	for number := 0; ; {
		select {
		case <-t.stop:
			return
		case <-time.After(wait):
		}
		text := fmt.Sprintf("%s/%d", name, number)
		result, err := p.SendSync(context.Background(), primitive.NewMessage(topic, []byte(text)).WithShardingKey(name))
		wait = 2 * time.Millisecond
		t.mu.Lock()
		if err == nil && result.Status == primitive.SendOK {
			t.acknowledged = append(t.acknowledged, text)
			number++
		} else {
			t.refused++
			wait = 50 * time.Millisecond
		}
		t.mu.Unlock()
	}
}

func (t *traffic) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.acknowledged)
}

func restartUnder(r *rig, how string, ordered bool) {
	p := r.producer(producer.WithQueueSelector(producer.NewHashQueueSelector()), producer.WithSendMsgTimeout(3*time.Second))
	topic := r.topic(4)
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in), consumer.WithConsumerOrder(ordered))
	t := startTraffic(p, topic, 3)
	stop := sync.OnceFunc(func() { close(t.stop) })
	r.onEnd(stop)
	r.until("300 acknowledged messages before the restart", func() bool { return t.count() >= 300 })
	begin := time.Now()
	r.reach("restart")
	r.restartServer(how)
	before := t.count()
	r.until("300 acknowledged messages after the restart", func() bool { return t.count() >= before+300 })
	r.note("serves clients again after %.1f s", time.Since(begin).Seconds())
	stop()
	r.reach("wait for the senders")
	t.senders.Wait()
	r.note("%d acknowledged, %d refused", len(t.acknowledged), t.refused)
	awaitAll(r, in, t.acknowledged)
	if ordered {
		inOrder(r, in)
		return
	}
	again := newInbox() // a reader of its own sees them too
	r.push(r.unique("cg"), topic, all, into(again))
	awaitAll(r, again, t.acknowledged)
}

func awaitAll(r *rig, in *inbox, acknowledged []string) {
	begin := time.Now()
	in.awaitTexts(r, acknowledged)
	r.note("delivered after %.1f s, %d twice", time.Since(begin).Seconds(), in.repeats())
}

// inOrder checks that each name's numbers came without a gap, repeats aside.
func inOrder(r *rig, in *inbox) {
	last := map[string]int{}
	for _, text := range in.texts() {
		name, digits, _ := strings.Cut(text, "/")
		n, err := strconv.Atoi(digits)
		r.must(err, "number")
		r.check(n <= last[name], "%s: %d came, expected %d", name, n, last[name])
		last[name] = max(last[name], n+1)
	}
}
