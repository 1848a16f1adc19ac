package main

import (
	"context"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// retryLimit bounds a first retry: the client learns of the retry topic with
// its next routes (30 s) and takes it up in the next round (20 s).
const retryLimit = 120 * time.Second

// retrying has messages that the consumer refuses: again after a while, in the end a dead letter.
func retrying(s *suite) {
	s.addFor("retry", shared, retryLimit, retry)
	s.addFor("dead-letter", shared, retryLimit, deadLetter)
}

func retry(r *rig) {
	p := r.producer()
	topic := r.topic(4)
	bad, good := newInbox(), newInbox()
	r.push(r.unique("cg"), topic, all, func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		if string(messages[0].Body) != "bad" {
			good.add(messages...)
			return consumer.ConsumeSuccess, nil
		}
		bad.add(messages...)
		if c, ok := primitive.GetConcurrentlyCtx(ctx); ok {
			c.DelayLevelWhenNextConsume = 1
		}
		if messages[0].ReconsumeTimes < 2 {
			return consumer.ConsumeRetryLater, nil
		}
		return consumer.ConsumeSuccess, nil
	})
	sent := r.send(p, message(topic, "TagA", "bad"))
	r.sendAll(p, topic, "good", 20)
	r.reach("wait for three tries")
	r.check(bad.await(retryLimit, func() bool { return bad.size() >= 3 }), "want three tries, got %d", bad.size())
	tries := bad.all()
	for i, a := range tries {
		r.equal(int32(i), a.ReconsumeTimes, "reconsume times")
		r.equal(topic, a.Topic, "topic")
		r.equal("TagA", a.GetTags(), "tags")
		r.equal("key-bad", a.GetKeys(), "keys")
		r.equal(sent.MsgID, a.MsgId, "id")
		if i > 0 {
			gap := a.at.Sub(tries[i-1].at).Round(time.Millisecond)
			r.note("try %d after %s", i, gap)
			r.check(gap >= 800*time.Millisecond, "try %d came after %s, level 1 is a second", i, gap)
		}
	}
	good.awaitDistinct(r, 20)
	r.equal(20, good.size(), "deliveries of the good ones")
	r.check(bad.staysAt(3, 2*time.Second), "a message that was taken came again")
}

func deadLetter(r *rig) {
	p := r.producer()
	topic := r.topic(4)
	group := r.unique("cg")
	in := newInbox()
	r.push(group, topic, all, func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		in.add(messages...)
		if c, ok := primitive.GetConcurrentlyCtx(ctx); ok {
			c.DelayLevelWhenNextConsume = 1
		}
		return consumer.ConsumeRetryLater, nil
	}, consumer.WithMaxReconsumeTimes(1))
	sent := r.send(p, message(topic, "TagA", "hopeless"))
	r.reach("wait for two tries")
	r.check(in.await(retryLimit, func() bool { return in.size() >= 2 }), "want two tries, got %d", in.size())
	dead := "%DLQ%" + group
	queue := r.queues(dead, 1)[0]
	c := r.puller(r.unique("reader"))
	r.must(c.Subscribe(dead, all), "subscribe")
	r.startPuller(c)
	result, err := c.PullFrom(context.Background(), queue, 0, 32)
	r.must(err, "pull dead letters")
	r.equal(primitive.PullFound, result.Status, "status")
	letters := result.GetMessageExts()
	r.equal(1, len(letters), "dead letters")
	r.equal("hopeless", string(letters[0].Body), "body of the dead letter")
	r.equal(topic, letters[0].GetProperty(primitive.PropertyRetryTopic), "its source")
	r.equal(sent.MsgID, letters[0].MsgId, "its id")
	r.equal(int32(2), letters[0].ReconsumeTimes, "its reconsume times")
	r.check(in.staysAt(2, 2*time.Second), "a dead letter was delivered")
}
