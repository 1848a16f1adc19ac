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
	Client       *Client
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
	b.Stats.SendBacks.Add(1)
	send := b.copyOf(&rec, message.RetryTopic(r.Group))
	send.QueueID = rand.Int32N(max(min(g.RetryQueues, retry.ReadQueues, retry.WriteQueues), 1)) // one that is consumed (C067)
	send.Properties = retryProperties(r, &rec, level)
	return b.sendInternal(ctx, send)
}

func (b *Broker) sendToDLQ(ctx context.Context, r *SendBackRequest, rec *message.Record) error {
	dlq := message.DLQTopic(r.Group)
	if err := b.ensureTopic(ctx, entry.Topic{Name: dlq, ReadQueues: 1, WriteQueues: 1, Perm: permReadWrite}); err != nil {
		return err
	}
	send := b.copyOf(rec, dlq)
	send.arrived = true // whatever delay the message had once
	send.Properties = retryProperties(r, rec, 0)
	return b.sendInternal(ctx, send)
}

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
