package broker

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/metaqio/metaq/internal/filter"
	"github.com/metaqio/metaq/internal/view/group"
	"github.com/metaqio/metaq/message"
)

// Peer is the connection of a client, as far as the broker speaks first. Methods
// must not block, unless they say so.
type Peer interface {
	// ConsumersChanged says that the members or the subscriptions of a group changed.
	ConsumersChanged(group string)
	// CheckTransaction asks a producer what became of a transaction.
	CheckTransaction(c *TransactionCheck)
	// PushReply gives the client the reply to a request of its, and waits until it
	// says that it has it. The error is why it has not.
	PushReply(ctx context.Context, r *PushedReply) error
	// Addr is the client's address.
	Addr() netip.AddrPort
}

// Message models of a consumer group.
const (
	Clustering   = "CLUSTERING"
	Broadcasting = "BROADCASTING"
)

// Client is a connected client that has sent a heartbeat.
type Client struct {
	ID       string
	Language string
	Version  int32
	Peer     Peer

	// What follows belongs to the table.
	seen      time.Time
	consumers map[string]*Consumer
	producers map[string]struct{}
}

// Consumer is what a client said of its membership in a group. Immutable.
type Consumer struct {
	Group         string
	Type          string // CONSUME_ACTIVELY, CONSUME_PASSIVELY, CONSUME_POP
	Model         string
	From          string // CONSUME_FROM_LAST_OFFSET …
	UnitMode      bool
	Subscriptions []Subscription
}

// Subscription is what a consumer wants of a topic. Immutable.
type Subscription struct {
	Topic      string
	Type       string // TAG or another type of expression
	Expression string
	Version    int64
	// ByClass says that the client filters by itself, with a class of its own: obsolete.
	ByClass bool

	filter  filter.Filter // what Beat makes of the expression
	refused error         // why it makes nothing of it
}

// same says whether two subscriptions of a topic want the same.
func (s *Subscription) same(o *Subscription) bool {
	return s.Expression == o.Expression && s.Type == o.Type && s.ByClass == o.ByClass
}

// Of is the consumer's subscription of a topic.
func (c *Consumer) Of(topic []byte) *Subscription {
	for i := range c.Subscriptions {
		if c.Subscriptions[i].Topic == string(topic) {
			return &c.Subscriptions[i]
		}
	}
	return nil
}

// Heartbeat is what a client says every 30 seconds.
type Heartbeat struct {
	Producers []string
	Consumers []*Consumer
	// KeepSubscriptions says that the subscriptions are left out because they are the same as before (heartbeat v2).
	KeepSubscriptions bool
}

// clients is the table of connected clients.
type clients struct {
	mu        sync.RWMutex // guards the following, and the fields of Client that belong to the table
	groups    map[string]map[*Client]struct{}
	producers map[string]map[*Client]struct{}
	asking    map[string]map[*Client]struct{} // those with a producer, by client id
	all       map[*Client]struct{}
}

func newClients() *clients {
	return &clients{groups: map[string]map[*Client]struct{}{}, producers: map[string]map[*Client]struct{}{}, asking: map[string]map[*Client]struct{}{}, all: map[*Client]struct{}{}}
}

// subscription finds what a pull that brings no expression filters by: the
// subscription of the client that asks. A subscription that is older than the
// pull's says too little. If both are about tags, nothing is filtered here: the client
// does it itself. It does not do that for other expressions; what it wants is stale then.
func (t *clients) subscription(r *PullRequest, g *group.Group) (f filter.Filter, stale bool, err error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	members := t.groups[g.Name]
	if len(members) == 0 {
		return f, false, refuse(NotSubscribed, "the consumer's group info not exist, group: %s: no heartbeat of it has come yet", g.Name)
	}
	c := t.member(r, members)
	if c == nil {
		return f, false, refuse(NotSubscribed, "the consumer's subscription not exist, group: %s, topic: %s", g.Name, r.Topic)
	}
	if c.Model == Broadcasting && !g.BroadcastEnable {
		return f, false, refuse(NoPermission, "the consumer group[%s] can not consume by broadcast way", g.Name)
	}
	s := c.Of(r.Topic)
	switch {
	case s.Version < r.SubVersion:
		return f, !s.ByClass && !(filter.IsTag(s.Type) && filter.IsTag(r.ExpressionType)), nil
	case s.refused != nil:
		return f, false, s.refused
	}
	return s.filter, false, nil
}

// member finds the membership that counts for a pull: the client's own, or any one
// that subscribes the topic.
func (t *clients) member(r *PullRequest, members map[*Client]struct{}) *Consumer {
	if r.Client != nil {
		if c := r.Client.consumers[string(r.Group)]; c != nil {
			if c.Of(r.Topic) == nil {
				return nil
			}
			return c
		}
	}
	for m := range members {
		if c := m.consumers[string(r.Group)]; c.Of(r.Topic) != nil {
			return c
		}
	}
	return nil
}

// beat takes a heartbeat in and returns the groups whose members or subscriptions changed.
func (t *clients) beat(c *Client, h *Heartbeat) (changed []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.seen = time.Now()
	t.all[c] = struct{}{}
	for _, p := range h.Producers {
		if _, ok := c.producers[p]; !ok {
			put(&c.producers, p)
			link(t.producers, p, c)
			link(t.asking, c.ID, c)
		}
	}
	for _, n := range h.Consumers {
		old := c.consumers[n.Group]
		if old != nil && h.KeepSubscriptions {
			continue
		}
		if old != nil {
			n = old.newer(n)
		}
		if old == nil || !old.sameTopics(n) {
			changed = append(changed, n.Group)
		}
		if c.consumers == nil {
			c.consumers = map[string]*Consumer{}
		}
		c.consumers[n.Group] = n
		link(t.groups, n.Group, c)
	}
	return changed
}

func put(m *map[string]struct{}, k string) {
	if *m == nil {
		*m = map[string]struct{}{}
	}
	(*m)[k] = struct{}{}
}

func link(m map[string]map[*Client]struct{}, k string, c *Client) {
	if m[k] == nil {
		m[k] = map[*Client]struct{}{}
	}
	m[k][c] = struct{}{}
}

func unlink(m map[string]map[*Client]struct{}, k string, c *Client) {
	delete(m[k], c)
	if len(m[k]) == 0 {
		delete(m, k)
	}
}

// newer keeps those of the old subscriptions whose version is the higher one.
func (c *Consumer) newer(n *Consumer) *Consumer {
	for i, s := range n.Subscriptions {
		if o := c.Of([]byte(s.Topic)); o != nil && o.Version > s.Version {
			n.Subscriptions[i] = *o
		}
	}
	return n
}

func (c *Consumer) sameTopics(n *Consumer) bool {
	return len(c.Subscriptions) == len(n.Subscriptions) && !slices.ContainsFunc(n.Subscriptions, func(s Subscription) bool {
		o := c.Of([]byte(s.Topic))
		return o == nil || !o.same(&s)
	})
}

// leave takes a client out of groups, of all when none are named, and returns the consumer groups it was in.
func (t *clients) leave(c *Client, producer, consumer string, everything bool) (changed []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range c.producers {
		if everything || p == producer {
			delete(c.producers, p)
			unlink(t.producers, p, c)
		}
	}
	if len(c.producers) == 0 {
		unlink(t.asking, c.ID, c)
	}
	for g := range c.consumers {
		if everything || g == consumer {
			delete(c.consumers, g)
			unlink(t.groups, g, c)
			changed = append(changed, g)
		}
	}
	if everything {
		delete(t.all, c)
	}
	return changed
}

// requester finds the client that a reply is for: the connection with this client
// id and a producer that was heard of last; nil when there is none.
func (t *clients) requester(id string) (newest *Client) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for c := range t.asking[id] {
		if newest == nil || c.seen.After(newest.seen) {
			newest = c
		}
	}
	return newest
}

// online says whether anybody of a group is connected.
func (t *clients) online(group string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.groups[group]) > 0
}

// expired lists clients that have been silent for too long.
func (t *clients) expired(before time.Time) (out []*Client) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for c := range t.all {
		if c.seen.Before(before) {
			out = append(out, c)
		}
	}
	return out
}

// ExpireClients takes out clients whose last heartbeat came before a time. Run does
// that by itself, with ClientExpiry.
func (b *Broker) ExpireClients(before time.Time) {
	for _, c := range b.clients.expired(before) {
		b.Gone(c)
	}
}

// notify tells the members of a group that it changed; members that broadcast do not care.
func (t *clients) notify(name string) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for c := range t.groups[name] {
		if c.consumers[name].Model != Broadcasting {
			c.Peer.ConsumersChanged(name)
		}
	}
}

// Member is a member of a group as an administrator sees it.
type Member struct {
	Client   *Client
	Consumer *Consumer
}

// Members lists the connected members of a consumer group, by client id.
func (b *Broker) Members(name string) []Member {
	t := b.clients
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]Member, 0, len(t.groups[name]))
	for c := range t.groups[name] {
		out = append(out, Member{c, c.consumers[name]})
	}
	slices.SortFunc(out, func(a, b Member) int { return bytes.Compare([]byte(a.Client.ID), []byte(b.Client.ID)) })
	return out
}

// MemberIDs lists the client ids of a group, each once.
func (b *Broker) MemberIDs(name string) []string {
	var ids []string
	for _, m := range b.Members(name) {
		ids = append(ids, m.Client.ID)
	}
	return slices.Compact(ids)
}

// Producers lists the connected clients of a producer group.
func (b *Broker) Producers(name string) (out []*Client) {
	t := b.clients
	t.mu.RLock()
	defer t.mu.RUnlock()
	for c := range t.producers[name] {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *Client) int { return bytes.Compare([]byte(a.ID), []byte(b.ID)) })
	return out
}

// produces says whether a producer of a group is connected.
func (t *clients) produces(group string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.producers[group]) > 0
}

// ConsumerGroups lists the groups that have connected members.
func (b *Broker) ConsumerGroups() (out []string) {
	t := b.clients
	t.mu.RLock()
	defer t.mu.RUnlock()
	for g := range t.groups {
		out = append(out, g)
	}
	slices.Sort(out)
	return out
}

// Beat takes a heartbeat. needs lists the groups that have to be made, or whose
// retry topic has, before the answer: see EnsureGroups. REQUIRES: between Begin and End.
func (p *Pass) Beat(c *Client, h *Heartbeat) (needs []string) {
	for _, n := range h.Consumers {
		p.b.understand(n, p.b.clients.consumer(c, n.Group))
	}
	changed := p.b.clients.beat(c, h)
	for _, name := range changed {
		if g := p.b.groups.Get([]byte(name)); g == nil || g.NotifyIDsChanged {
			p.b.clients.notify(name)
		}
	}
	p.heard(c, changed)
	for _, n := range h.Consumers {
		g := p.b.groups.Get([]byte(n.Group))
		if g == nil || g.RetryQueues > 0 && p.b.topics.Get([]byte(message.RetryTopic(n.Group))) == nil {
			needs = append(needs, n.Group)
		}
	}
	return needs
}

// consumer is what a client has said of its membership in a group; nil when it has not.
func (t *clients) consumer(c *Client, group string) *Consumer {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return c.consumers[group]
}

// understand reads the expressions of a heartbeat. Conditions that the one before had
// are taken from there.
func (b *Broker) understand(n, old *Consumer) {
	for i := range n.Subscriptions {
		s := &n.Subscriptions[i]
		if s.ByClass {
			continue
		}
		if old != nil && !filter.IsTag(s.Type) {
			if o := old.Of([]byte(s.Topic)); o != nil && o.same(s) {
				s.filter, s.refused = o.filter, o.refused
				continue
			}
		}
		s.filter, s.refused = b.parse([]byte(s.Type), []byte(s.Expression))
		if e, ok := errors.AsType[*Error](s.refused); ok && e.Reason == BadExpression && !filter.IsTag(s.Type) {
			s.refused = refuse(NoFilter, "The broker's consumer filter data is not exist! %s", e.Text)
		}
	}
}

// parse reads an expression; an error is a refusal.
func (b *Broker) parse(typ, expression []byte) (filter.Filter, error) {
	f, err := b.filters.Parse(typ, expression)
	switch {
	case errors.Is(err, filter.ErrUnsupported):
		return f, refuse(Internal, "The broker does not support consumer to filter message by %s", typ)
	case err != nil:
		return f, refuse(BadExpression, "parse the consumer's subscription failed: %v", err)
	}
	return f, nil
}

// CheckExpression says whether an expression can be evaluated.
func (b *Broker) CheckExpression(typ, expression string) error {
	_, err := b.parse([]byte(typ), []byte(expression))
	return err
}

// changed tells the members of a group that it changed, unless the group does not want that.
func (b *Broker) changed(name string) {
	b.shard.RLock()
	g := b.groups.Get([]byte(name))
	b.shard.RUnlock()
	if g == nil || g.NotifyIDsChanged {
		b.clients.notify(name)
	}
}

// Unregister takes a client out of the groups it names (UNREGISTER_CLIENT).
func (b *Broker) Unregister(c *Client, producer, consumer string) {
	for _, g := range b.clients.leave(c, producer, consumer, false) {
		b.locks.release(g, c.ID)
		b.changed(g)
	}
}

// Gone says that a client's connection has ended: it is in no group any more, and its queue locks are free.
func (b *Broker) Gone(c *Client) {
	for _, g := range b.clients.leave(c, "", "", true) {
		if !slices.Contains(b.MemberIDs(g), c.ID) { // it may have a second connection
			b.locks.release(g, c.ID)
		}
		b.changed(g)
	}
}
