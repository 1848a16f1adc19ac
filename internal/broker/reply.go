package broker

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

// ReplyRequest is what a consumer answers to who sent it a request: a message that says by its properties whose answer it is.
type ReplyRequest struct {
	SendRequest
	Producer []byte // group
	UnitMode bool
}

// A PushedReply is a reply as the client is told that asked.
type PushedReply struct {
	*ReplyRequest
	Properties []byte // those of the reply and the broker's
	Time       int64  // ms
}

// Replied says what became of a reply.
type Replied struct {
	Sent
	// Batch says where the reply is stored; nil when it is not.
	Batch *shard.Batch
}

// Reply gives a reply to the client that asked for it, and stores it in its topic if Config.StoreReplies is set, whether or not the client is
// there. It returns when both is done. The error is that of giving it: a reply that the broker could not store is no failure, since it is
// where it should be. It blocks; see GoReply.
func (b *Broker) Reply(ctx context.Context, r *ReplyRequest) (Replied, error) {
	r.reply, r.Batch = true, false
	if half, _ := message.Property(r.Properties, message.PropertyHalf); string(half) == "true" {
		return Replied{}, refuse(MessageIllegal, "a reply cannot be part of a transaction (TRAN_MSG)")
	}
	stored, err := b.storeReply(&r.SendRequest)
	if errors.Is(err, ErrCold) {
		if err = b.ensureDestination(ctx, &r.SendRequest); err == nil {
			stored, err = b.storeReply(&r.SendRequest)
		}
		if errors.Is(err, ErrCold) {
			err = refuse(TopicNotFound, "topic[%s] not exist, apply first please!", r.Topic)
		}
	}
	if err != nil {
		return Replied{}, err
	}
	err = b.pushReply(ctx, r)
	if stored.done == nil {
		return stored.Replied, err
	}
	select {
	case <-stored.done:
	case <-ctx.Done(): // it may still be stored, but who waits for the answer has to know now
		return Replied{Sent: stored.Sent}, err
	}
	if batch := stored.Batch; batch.Err != nil || batch.Msgs[stored.First].Gone {
		b.log.Warn("reply not stored", "topic", string(r.Topic), "error", batch.Err)
		stored.Batch = nil
	}
	return stored.Replied, err
}

// storing is a reply on its way into the log.
type storing struct {
	Replied
	done chan struct{} // closed when it is there, or not; nil: it does not go there
}

// storeReply checks a reply like any message and lets it go to the log, if it is to be stored. ErrCold: its topic has to be made first.
func (b *Broker) storeReply(r *SendRequest) (storing, error) {
	p, batch, done := b.coldPass(), &shard.Batch{}, make(chan struct{})
	batch.Done = func(*shard.Batch) { close(done) }
	p.Begin(batch)
	sent, err := p.Send(r)
	if err != nil || !p.conf.StoreReplies || b.refusing.Load() != nil {
		batch.Reset()
	}
	if !p.End() {
		return storing{Replied: Replied{Sent: sent}}, err
	}
	return storing{Replied: Replied{Sent: sent, Batch: batch}, done: done}, nil
}

// pushReply finds the client that asked and gives it the reply.
func (b *Broker) pushReply(ctx context.Context, r *ReplyRequest) error {
	id, ok := message.Property(r.Properties, message.PropertyReplyToClient)
	if !ok {
		return refuse(ReplyFailed, "reply message properties[%s] is null", message.PropertyReplyToClient)
	}
	c := b.clients.requester(string(id))
	if c == nil {
		return refuse(ReplyFailed, "push reply message fail, channel of <%s> not found: no producer with this client id is connected to this broker", id)
	}
	conf, now := b.conf.Load(), b.now()
	pushed := &PushedReply{ReplyRequest: r, Properties: r.Properties, Time: now}
	for _, own := range [...]struct{ name, value string }{
		{message.PropertyRegion, conf.Region}, {message.PropertyTraceOn, strconv.FormatBool(conf.TraceOn)},
		{message.PropertyPushReplyTime, strconv.FormatInt(now, 10)},
	} {
		pushed.Properties = message.AppendProperty(message.AppendWithout(nil, pushed.Properties, own.name), own.name, own.value)
	}
	err := c.Peer.PushReply(ctx, pushed)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("it has not answered in time")
	}
	if err != nil {
		return refuse(ReplyFailed, "push reply message to %s fail: %v", id, err)
	}
	b.Stats.Replies.Add(1)
	return nil
}

// replyLargest is how many of the largest messages there may be among the replies that are on their way at a time.
const replyLargest = 16

// replies are those that are on their way. A client may take its time to say that it has its reply, so they have goroutines of their own:
// many, and no queue behind a few.
type replies struct {
	mu     sync.Mutex // guards the following
	n      int
	bytes  int
	closed bool
	done   sync.WaitGroup
}

// GoReply runs f, which handles a reply of so many bytes, on a goroutine of its own. The error says which limit is reached.
func (b *Broker) GoReply(size int, f func()) error {
	t, conf := &b.replies, b.conf.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch limit := replyLargest * conf.MaxMessageBytes; {
	case t.closed:
		return refuse(Unavailable, "the broker is shutting down")
	case t.n >= conf.MaxReplies:
		return refuse(Busy, "[OVERLOAD]system busy: %d replies are on their way, which is the limit (max-replies)", t.n)
	case t.n > 0 && t.bytes+size > limit:
		return refuse(Busy, "[OVERLOAD]system busy: replies of %d bytes are on their way, the limit is %d (%d × max-message-bytes)", t.bytes, limit, replyLargest)
	}
	t.n++
	t.bytes += size
	t.done.Go(func() {
		defer t.left(size)
		f()
	})
	return nil
}

func (t *replies) left(size int) {
	t.mu.Lock()
	t.n--
	t.bytes -= size
	t.mu.Unlock()
}

// close refuses further replies and waits for those on their way.
func (t *replies) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.done.Wait()
}
