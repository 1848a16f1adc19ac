package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// transactions has transactional messages. The server knows the client as a
// producer from its second heartbeat on, up to 30 seconds late.
func transactions(s *suite) {
	s.addFor("txn", shared, 150*time.Second, decisions)
	s.addFor("txn-restart", restarting, 150*time.Second, transactionsRestart)
}

// deciders says what becomes of a transaction by the text of its message:
// commit-…, rollback-…, late-commit-…, late-rollback-….
type deciders struct {
	mu     sync.Mutex
	checks map[string]int
}

// ExecuteLocalTransaction implements primitive.TransactionListener.
func (d *deciders) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	if strings.HasPrefix(string(m.Body), "late-") {
		return primitive.UnkonwnState // their spelling
	}
	return outcomeOf(string(m.Body))
}

// CheckLocalTransaction implements primitive.TransactionListener.
func (d *deciders) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.checks[string(m.Body)]++
	return outcomeOf(string(m.Body))
}

func outcomeOf(text string) primitive.LocalTransactionState {
	if strings.Contains(text, "commit-") {
		return primitive.CommitMessageState
	}
	return primitive.RollbackMessageState
}

func (r *rig) transactionProducer(d *deciders) rocketmq.TransactionProducer {
	p, err := rocketmq.NewTransactionProducer(d,
		producer.WithNsResolver(r.resolver()), producer.WithGroupName(r.unique("pg")), producer.WithInstanceName(r.unique("i")),
		producer.WithSendMsgTimeout(10*time.Second), producer.WithRetry(2))
	r.must(err, "new transaction producer")
	r.must(p.Start(), "start transaction producer")
	r.onEnd(func() { _ = p.Shutdown() })
	return p
}

// sendDeals sends transactions of each kind and gives the texts of those that are to be committed.
func (r *rig) sendDeals(p rocketmq.TransactionProducer, topic string, n int) (wanted []string) {
	for i := range n {
		for _, kind := range []string{"commit-", "rollback-", "late-commit-", "late-rollback-"} {
			text := fmt.Sprint(kind, i)
			result, err := p.SendMessageInTransaction(context.Background(), message(topic, "TagA", text))
			r.must(err, "send "+text)
			r.equal(primitive.SendOK, result.Status, "status of "+text)
			if strings.HasSuffix(kind, "commit-") {
				wanted = append(wanted, text)
			}
		}
	}
	return wanted
}

// exactly waits for these texts and checks that nothing else comes.
func (in *inbox) exactly(r *rig, wanted []string) {
	in.awaitTexts(r, wanted)
	r.check(in.staysAt(len(wanted), 3*time.Second), "more came than was committed: %q", in.texts())
	got := in.texts()
	slices.Sort(got)
	slices.Sort(wanted)
	r.equal(wanted, got, "messages")
}

func decisions(r *rig) {
	d := &deciders{checks: map[string]int{}}
	p := r.transactionProducer(d)
	topic := r.topic(4)
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in))
	in.exactly(r, r.sendDeals(p, topic, 5))
	for _, a := range in.all() {
		r.equal("TagA", a.GetTags(), "tag of "+a.text)
		r.equal("key-"+a.text, a.GetKeys(), "keys of "+a.text)
		r.equal(topic, a.Topic, "topic of "+a.text)
	}
	r.until("ten checks", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.checks) == 10
	})
	for text := range d.checks {
		r.check(strings.HasPrefix(text, "late-"), "%s was checked", text)
	}
}

func transactionsRestart(r *rig) {
	p := r.transactionProducer(&deciders{checks: map[string]int{}})
	topic := r.topic(4)
	wanted := r.sendDeals(p, topic, 5)
	r.reach("restart")
	r.restartServer("kill")
	in := newInbox() // after the restart: it sees what is stored
	r.push(r.unique("cg"), topic, all, into(in))
	in.exactly(r, wanted)
}
