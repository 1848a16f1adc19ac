package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/internal/view/txn"
	"github.com/metaqio/metaq/message"
)

// isHalf says whether a message is to wait for its producer's decision. Like in RocketMQ, one that a consumer sends to
// be consumed again, with the properties that it had, is not.
func (p *Pass) isHalf(r *SendRequest, info *scanned) bool {
	if r.internal {
		return r.resumed
	}
	return info.half && r.dead == "" && (r.Reconsumed == 0 || info.delay == 0)
}

// sendHalf stores a half message: out of sight until its producer decides. A delay that it asks for begins then; what is
// wrong with it is told now.
func (p *Pass) sendHalf(r *SendRequest, d *destination, queueID int32, info *scanned) (Sent, error) {
	if p.conf.RejectTransactions && !r.internal {
		return Sent{}, refuse(NoPermission, "the broker[%s] sending transaction message is forbidden (rejectTransactionMessage, reject-transactions)", p.conf.Name)
	}
	if !info.group {
		return Sent{}, refuse(MessageIllegal, "the half message does not name its producer group (PGROUP), so nobody could decide it")
	}
	if info.timed() {
		if _, err := p.parkingOf(r, info); err != nil {
			return Sent{}, err
		}
	}
	in := p.find([]byte(message.TopicHalf))
	if in == nil {
		return Sent{}, refuse(Internal, "topic %s for half messages is missing", message.TopicHalf)
	}
	return p.add(r, d, queueID, info, parking{in: in, half: true})
}

// EndRequest is what a producer says became of its transaction.
type EndRequest struct {
	Half     message.Position    // of the half message
	Offset   message.QueueOffset // of it, in the queue of half messages
	Group    string              // of producers
	Decision entry.Decision      // Commit or Rollback
	Answer   bool                // to a check
	Actor    string              // who says so
}

// EndTransaction puts the end of a transaction into the pass's batch, with the message if it is committed: it is decided
// once the batch is done. put is false when it had been decided in the same way before, and nothing is left to do.
// ErrCold: the half message is not in memory, or is being decided. See [Broker.EndTransaction].
func (p *Pass) EndTransaction(r *EndRequest) (put bool, err error) {
	if p.term == 0 {
		return false, errFollower
	}
	o, open, err := p.b.undecided(r)
	if err != nil || !open {
		return false, err
	}
	if p.b.deciding.take(r.Half) != nil {
		return false, ErrCold // whoever decides it has to be waited for
	}
	e, err := p.endingOf(r, &o)
	if err == nil {
		err = p.put(e)
	}
	if err != nil {
		p.b.deciding.free(r.Half)
	}
	return err == nil, err
}

// endingOf finds what becomes of a transaction, in memory.
func (p *Pass) endingOf(r *EndRequest, o *txn.Open) (e ending, err error) {
	e = r.ending()
	if size := len(p.batch.Records) + len(p.batch.Commands); size > 0 && size+int(o.Size)+recordRoom > p.b.shard.MaxBatch() {
		return e, ErrCold // it gets a batch of its own
	}
	if r.Decision != entry.Commit {
		return e, nil
	}
	if p.scratch, err = p.b.appendRecords(p.scratch[:0], []queue.Entry{{Position: o.Position, Size: o.Size}}, true); err != nil {
		return e, err
	}
	var rec message.Record
	if _, err := rec.Parse(p.scratch); err != nil {
		return e, fmt.Errorf("half message at %d: %w", o.Position, err)
	}
	e.message = committedCopy(&rec, o)
	return e, nil
}

// EndTransaction is [Pass.EndTransaction] on a goroutine that may block. It returns when the transaction is decided.
func (b *Broker) EndTransaction(ctx context.Context, r *EndRequest) error {
	return b.decide(ctx, r.Half, func() (e ending, do bool, err error) {
		b.shard.RLock()
		o, open, err := b.undecided(r)
		b.shard.RUnlock()
		if err != nil || !open {
			return e, false, err
		}
		e = r.ending()
		if r.Decision == entry.Commit {
			rec, err := b.record(queue.Entry{Position: o.Position, Size: o.Size})
			if err != nil {
				return e, false, fmt.Errorf("half message at %d: %w", o.Position, err)
			}
			e.message = committedCopy(&rec, &o)
		}
		return e, true, nil
	})
}

func (r *EndRequest) ending() ending {
	return ending{command: entry.EndTransaction{Half: r.Half, Decision: r.Decision, Answer: r.Answer, Actor: r.Actor}}
}

// undecided finds the open transaction that a decision is about. It is not open, without an error, when it was decided in
// the same way before. REQUIRES: the state lock.
func (b *Broker) undecided(r *EndRequest) (o txn.Open, open bool, err error) {
	o, open = b.txns.Get(r.Half)
	switch {
	case !open:
		return o, false, b.decided(r)
	case o.Group != r.Group:
		return o, false, refuse(NoTransaction, "The producer group wrong: the half message at %d belongs to %q, not to %q", r.Half, o.Group, r.Group)
	case o.Offset != r.Offset:
		return o, false, offsetWrong(r, o.Offset)
	case !r.Answer && o.Immunity != txn.NoImmunity && b.now() > o.Stored+o.Immunity:
		return o, false, refuse(IllegalOperation, "the half message at %d may be decided by the answer to a check only: it is older than the %d s that it names (CHECK_IMMUNITY_TIME_IN_SECONDS)",
			r.Half, o.Immunity/1000)
	}
	return o, true, nil
}

var errFollower = &Error{NotLeading, "this node does not lead the shard, so it cannot end transactions"}

// decided says what a decision is worth that comes when the transaction is not open any more: nil when it is the one that
// was taken. REQUIRES: the state lock.
func (b *Broker) decided(r *EndRequest) error {
	e, ok := b.txns.Ended(r.Half)
	switch {
	case !ok || e.Decision == entry.Resume:
		return refuse(NoTransaction, "Find prepared transaction message failed: no transaction is open at %d, and none ended there lately", r.Half)
	case e.Offset != r.Offset:
		return offsetWrong(r, e.Offset)
	case e.Decision == r.Decision:
		return nil
	}
	text := fmt.Sprintf("the transaction at %d was %v at %s, and the first decision counts", r.Half, e.Decision, time.UnixMilli(e.Time).UTC().Format(time.RFC3339))
	if e.Decision == entry.GiveUp {
		text += "; its message lies in " + message.TopicTransactionStale + ", and RESUME_CHECK_HALF_MESSAGE takes it back"
	}
	return &Error{IllegalOperation, text}
}

func offsetWrong(r *EndRequest, offset message.QueueOffset) error {
	return refuse(NoTransaction, "The transaction state table offset wrong: that of the half message at %d is %d, not %d", r.Half, offset, r.Offset)
}

// committedCopy is a half message as its consumers are to get it: as its producer sent it, with the half message's position.
func committedCopy(rec *message.Record, o *txn.Open) *SendRequest {
	r := released(rec, withChecks(rec.Properties, o.Checks))
	r.prepared = o.Position
	return r
}

// released is the message in a half message, for the place that it was sent to.
func released(rec *message.Record, props []byte) *SendRequest {
	topic, _ := message.Property(rec.Properties, message.PropertyRealTopic)
	id, _ := message.Property(rec.Properties, message.PropertyRealQueueID)
	queueID, _ := strconv.ParseInt(string(id), 10, 32)
	r := likeRecord(rec, string(topic), int32(queueID))
	r.Properties = message.AppendWithout(nil, message.AppendWithout(nil, props, message.PropertyRealTopic), message.PropertyRealQueueID)
	return r
}

// likeRecord is a message like a stored one.
func likeRecord(rec *message.Record, topic string, queueID int32) *SendRequest {
	return &SendRequest{
		Topic: []byte(topic), QueueID: queueID, SysFlag: rec.SysFlag, Flag: rec.Flag, BornTime: rec.BornTime, BornHost: rec.BornHost,
		StoreHost: rec.StoreHost, Reconsumed: rec.ReconsumeTimes, MaxReconsume: -1, Body: rec.Body, internal: true,
	}
}

// withChecks says in the properties of a half message how often its producer was asked, if it was.
func withChecks(props []byte, checks int32) []byte {
	if checks == 0 {
		return props
	}
	out := message.AppendWithout(nil, props, message.PropertyTransactionChecks)
	return message.AppendProperty(out, message.PropertyTransactionChecks, strconv.Itoa(int(checks)))
}

// notMade turns the ErrCold of a message whose topic would have to be made into what a client is told.
func notMade(err error, topic []byte) error {
	if errors.Is(err, ErrCold) {
		return refuse(TopicNotFound, "topic[%s] not exist, it was deleted since the half message was sent", topic)
	}
	return err
}
