package main

import (
	"context"
	"strconv"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// pulling has the pull consumer in its three ways, and the admin type.
func pulling(s *suite) {
	s.add("pull-poll", pullPoll)
	s.add("pull-assign-seek", pullAssign)
	s.add("pull-from", pullFrom)
	s.add("pull-waits", pullWaits)
	s.add("offsets", offsets)
}

// puller gives a pull consumer that is not started.
func (r *rig) puller(group string) rocketmq.PullConsumer {
	c, err := rocketmq.NewPullConsumer(
		consumer.WithNsResolver(r.resolver()),
		consumer.WithGroupName(group),
		consumer.WithInstance(r.unique("i")),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithPullBatchSize(16),
	)
	r.must(err, "new pull consumer")
	return c
}

// startPuller starts it; it ends with the scenario.
func (r *rig) startPuller(c rocketmq.PullConsumer) {
	r.must(c.Start(), "start pull consumer")
	r.onEnd(func() { _ = c.Shutdown() })
}

// fill sends m0 … to one queue.
func (r *rig) fill(queue *primitive.MessageQueue, n int) {
	p := r.producer(producer.WithQueueSelector(producer.NewManualQueueSelector()))
	for i := range n {
		m := message(queue.Topic, "TagA", "m"+strconv.Itoa(i))
		m.Queue = queue
		r.send(p, m)
	}
}

// poll polls and acknowledges until n different messages are there.
func (r *rig) poll(c rocketmq.PullConsumer, in *inbox, n int) {
	r.until(strconv.Itoa(n)+" messages by poll", func() bool {
		request, err := c.Poll(context.Background(), 500*time.Millisecond)
		if err == nil {
			in.add(request.GetMsgList()...)
			c.ACK(context.Background(), request, consumer.ConsumeSuccess)
		}
		return in.distinct() >= n
	})
}

func pullPoll(r *rig) {
	p := r.producer()
	topic := r.topic(4)
	group := r.unique("cg")
	r.sendAll(p, topic, "old", 40)
	c := r.puller(group)
	r.must(c.Subscribe(topic, all), "subscribe")
	r.startPuller(c)
	in := newInbox()
	r.poll(c, in, 40)
	r.sendAll(p, topic, "new", 20)
	r.poll(c, in, 60)
	r.equal(60, in.size(), "deliveries")
	r.must(c.Shutdown(), "shut down")
	next := r.puller(group)
	r.must(next.Subscribe(topic, all), "subscribe")
	r.startPuller(next)
	more := r.sendAll(p, topic, "more", 8)
	again := newInbox()
	r.poll(next, again, 8)
	r.equal(0, len(again.missing(more)), "later messages that did not come")
	r.equal(8, again.size(), "deliveries after the commit")
}

func pullAssign(r *rig) {
	topic := r.topic(2)
	queue := r.queues(topic, 2)[0]
	r.fill(queue, 30)
	c := r.puller(r.unique("cg"))
	r.must(c.Assign(topic, []*primitive.MessageQueue{queue}), "assign")
	c.SeekOffset(queue, 20)
	r.startPuller(c)
	in := newInbox()
	r.poll(c, in, 10)
	for i, a := range in.all() {
		r.equal(int64(20+i), a.QueueOffset, "offset of message "+strconv.Itoa(i))
	}
	r.equal(10, in.size(), "messages from offset 20")
}

func pullFrom(r *rig) {
	topic := r.topic(2)
	queue := r.queues(topic, 2)[1]
	r.fill(queue, 80)
	c := r.puller(r.unique("cg"))
	r.must(c.Subscribe(topic, all), "subscribe")
	r.startPuller(c)
	var next int64
	for next < 80 {
		result, err := c.PullFrom(context.Background(), queue, next, 32)
		r.must(err, "pull")
		r.equal(primitive.PullFound, result.Status, "status")
		for _, m := range result.GetMessageExts() {
			r.equal("m"+strconv.FormatInt(next, 10), string(m.Body), "message")
			r.equal(next, m.QueueOffset, "offset")
			next++
		}
		r.equal(next, result.NextBeginOffset, "next offset")
		r.equal(int64(80), result.MaxOffset, "max offset")
	}
	result, err := c.PullFrom(context.Background(), queue, 1000, 32)
	r.must(err, "pull beyond the end")
	r.equal(primitive.PullOffsetIllegal, result.Status, "status beyond the end")
	r.equal(int64(80), result.NextBeginOffset, "corrected offset")
}

func pullWaits(r *rig) {
	topic := r.topic(1)
	queue := r.queues(topic, 1)[0]
	c := r.puller(r.unique("cg"))
	r.must(c.Subscribe(topic, all), "subscribe")
	r.startPuller(c)
	type answer struct {
		result *primitive.PullResult
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		result, err := c.PullFrom(context.Background(), queue, 0, 32)
		answers <- answer{result, err}
	}()
	select {
	case a := <-answers:
		r.fail("the pull did not wait: %v, %v", a.result, a.err)
	case <-time.After(time.Second):
	}
	r.fill(queue, 1)
	sent := time.Now()
	r.reach("wait for the answer")
	a := <-answers
	r.must(a.err, "pull")
	r.equal(primitive.PullFound, a.result.Status, "status")
	r.check(time.Since(sent) < time.Second, "the waiting pull was answered after %s", time.Since(sent))
}

func offsets(r *rig) {
	topic := r.topic(1)
	queue := r.queues(topic, 1)[0]
	r.fill(queue, 10)
	<-time.After(20 * time.Millisecond)
	between := time.Now()
	<-time.After(20 * time.Millisecond)
	r.fill(queue, 5)
	group := r.unique("cg")
	c := r.puller(group)
	r.must(c.Assign(topic, []*primitive.MessageQueue{queue}), "assign")
	r.startPuller(c)
	for _, want := range []struct {
		at     time.Time
		offset int64
	}{{between, 10}, {between.Add(-time.Hour), 0}, {time.Now().Add(time.Hour), 15}} {
		got, err := c.OffsetForTimestamp(queue, want.at.UnixMilli())
		r.must(err, "offset for a time")
		r.equal(want.offset, got, "offset for "+want.at.String())
	}
	r.must(c.UpdateOffset(queue, 7), "update offset")
	r.must(c.PersistOffset(context.Background(), topic), "persist")
	r.until("offset 7 on the server", func() bool {
		offset, err := c.CurrentOffset(queue)
		return err == nil && offset == 7
	})
}

// adminTopics creates, finds and deletes topics by the client's admin type.
func adminTopics(r *rig) {
	topic := r.topic(3)
	a := r.admin()
	has := func() bool {
		list, err := a.FetchAllTopicList(context.Background())
		r.must(err, "list topics")
		for _, t := range list.TopicList {
			if t == topic {
				return true
			}
		}
		return false
	}
	r.check(has(), "the topic is not in the list")
	clusters, err := a.FetchClusterList(topic)
	r.must(err, "clusters of the topic")
	r.check(len(clusters) == 1 && clusters[0] != "", "clusters of the topic: %q", clusters)
	group := r.unique("cg")
	in := newInbox()
	r.sendAll(r.producer(), topic, "m", 1)
	r.push(group, topic, all, into(in))
	in.awaitDistinct(r, 1)
	known, err := a.GetAllSubscriptionGroup(context.Background(), r.broker(), 10*time.Second)
	r.must(err, "list groups")
	r.check(known.SubscriptionGroupTable[group].ConsumeEnable, "the group %s is not in the list of groups", group)
	r.must(a.DeleteTopic(context.Background(), admin.WithTopicDelete(topic)), "delete topic")
	r.until("the topic out of the list", func() bool { return !has() })
}
