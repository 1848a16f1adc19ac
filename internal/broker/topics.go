package broker

import (
	"context"
	"slices"
	"strings"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/message"
)

// Topic finds a topic's configuration.
func (b *Broker) Topic(name string) (entry.Topic, bool) {
	b.shard.RLock()
	defer b.shard.RUnlock()
	t := b.topics.Get([]byte(name))
	if t == nil {
		return entry.Topic{}, false
	}
	return t.Topic, true
}

// Topics lists all topics by name, with the table's version (changes, ms of the last one).
func (b *Broker) Topics() (list []entry.Topic, counter, changed int64) {
	b.shard.RLock()
	defer b.shard.RUnlock()
	for name := range b.topics.Names() {
		list = append(list, b.topics.Get([]byte(name)).Topic)
	}
	slices.SortFunc(list, func(x, y entry.Topic) int { return strings.Compare(x.Name, y.Name) })
	v := b.topics.Version()
	return list, v.Counter, v.Time
}

// maxQueues bounds the queues of a topic.
const maxQueues = 1 << 16

// PutTopic creates or changes a topic by order of actor.
func (b *Broker) PutTopic(ctx context.Context, t entry.Topic, actor string) error {
	if err := message.ValidTopic(t.Name); err != nil {
		return &Error{InvalidParameter, err.Error()}
	}
	if message.IsSystemTopic(t.Name) || b.isOwnTopic(t.Name) {
		return refuse(InvalidParameter, "The topic[%s] is conflict with system topic.", t.Name)
	}
	if t.ReadQueues < 0 || t.WriteQueues < 0 || t.ReadQueues > maxQueues || t.WriteQueues > maxQueues {
		return refuse(InvalidParameter, "topic %s: %d read and %d write queues, 0 to %d are possible", t.Name, t.ReadQueues, t.WriteQueues, maxQueues)
	}
	if t.Perm < 0 || t.Perm > 7 {
		return refuse(InvalidParameter, "topic %s: permission %d, 0 to 7 are possible", t.Name, t.Perm)
	}
	b.changing.Lock()
	defer b.changing.Unlock()
	old, ok := b.Topic(t.Name)
	attributes, err := changeAttributes(old.Attributes, t.Attributes, !ok)
	if err != nil {
		return err
	}
	t.Attributes = attributes
	if ok && old.Equal(&t) {
		return nil
	}
	return b.do(ctx, &entry.PutTopic{Topic: t, Actor: actor})
}

// isOwnTopic says whether the broker itself depends on the topic as it is.
func (b *Broker) isOwnTopic(name string) bool {
	c := b.conf.Load()
	return name == c.Cluster || name == c.Name || name == message.ReplyTopic(c.Cluster)
}

// DeleteTopic removes a topic, its queues, its offsets and the pop retry topics of its groups.
func (b *Broker) DeleteTopic(ctx context.Context, name, actor string) error {
	if err := message.ValidTopic(name); err != nil {
		return &Error{InvalidParameter, err.Error()}
	}
	if message.IsSystemTopic(name) || b.isOwnTopic(name) {
		return refuse(InvalidParameter, "The topic[%s] is conflict with system topic.", name)
	}
	b.changing.Lock()
	defer b.changing.Unlock()
	commands := []entry.Command{&entry.DeleteTopic{Name: name, Actor: actor}}
	b.shard.RLock()
	for _, group := range b.offsets.GroupsOf(name) {
		for _, retry := range []string{message.PopRetryTopic(group, name), message.PopRetryTopicV2(group, name)} {
			if b.topics.Get([]byte(retry)) != nil {
				commands = append(commands, &entry.DeleteTopic{Name: retry, Actor: actor})
			}
		}
	}
	b.shard.RUnlock()
	return b.do(ctx, commands...)
}

// ensureDestination makes the topic that a message is sent to, if it may be made.
func (b *Broker) ensureDestination(ctx context.Context, r *SendRequest) error {
	name := string(r.Topic)
	if group, ok := message.GroupOfRetryTopic(name); ok {
		g, err := b.ensureRetry(ctx, group, name)
		if err != nil || b.isDead(r, &g) == "" {
			return err
		}
		return b.ensureTopic(ctx, entry.Topic{Name: message.DLQTopic(group), ReadQueues: 1, WriteQueues: 1, Perm: permReadWrite})
	}
	if _, ok := b.Topic(name); ok {
		return nil
	}
	template, ok := b.Topic(string(r.DefaultTopic))
	inherits := template.Perm&1 != 0
	if template.Name == message.TopicAutoCreate {
		inherits = b.conf.Load().AutoCreateTopics
	}
	if !ok || !inherits {
		return refuse(TopicNotFound, "topic[%s] not exist, apply first please!", name)
	}
	queues := max(min(r.DefaultQueues, template.WriteQueues), 0)
	b.log.Info("topic created by a send", "topic", name, "queues", queues, "client", r.BornHost.String())
	return b.ensureTopic(ctx, entry.Topic{
		Name: name, ReadQueues: queues, WriteQueues: queues, Perm: template.Perm &^ 1, MultiTag: template.MultiTag,
	})
}

// ensureRetry makes a group, if it may be made, and its retry topic.
func (b *Broker) ensureRetry(ctx context.Context, group, name string) (entry.Group, error) {
	if err := b.EnsureGroups(ctx, []string{group}); err != nil {
		return entry.Group{}, err
	}
	g, ok := b.Group(group)
	if !ok {
		return g, refuse(GroupNotFound, "subscription group not exist, %s: it was deleted meanwhile", group)
	}
	queues := max(g.RetryQueues, 1)
	return g, b.ensureTopic(ctx, entry.Topic{Name: name, ReadQueues: queues, WriteQueues: queues, Perm: permReadWrite})
}

// ensureTopic makes a topic unless it is there.
func (b *Broker) ensureTopic(ctx context.Context, t entry.Topic) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	if _, ok := b.Topic(t.Name); ok {
		return nil
	}
	return b.do(ctx, &entry.PutTopic{Topic: t})
}
