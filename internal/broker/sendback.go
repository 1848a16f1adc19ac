package broker

import (
	"context"
	"math/rand/v2"
	"strconv"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/message"
)

// SendBackRequest says that a group could not consume a message.
type SendBackRequest struct {
	Group    string
	Position message.Position
	// DelayLevel says when to try again: negative: never; 0: by the number of attempts.
	DelayLevel int32
	// MaxReconsume overrides the group's limit; negative: it does not.
	MaxReconsume int32
	Client       *Client // who sends it back, as far as known
	From         string  // its address
}

// SendBack puts a copy of a message into the group's retry topic, after a delay, or
// into its dead-letter topic when it has been tried often enough.
func (b *Broker) SendBack(ctx context.Context, r *SendBackRequest) error {
	conf := b.conf.Load()
	if err := b.EnsureGroups(ctx, []string{r.Group}); err != nil {
		return err
	}
	g, ok := b.Group(r.Group)
	if !ok {
		return refuse(GroupNotFound, "subscription group not exist, %s", r.Group)
	}
	if conf.Permission&permWrite == 0 {
		return refuse(NoPermission, "the broker[%s] sending message is forbidden", conf.Name)
	}
	if g.RetryQueues <= 0 {
		return nil
	}
	if _, err := b.ensureRetry(ctx, r.Group, message.RetryTopic(r.Group)); err != nil {
		return err
	}
	retry, _ := b.Topic(message.RetryTopic(r.Group))
	if retry.Perm&permWrite == 0 {
		return refuse(NoPermission, "the topic[%s] sending message is forbidden", retry.Name)
	}
	_, rec, err := b.recordAt(r.Position)
	if err != nil {
		return refuse(Internal, "look message by offset failed, %d", r.Position)
	}
	limit := g.RetryMaxTimes
	if r.MaxReconsume >= 0 {
		limit = r.MaxReconsume
	}
	if rec.ReconsumeTimes >= limit || r.DelayLevel < 0 {
		b.Stats.DeadLetters.Add(1)
		return b.sendToDLQ(ctx, r, &rec)
	}
	level := r.DelayLevel
	if level == 0 {
		level = 3 + rec.ReconsumeTimes
	}
	last := ""
	if rec.ReconsumeTimes+1 >= limit {
		last = "true"
	}
	b.Stats.SendBacks.Add(1)
	send := b.copyOf(&rec, message.RetryTopic(r.Group))
	send.QueueID = rand.Int32N(max(min(g.RetryQueues, retry.ReadQueues, retry.WriteQueues), 1)) // one that is consumed (C067)
	send.Properties = retryProperties(r, &rec, level)
	send.Properties = message.AppendProperty(send.Properties, message.PropertyLastAttempt, last)
	return b.sendInternal(ctx, send)
}

func (b *Broker) sendToDLQ(ctx context.Context, r *SendBackRequest, rec *message.Record) error {
	dlq := message.DLQTopic(r.Group)
	if err := b.ensureTopic(ctx, entry.Topic{Name: dlq, ReadQueues: 1, WriteQueues: 1, Perm: permReadWrite}); err != nil {
		return err
	}
	send := b.copyOf(rec, dlq)
	send.arrived = true // whatever delay the message had once
	letter := deadLetter{reason: maxAttempts, attempts: rec.ReconsumeTimes + 1, client: r.clientName(), at: b.now()}
	if r.DelayLevel < 0 {
		letter.reason = givenUp
	}
	send.Properties = letter.append(retryProperties(r, rec, 0), 0)
	return b.sendInternal(ctx, send)
}

func (r *SendBackRequest) clientName() string {
	if r.Client == nil {
		return r.From
	}
	return r.Client.ID + "@" + r.From
}

// Why a message is a dead letter (property DLQ_REASON).
const (
	maxAttempts = "MAX_ATTEMPTS" // it was consumed in vain as often as the group tries
	givenUp     = "GIVEN_UP"     // its consumer asked for it
)

// deadLetter is what a dead letter tells of itself beside what it always was.
type deadLetter struct {
	reason   string
	attempts int32
	client   string
	at       int64 // ms
}

// append adds the properties to those that begin at dst[start]. Where there is no room for them, the message goes without.
func (d *deadLetter) append(dst []byte, start int) []byte {
	before := len(dst)
	for _, p := range []struct{ name, value string }{
		{message.PropertyDLQReason, d.reason}, {message.PropertyDLQTime, strconv.FormatInt(d.at, 10)},
		{message.PropertyDLQClient, d.client}, {message.PropertyDLQAttempts, strconv.Itoa(int(d.attempts))},
	} {
		dst = message.AppendPropertyAt(dst, start, p.name, p.value)
	}
	if len(dst)-start > message.MaxProperties-ownRoom {
		return dst[:before]
	}
	return dst
}

// ownRoom is more than the broker's own properties need.
const ownRoom = 1 << 10

// copyOf is a message like rec for another topic, tried once more often.
func (b *Broker) copyOf(rec *message.Record, topic string) *SendRequest {
	return &SendRequest{
		Topic: []byte(topic), SysFlag: rec.SysFlag, Flag: rec.Flag, BornTime: rec.BornTime, BornHost: rec.BornHost,
		StoreHost: rec.StoreHost, Reconsumed: rec.ReconsumeTimes + 1, MaxReconsume: -1, Body: rec.Body, internal: true,
	}
}

// retryProperties are those of rec with the topic and the id of the first attempt, and the delay level.
func retryProperties(r *SendBackRequest, rec *message.Record, level int32) []byte {
	topic, id := string(rec.Topic), string(message.AppendOffsetID(nil, rec.StoreHost, rec.Position))
	if t, ok := message.Property(rec.Properties, message.PropertyRetryTopic); ok {
		topic = string(t)
	}
	if o, ok := message.Property(rec.Properties, message.PropertyOriginMessageID); ok {
		id = string(o)
	}
	props := append([]byte(nil), rec.Properties...)
	for _, p := range []struct{ name, value string }{
		{message.PropertyRealTopic, ""}, {message.PropertyRealQueueID, ""}, {message.PropertyTimerOutMs, ""},
		{message.PropertyRetryTopic, topic}, {message.PropertyOriginMessageID, id}, {message.PropertyWait, "false"},
		{message.PropertyLastAttempt, ""},
		{message.PropertyDelayLevel, strconv.Itoa(int(level))},
	} {
		props = message.AppendProperty(message.AppendWithout(nil, props, p.name), p.name, p.value)
	}
	return props
}

// sendInternal stores a message that the broker itself sends, and waits for it.
func (b *Broker) sendInternal(ctx context.Context, r *SendRequest) error {
	_, _, err := b.ColdSend(ctx, r)
	return err
}
