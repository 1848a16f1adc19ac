package broker

import (
	"context"
	"slices"
	"strings"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/message"
)

// Group finds a group's configuration.
func (b *Broker) Group(name string) (entry.Group, bool) {
	b.shard.RLock()
	defer b.shard.RUnlock()
	g := b.groups.Get([]byte(name))
	if g == nil {
		return entry.Group{}, false
	}
	return g.Group, true
}

// Groups lists all groups by name, with the table's version (changes, ms of the last one).
func (b *Broker) Groups() (list []entry.Group, counter, changed int64) {
	b.shard.RLock()
	defer b.shard.RUnlock()
	for name := range b.groups.Names() {
		list = append(list, b.groups.Get([]byte(name)).Group)
	}
	slices.SortFunc(list, func(x, y entry.Group) int { return strings.Compare(x.Name, y.Name) })
	v := b.groups.Version()
	return list, v.Counter, v.Time
}

func (p *Pass) mayCreateGroup(name string) bool { return mayCreateGroup(p.conf, name) }

func mayCreateGroup(c *Config, name string) bool {
	return (c.AutoCreateGroups || message.IsSystemGroup(name)) && message.ValidGroup(name) == nil
}

// EnsureGroups makes groups, as far as they are missing and may be made, and their
// retry topics.
func (b *Broker) EnsureGroups(ctx context.Context, names []string) error {
	if b.haveGroups(names) { // as a rule
		return nil
	}
	c := b.conf.Load()
	var commands []entry.Command
	b.changing.Lock()
	defer b.changing.Unlock()
	for _, name := range names {
		g, ok := b.Group(name)
		if !ok {
			if err := message.ValidGroup(name); err != nil {
				return &Error{InvalidParameter, err.Error()}
			}
			if !mayCreateGroup(c, name) {
				return refuse(GroupNotFound, "subscription group [%s] does not exist, apply first please!", name)
			}
			g = entry.DefaultGroup(name)
			commands = append(commands, &entry.PutGroup{Group: g})
		}
		retry := message.RetryTopic(name)
		if _, ok := b.Topic(retry); !ok && g.RetryQueues > 0 {
			commands = append(commands, &entry.PutTopic{Topic: entry.Topic{Name: retry, ReadQueues: g.RetryQueues, WriteQueues: g.RetryQueues, Perm: permReadWrite}})
		}
	}
	if len(commands) == 0 {
		return nil
	}
	return b.do(ctx, commands...)
}

// haveGroups says whether groups are there, with their retry topics.
func (b *Broker) haveGroups(names []string) bool {
	b.shard.RLock()
	defer b.shard.RUnlock()
	for _, name := range names {
		g := b.groups.Get([]byte(name))
		if g == nil || g.RetryQueues > 0 && b.topics.Get([]byte(message.RetryTopic(name))) == nil {
			return false
		}
	}
	return true
}

// PutGroup creates or changes a group by order of actor.
func (b *Broker) PutGroup(ctx context.Context, g entry.Group, actor string) error {
	if err := message.ValidGroup(g.Name); err != nil {
		return &Error{InvalidParameter, err.Error()}
	}
	if g.RetryQueues > maxQueues || g.RetryQueues < 0 {
		return refuse(InvalidParameter, "group %s: %d retry queues, 0 to %d are possible", g.Name, g.RetryQueues, maxQueues)
	}
	b.changing.Lock()
	defer b.changing.Unlock()
	if old, ok := b.Group(g.Name); ok && old.Equal(&g) {
		return nil
	}
	commands := []entry.Command{&entry.PutGroup{Group: g, Actor: actor}}
	retry, ok := b.Topic(message.RetryTopic(g.Name)) // grows with the group (C067)
	if grow := ok && retry.WriteQueues < g.RetryQueues; grow {
		retry.ReadQueues, retry.WriteQueues = max(retry.ReadQueues, g.RetryQueues), g.RetryQueues
		commands = append(commands, &entry.PutTopic{Topic: retry, Actor: actor})
	}
	return b.do(ctx, commands...)
}

// DeleteGroup removes a group by order of actor, and its offsets if asked to.
func (b *Broker) DeleteGroup(ctx context.Context, name string, cleanOffsets bool, actor string) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	return b.do(ctx, &entry.DeleteGroup{Name: name, CleanOffsets: cleanOffsets, Actor: actor})
}
