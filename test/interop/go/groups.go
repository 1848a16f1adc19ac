package main

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// groups has several consumers, and what happens when they come and go.
func groups(s *suite) {
	s.add("push", push)
	s.add("tags", tags)
	s.add("namespace", namespace)
	s.add("balance", balance)
	s.add("broadcast", broadcast)
	s.add("consumer-restart", consumerRestart)
	s.add("long-poll", longPoll)
	s.add("orderly", orderly)
	s.add("orderly-suspend", orderlySuspend)
}

func push(r *rig) {
	p := r.producer()
	topic := r.topic(4)
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in))
	texts := r.sendAll(p, topic, "m", 100)
	in.awaitTexts(r, texts)
	r.equal(100, in.size(), "deliveries")
}

func tags(r *rig) {
	p := r.producer()
	topic := r.topic(4)
	tags := []string{"A", "B", "C", "Aa"}
	// "Aa" and "BB" have the same hash: the server may not tell them apart, the client must
	wanted := map[string][]string{"A": {"A"}, "A || B": {"A", "B"}, " C||Aa ": {"C", "Aa"}, "*": tags, "BB": nil}
	inboxes := map[string]*inbox{}
	for expression := range wanted {
		inboxes[expression] = newInbox()
		r.push(r.unique("cg"), topic, consumer.MessageSelector{Type: consumer.TAG, Expression: expression}, into(inboxes[expression]))
	}
	texts := map[string][]string{}
	for i := range 40 {
		tag := tags[i%4]
		text := tag + "/" + strconv.Itoa(i)
		texts[tag] = append(texts[tag], text)
		r.send(p, message(topic, tag, text))
	}
	for expression, tags := range wanted {
		var want []string
		for _, tag := range tags {
			want = append(want, texts[tag]...)
		}
		in := inboxes[expression]
		in.awaitTexts(r, want)
		r.check(in.staysAt(len(want), 300*time.Millisecond), "%s: more than was subscribed: %q", expression, in.texts())
	}
}

func namespace(r *rig) {
	const instance = "instgo"
	topic, group := r.unique("t"), r.unique("cg")
	// this client puts the namespace into the message it is given
	inside := r.sendAll(r.producer(producer.WithNamespace(instance)), topic, "inside", 8)
	outside := r.sendAll(r.producer(), topic, "outside", 8)
	r.queues(instance+"%"+topic, 4)
	spaced, plain, wire := newInbox(), newInbox(), newInbox()
	r.push(group, topic, all, into(spaced), consumer.WithNamespace(instance))
	r.push(group, topic, all, into(plain))
	r.push(r.unique("cg"), instance+"%"+topic, all, into(wire))
	spaced.awaitTexts(r, inside)
	plain.awaitTexts(r, outside)
	wire.awaitTexts(r, inside)
	r.check(plain.staysAt(8, 300*time.Millisecond) && spaced.size() == 8 && wire.size() == 8, "more came than was sent")
}

// balance finds out who holds which queue by a message to each.
func balance(r *rig) {
	p := r.producer(producer.WithQueueSelector(producer.NewManualQueueSelector()))
	topic := r.topic(6)
	queues := r.queues(topic, 6)
	group := r.unique("cg")
	sent := 0
	// a round of one message to each queue, and how many of them each member got
	round := func(inboxes []*inbox) []int {
		before := make([]int, len(inboxes))
		for i, in := range inboxes {
			before[i] = in.size()
		}
		for _, queue := range queues {
			m := message(topic, "TagA", strconv.Itoa(sent))
			m.Queue = queue
			r.send(p, m)
			sent++
		}
		r.until("a message of each queue at some member", func() bool { return distinct(inboxes) == sent })
		shares := make([]int, len(inboxes))
		for i, in := range inboxes {
			shares[i] = in.size() - before[i]
		}
		return shares
	}
	var inboxes []*inbox
	var members []rocketmq.PushConsumer
	for range 3 {
		in := newInbox()
		inboxes = append(inboxes, in)
		members = append(members, r.push(group, topic, all, into(in)))
	}
	begin := time.Now()
	r.until("two queues for each of three members", func() bool { return equalShares(round(inboxes), 2, 2, 2) })
	r.note("three share after %.1f s", time.Since(begin).Seconds())
	for range 20 {
		r.equal([]int{2, 2, 2}, round(inboxes), "shares of three members")
	}
	r.must(members[0].Shutdown(), "shut down")
	begin = time.Now()
	r.until("three queues for each of two members", func() bool { return equalShares(round(inboxes), 0, 3, 3) })
	r.note("two after %.1f s", time.Since(begin).Seconds())
	for range 20 {
		r.equal([]int{0, 3, 3}, round(inboxes), "shares of two members")
	}
	total := 0
	for _, in := range inboxes {
		total += in.size()
	}
	r.note("%d sent, %d twice", sent, total-sent)
	r.check(total-sent <= 12, "%d of %d came twice", total-sent, sent)
}

func equalShares(got []int, want ...int) bool {
	for i := range want {
		if got[i] != want[i] {
			return false
		}
	}
	return true
}

// distinct counts the different messages that members got together.
func distinct(inboxes []*inbox) int {
	texts := map[string]bool{}
	for _, in := range inboxes {
		for _, text := range in.texts() {
			texts[text] = true
		}
	}
	return len(texts)
}

func broadcast(r *rig) {
	p := r.producer()
	topic := r.topic(4)
	group := r.unique("cg")
	join := func(name string, in *inbox) rocketmq.PushConsumer {
		return r.push(group, topic, all, into(in), consumer.WithConsumerModel(consumer.BroadCasting), consumer.WithInstance(name))
	}
	name := r.unique("one")
	one, other := newInbox(), newInbox()
	member := join(name, one)
	join(r.unique("other"), other)
	texts := r.sendAll(p, topic, "first", 40)
	one.awaitTexts(r, texts)
	other.awaitTexts(r, texts)
	r.equal(80, one.size()+other.size(), "deliveries to both")
	// a member that comes back goes on where its own file of offsets says
	r.must(member.Shutdown(), "shut down")
	more := r.sendAll(p, topic, "second", 20)
	again := newInbox()
	join(name, again)
	again.awaitTexts(r, more)
	r.equal(20, again.size(), "deliveries to the member that came back")
}

func consumerRestart(r *rig) {
	p := r.producer()
	topic := r.topic(4)
	group := r.unique("cg")
	texts := r.sendAll(p, topic, "m", 1000)
	in := newInbox()
	slow := func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		<-time.After(3 * time.Millisecond)
		in.add(messages...)
		return consumer.ConsumeSuccess, nil
	}
	small := []consumer.Option{consumer.WithPullBatchSize(16), consumer.WithPullThresholdForQueue(32), consumer.WithConsumeGoroutineNums(4)}
	first := r.push(group, topic, all, slow, small...)
	in.awaitDistinct(r, 200)
	r.must(first.Shutdown(), "shut down")
	before := in.size()
	r.check(before < 1000, "the first consumer took all before it was stopped")
	r.push(group, topic, all, slow, small...)
	in.awaitTexts(r, texts)
	r.note("%d before, %d twice", before, in.repeats())
	r.check(in.repeats() <= 192, "%d of 1000 came twice", in.repeats())
}

func longPoll(r *rig) {
	p := r.producer()
	topic := r.topic(1)
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in))
	r.sendAll(p, topic, "warm", 1)
	in.awaitDistinct(r, 1)
	var took []time.Duration
	for i := range 5 {
		// long enough for the consumer to be waiting again
		<-time.After([]time.Duration{300 * time.Millisecond, 6 * time.Second}[i/4])
		sent := time.Now()
		r.sendAll(p, topic, strconv.Itoa(i), 1)
		took = append(took, in.awaitDistinct(r, i+2)[i+1].at.Sub(sent).Round(time.Millisecond))
	}
	r.note("%v", took)
	for _, d := range took {
		r.check(d < time.Second, "slower than a second: %v", took)
	}
}

func orderly(r *rig) {
	p := r.producer(producer.WithQueueSelector(producer.NewManualQueueSelector()))
	topic := r.topic(4)
	queues := r.queues(topic, 4)
	in := newInbox()
	var busy [4]atomic.Int32
	var overlaps atomic.Int32
	r.push(r.unique("cg"), topic, all, func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		n := &busy[messages[0].Queue.QueueId]
		if n.Add(1) > 1 {
			overlaps.Add(1)
		}
		in.add(messages...)
		n.Add(-1)
		return consumer.ConsumeSuccess, nil
	}, consumer.WithConsumerOrder(true))
	for i := range 50 {
		for _, queue := range queues {
			m := message(topic, "TagA", strconv.Itoa(queue.QueueId)+"/"+strconv.Itoa(i))
			m.Queue = queue
			r.send(p, m)
		}
	}
	in.awaitDistinct(r, 200)
	r.equal(int32(0), overlaps.Load(), "queues with two messages at a time")
	next := map[string]int{}
	for _, text := range in.texts() {
		queue, n, _ := strings.Cut(text, "/")
		r.equal(strconv.Itoa(next[queue]), n, "next of queue "+queue)
		next[queue]++
	}
}

func orderlySuspend(r *rig) {
	p := r.producer()
	topic := r.topic(1)
	r.sendAll(p, topic, "m", 8)
	seen, done := newInbox(), newInbox()
	r.push(r.unique("cg"), topic, all, func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		seen.add(messages...)
		if string(messages[0].Body) == "m-3" && messages[0].ReconsumeTimes < 2 {
			if c, ok := primitive.GetOrderlyCtx(ctx); ok {
				c.SuspendCurrentQueueTimeMillis = 300
			}
			return consumer.SuspendCurrentQueueAMoment, nil
		}
		done.add(messages...)
		return consumer.ConsumeSuccess, nil
	}, consumer.WithConsumerOrder(true))
	done.awaitDistinct(r, 8)
	r.equal([]string{"m-0", "m-1", "m-2", "m-3", "m-3", "m-3", "m-4", "m-5", "m-6", "m-7"}, seen.texts(), "order with two suspensions")
	arrivals := seen.all()
	r.check(arrivals[4].at.Sub(arrivals[3].at) >= 250*time.Millisecond, "the queue was not suspended for 300 ms")
}
