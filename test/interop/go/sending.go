package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// sending has all ways to send, and what the answers say.
func sending(s *suite) {
	s.add("send-sync", sendSync)
	s.add("send-async", sendAsync)
	s.add("send-oneway", sendOneway)
	s.add("send-batch", sendBatch)
	s.add("send-queue", sendQueue)
	s.add("send-hash-selector", sendHash)
	s.add("key-order", keyOrder)
	s.add("auto-create-topic", autoCreate)
	s.add("admin-topics", adminTopics)
}

func sendSync(r *rig) {
	p := r.producer()
	topic := r.topic(4)
	next := map[int]int64{}
	results := map[string]*primitive.SendResult{}
	for i := range 20 {
		text := strconv.Itoa(i)
		result := r.send(p, message(topic, "TagA", text))
		r.equal(next[result.MessageQueue.QueueId], result.QueueOffset, "queue offset")
		next[result.MessageQueue.QueueId]++
		results[text] = result
	}
	r.equal(4, len(next), "queues that got messages")
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in))
	for _, a := range in.awaitDistinct(r, 20) {
		sent := results[a.text]
		r.equal(sent.MsgID, a.MsgId, "message id")
		r.equal(sent.OffsetMsgID, a.OffsetMsgId, "offset id")
		r.equal(sent.QueueOffset, a.QueueOffset, "queue offset")
		r.equal(sent.MessageQueue.QueueId, a.Queue.QueueId, "queue id")
		r.equal("TagA", a.GetTags(), "tags")
		r.equal("key-"+a.text, a.GetKeys(), "keys")
		r.equal(int32(0), a.ReconsumeTimes, "reconsume times")
	}
	r.equal(0, in.repeats(), "repeats")
}

func sendAsync(r *rig) {
	p := r.producer()
	topic := r.topic(4)
	var texts []string
	var mu sync.Mutex
	var errs []error
	var answers sync.WaitGroup
	onTheWay := make(chan struct{}, 32) // a server may refuse what it cannot take at once
	r.reach("send, and wait for answers")
	for i := range 100 {
		onTheWay <- struct{}{}
		texts = append(texts, strconv.Itoa(i))
		answers.Add(1)
		err := p.SendAsync(context.Background(), func(_ context.Context, result *primitive.SendResult, err error) {
			mu.Lock()
			defer mu.Unlock()
			<-onTheWay
			if err != nil || result.Status != primitive.SendOK {
				errs = append(errs, fmt.Errorf("%v %w", result, err))
			}
			answers.Done()
		}, message(topic, "TagA", texts[i]))
		r.must(err, "send")
	}
	answers.Wait()
	if len(errs) > 0 {
		r.fail("%d errors, the first: %v", len(errs), errs[0])
	}
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in))
	in.awaitTexts(r, texts)
	r.equal(100, in.size(), "deliveries")
}

func sendOneway(r *rig) {
	p := r.producer()
	topic := r.topic(4)
	var texts []string
	for i := range 50 {
		texts = append(texts, strconv.Itoa(i))
		r.must(p.SendOneWay(context.Background(), message(topic, "TagA", texts[i])), "send")
	}
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in))
	in.awaitTexts(r, texts)
	r.equal(50, in.size(), "deliveries")
}

func sendBatch(r *rig) {
	p := r.producer()
	topic := r.topic(4)
	var messages []*primitive.Message
	for i := range 30 {
		m := message(topic, "Tag"+strconv.Itoa(i%3), strconv.Itoa(i))
		m.WithProperty("number", "n"+strconv.Itoa(i))
		messages = append(messages, m)
	}
	result, err := p.SendSync(context.Background(), messages...)
	r.must(err, "send")
	r.equal(primitive.SendOK, result.Status, "status")
	r.equal(30, len(strings.Split(result.OffsetMsgID, ",")), "offset ids in the result")
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in))
	ids := strings.Split(result.OffsetMsgID, ",")
	for _, a := range in.awaitDistinct(r, 30) {
		i, _ := strconv.Atoi(a.text)
		r.equal(ids[i], a.OffsetMsgId, "offset id of "+a.text)
		r.equal(int64(i), a.QueueOffset, "offset of "+a.text)
		r.equal(result.MessageQueue.QueueId, a.Queue.QueueId, "queue of "+a.text)
		r.equal("Tag"+strconv.Itoa(i%3), a.GetTags(), "tags of "+a.text)
		r.equal("n"+a.text, a.GetProperty("number"), "property of "+a.text)
	}
	r.equal(0, in.repeats(), "repeats")
}

func sendQueue(r *rig) {
	p := r.producer(producer.WithQueueSelector(producer.NewManualQueueSelector()))
	topic := r.topic(4)
	queues := r.queues(topic, 4)
	for i := range 20 {
		m := message(topic, "TagA", strconv.Itoa(i))
		m.Queue = queues[i%2+1]
		result := r.send(p, m)
		r.equal(queues[i%2+1].QueueId, result.MessageQueue.QueueId, "queue")
		r.equal(int64(i/2), result.QueueOffset, "offset")
	}
	// a queue that the topic does not have
	m := message(topic, "TagA", "beyond")
	m.Queue = &primitive.MessageQueue{Topic: topic, BrokerName: queues[0].BrokerName, QueueId: 99}
	_, err := p.SendSync(context.Background(), m)
	r.check(err != nil && strings.Contains(err.Error(), "CODE: 29"), "want code 29 for queue 99, got %v", err)
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in))
	for _, a := range in.awaitDistinct(r, 20) {
		i, _ := strconv.Atoi(a.text)
		r.equal(queues[i%2+1].QueueId, a.Queue.QueueId, "queue of "+a.text)
	}
}

func sendHash(r *rig) {
	p := r.producer(producer.WithQueueSelector(producer.NewHashQueueSelector()))
	topic := r.topic(4)
	queueOf := map[string]int{}
	for i := range 64 {
		key := "order-" + strconv.Itoa(i%16)
		result := r.send(p, message(topic, "TagA", key+"/"+strconv.Itoa(i)).WithShardingKey(key))
		if before, ok := queueOf[key]; ok {
			r.equal(before, result.MessageQueue.QueueId, "queue of "+key)
		}
		queueOf[key] = result.MessageQueue.QueueId
	}
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in))
	for _, a := range in.awaitDistinct(r, 64) {
		key, _, _ := strings.Cut(a.text, "/")
		r.equal(queueOf[key], a.Queue.QueueId, "queue of "+a.text)
		r.equal(key, a.GetShardingKey(), "sharding key of "+a.text)
	}
}

// keyOrder sends by several goroutines, each with keys of its own, and checks
// that the consumer sees each key in the order of its sends.
func keyOrder(r *rig) {
	const senders, keys, each = 4, 4, 40
	p := r.producer(producer.WithQueueSelector(producer.NewHashQueueSelector()))
	topic := r.topic(4)
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in), consumer.WithConsumerOrder(true))
	errs := make(chan error, senders)
	for sender := range senders {
		go func() {
			for i := range keys * each {
				key := fmt.Sprintf("%d.%d", sender, i%keys)
				m := message(topic, "TagA", key+"/"+strconv.Itoa(i/keys)).WithShardingKey(key)
				if _, err := p.SendSync(context.Background(), m); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	r.reach("wait for the senders")
	for range senders {
		r.must(<-errs, "send")
	}
	in.awaitDistinct(r, senders*keys*each)
	next := map[string]int{}
	for _, text := range in.texts() {
		key, n, _ := strings.Cut(text, "/")
		r.equal(strconv.Itoa(next[key]), n, "next of key "+key)
		next[key]++
	}
}

// autoCreate wants the default: this client asks for four queues whatever it is told.
func autoCreate(r *rig) {
	p := r.producer()
	topic := r.unique("auto")
	texts := r.sendAll(p, topic, "m", 8)
	r.queues(topic, 4)
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in))
	in.awaitTexts(r, texts)
}
