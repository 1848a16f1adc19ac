package main

import (
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
)

// positions has where consumers begin and where they go on.
func positions(s *suite) {
	s.add("start-first", startFirst)
	s.add("start-last", startLast)
	s.add("start-timestamp", startTimestamp)
	s.add("commit", commit)
}

func startFirst(r *rig) {
	p := r.producer()
	topic := r.topic(4)
	texts := r.sendAll(p, topic, "old", 40)
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in))
	in.awaitTexts(r, texts)
	r.equal(40, in.size(), "deliveries")
}

// startLast wants what was sent after the start. The topic is young, its first
// message still in memory: a server with the classic rule hands out what was
// sent before, too, then all of it.
func startLast(r *rig) {
	p := r.producer()
	topic := r.topic(4)
	old := r.sendAll(p, topic, "old", 40)
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in), consumer.WithConsumeFromWhere(consumer.ConsumeFromLastOffset))
	// this client does not tell when it has chosen its positions: messages are sent until one comes
	var fresh []string
	r.until("a message sent after the start", func() bool {
		fresh = r.sendAll(p, topic, "new"+time.Now().Format("150405.000"), 4)
		return in.await(time.Second, func() bool { return len(in.missing(fresh)) == 0 })
	})
	more := r.sendAll(p, topic, "more", 20)
	in.awaitTexts(r, more)
	allOrNone(r, in, old)
}

func startTimestamp(r *rig) {
	p := r.producer()
	topic := r.topic(4)
	old := r.sendAll(p, topic, "old", 40)
	<-time.After(time.Until(time.Now().Truncate(time.Second).Add(2 * time.Second))) // timestamps have whole seconds
	from := time.Now().Truncate(time.Second)
	fresh := r.sendAll(p, topic, "new", 40)
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in), consumer.WithConsumeFromWhere(consumer.ConsumeFromTimestamp),
		consumer.WithConsumeTimestamp(from.UTC().Format("20060102150405"))) // this client reads it as UTC
	in.awaitTexts(r, fresh)
	allOrNone(r, in, old)
}

func allOrNone(r *rig, in *inbox, old []string) {
	in.await(500*time.Millisecond, func() bool { return len(in.missing(old)) == 0 })
	came := len(old) - len(in.missing(old))
	r.note("%d of %d old ones", came, len(old))
	r.check(came == 0 || came == len(old), "%d of %d older messages came: all or none must", came, len(old))
	r.equal(0, in.repeats(), "repeats")
}

func commit(r *rig) {
	p := r.producer()
	topic := r.topic(4)
	group := r.unique("cg")
	r.sendAll(p, topic, "m", 40)
	in := newInbox()
	c := r.push(group, topic, all, into(in))
	in.awaitDistinct(r, 40)
	r.check(in.staysAt(40, time.Second), "messages came twice")
	r.must(c.Shutdown(), "shut down")
	again := newInbox()
	r.push(group, topic, all, into(again))
	more := r.sendAll(p, topic, "more", 8)
	again.awaitTexts(r, more)
	r.equal(8, again.size(), "deliveries after the commit")
}
