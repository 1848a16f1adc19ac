package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// soon bounds what happens at once, or with the next heartbeat and rebalance of the client.
const soon = 60 * time.Second

var (
	run    = strconv.FormatInt(time.Now().UnixMilli()/100*100_000+int64(os.Getpid()%100_000), 36)
	number atomic.Int64
)

// failure ends a scenario; its text is the reason.
type failure string

// rig is what one scenario works with.
type rig struct {
	suite    *suite
	scenario string

	mu      sync.Mutex
	endings []func()
	notes   []string
	step    string
}

// ---- checks

func (r *rig) fail(format string, args ...any) {
	panic(failure(brief(fmt.Sprintf(format, args...))))
}

func (r *rig) must(err error, what string) {
	if err != nil {
		r.fail("%s: %v", what, err)
	}
}

func (r *rig) check(holds bool, format string, args ...any) {
	if !holds {
		r.fail(format, args...)
	}
}

func (r *rig) equal(want, got any, what string) {
	if !reflect.DeepEqual(want, got) {
		r.fail("%s: want %v, got %v", what, want, got)
	}
}

func brief(text string) string {
	line := strings.Join(strings.Fields(text), " ")
	if len(line) > 600 {
		line = line[:600] + "…"
	}
	return line
}

// until looks again and again until it holds.
func (r *rig) until(what string, holds func() bool) {
	r.reach(what)
	deadline := time.Now().Add(soon)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			r.fail("after %s there is not: %s", soon, what)
		}
		<-ticker.C
	}
}

// reach names the step that a scenario is at, for the report when it does not end.
func (r *rig) reach(step string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step = step
}

func (r *rig) lastStep() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.step
}

// note adds a remark to the line that reports the scenario.
func (r *rig) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *rig) remarks() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.notes) == 0 {
		return ""
	}
	return ": " + strings.Join(r.notes, ", ")
}

func (r *rig) onEnd(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endings = append(r.endings, f)
}

// close ends the clients, the youngest first.
func (r *rig) close() {
	for {
		r.mu.Lock()
		n := len(r.endings)
		if n == 0 {
			r.mu.Unlock()
			return
		}
		f := r.endings[n-1]
		r.endings = r.endings[:n-1]
		r.mu.Unlock()
		f()
	}
}

// ---- clients

// unique gives a name that no other scenario and no other run has.
func (r *rig) unique(role string) string {
	return fmt.Sprintf("%s-%s-%s-%s-%d", role, r.scenario, r.suite.name, run, number.Add(1))
}

func (r *rig) resolver() primitive.NsResolver {
	return primitive.NewPassthroughResolver([]string{r.suite.nameServer})
}

func (r *rig) producer(opts ...producer.Option) rocketmq.Producer {
	p, err := rocketmq.NewProducer(append([]producer.Option{
		producer.WithNsResolver(r.resolver()),
		producer.WithGroupName(r.unique("pg")),
		producer.WithInstanceName(r.unique("i")),
		producer.WithSendMsgTimeout(10 * time.Second),
		producer.WithRetry(2),
	}, opts...)...)
	r.must(err, "new producer")
	r.must(p.Start(), "start producer")
	r.onEnd(func() { _ = p.Shutdown() })
	return p
}

// listener is what a push consumer calls.
type listener = func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error)

// into gives a listener that keeps all in the inbox.
func into(in *inbox) listener {
	return func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		in.add(messages...)
		return consumer.ConsumeSuccess, nil
	}
}

var all = consumer.MessageSelector{}

// push starts a push consumer that begins at the first message.
func (r *rig) push(group, topic string, selector consumer.MessageSelector, f listener, opts ...consumer.Option) rocketmq.PushConsumer {
	c, err := rocketmq.NewPushConsumer(append([]consumer.Option{
		consumer.WithNsResolver(r.resolver()),
		consumer.WithGroupName(group),
		consumer.WithInstance(r.unique("i")),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	}, opts...)...)
	r.must(err, "new consumer")
	r.must(c.Subscribe(topic, selector, f), "subscribe")
	r.must(c.Start(), "start consumer")
	r.onEnd(func() { _ = c.Shutdown() })
	return c
}

// administrator is what of the client's admin type the scenarios use; the type itself has no name outside.
type administrator = admin.Admin

func (r *rig) admin() administrator {
	a, err := admin.NewAdmin(admin.WithResolver(r.resolver()))
	r.must(err, "new admin")
	r.onEnd(func() { _ = a.Close() })
	return a
}

// ---- topics

var (
	probeOnce  sync.Once
	probedAddr string
)

// broker gives the address of the broker; the client tells it to interceptors only.
func (r *rig) broker() string {
	probeOnce.Do(func() {
		p := r.producer(producer.WithInterceptor(func(ctx context.Context, req, reply any, next primitive.Invoker) error {
			err := next(ctx, req, reply)
			if c, ok := primitive.GetProducerCtx(ctx); ok {
				probedAddr = c.BrokerAddr
			}
			return err
		}))
		_, err := p.SendSync(context.Background(), primitive.NewMessage(r.unique("probe"), []byte("x")))
		r.must(err, "send a probe")
	})
	r.check(probedAddr != "", "the address of the broker is not known")
	return probedAddr
}

// topic creates a topic and waits until its route is known.
func (r *rig) topic(queues int) string {
	topic := r.unique("t")
	r.reach("create topic " + topic)
	err := r.admin().CreateTopic(context.Background(), admin.WithTopicCreate(topic), admin.WithBrokerAddrCreate(r.broker()),
		admin.WithReadQueueNums(queues), admin.WithWriteQueueNums(queues))
	r.must(err, "create topic")
	r.queues(topic, queues)
	return topic
}

// queues waits until the route has so many queues and gives them in order.
func (r *rig) queues(topic string, n int) []*primitive.MessageQueue {
	var queues []*primitive.MessageQueue
	r.until(fmt.Sprintf("a route with %d queues of %s", n, topic), func() bool {
		a := r.admin() // a new one each time: the client keeps routes
		defer a.Close()
		var err error
		queues, err = a.FetchPublishMessageQueues(context.Background(), topic)
		return err == nil && len(queues) == n
	})
	return queues
}

func message(topic, tag, text string) *primitive.Message {
	return primitive.NewMessage(topic, []byte(text)).WithTag(tag).WithKeys([]string{"key-" + text})
}

// send sends one message and checks that it was stored.
func (r *rig) send(p rocketmq.Producer, m *primitive.Message) *primitive.SendResult {
	result, err := p.SendSync(context.Background(), m)
	r.must(err, "send")
	r.equal(primitive.SendOK, result.Status, "status")
	return result
}

// sendAll sends texts named prefix-0 … and gives the texts.
func (r *rig) sendAll(p rocketmq.Producer, topic, prefix string, n int) []string {
	var texts []string
	for i := range n {
		texts = append(texts, fmt.Sprintf("%s-%d", prefix, i))
		r.send(p, message(topic, "TagA", texts[i]))
	}
	return texts
}

// restartServer ends the server, "kill" or "term", and waits until it serves again.
func (r *rig) restartServer(how string) {
	out, err := exec.Command("/bin/bash", "-c", r.suite.restart+" "+how).CombinedOutput()
	if err != nil {
		r.fail("restart by %s: %v: %s", how, err, out)
	}
}
