package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

// Group is a consumer group and what each broker says of it.
type Group struct {
	Name    string        `json:"group"`
	System  bool          `json:"system,omitempty"` // of servers and tools
	Brokers []GroupConfig `json:"brokers"`
}

// GroupConfig is the configuration of a group on a broker.
type GroupConfig struct {
	Broker          string `json:"broker"`
	ConsumeEnable   bool   `json:"consume_enable"`
	FromMinEnable   bool   `json:"from_min_enable"` // a new group may begin with the oldest messages
	BroadcastEnable bool   `json:"broadcast_enable"`
	Orderly         bool   `json:"orderly"`
	RetryQueues     int32  `json:"retry_queues"`
	RetryMaxTimes   int32  `json:"retry_max_times"` // then a message goes to the dead letters
	NotifyChanges   bool   `json:"notify_changes"`  // members are told when others come and go
	TimeoutMinutes  int32  `json:"consume_timeout_minutes"`
	all             protocol.SubscriptionGroupConfig
}

func fromGroupConfig(broker string, g protocol.SubscriptionGroupConfig) GroupConfig {
	return GroupConfig{
		Broker: broker, ConsumeEnable: g.ConsumeEnable, FromMinEnable: g.ConsumeFromMinEnable, BroadcastEnable: g.ConsumeBroadcastEnable,
		Orderly: g.ConsumeMessageOrderly, RetryQueues: g.RetryQueueNums, RetryMaxTimes: g.RetryMaxTimes,
		NotifyChanges: g.NotifyConsumerIdsChangedEnable, TimeoutMinutes: g.ConsumeTimeoutMinute, all: g,
	}
}

// DefaultGroup is the configuration of a group that nobody has configured.
func DefaultGroup() GroupConfig { return fromGroupConfig("", protocol.NewSubscriptionGroupConfig("")) }

// Groups lists the consumer groups.
func (c *Client) Groups(ctx context.Context) ([]Group, error) {
	brokers, err := c.Brokers(ctx)
	if err != nil {
		return nil, err
	}
	byName := map[string]*Group{}
	for _, b := range brokers {
		var w protocol.SubscriptionGroupWrapper
		h := &protocol.GetAllSubscriptionGroupRequest{}
		if err := c.callInto(ctx, b.Addr, protocol.ReqGetAllSubscriptiongroupConfig, h, &w); err != nil {
			return nil, err
		}
		for name, config := range w.SubscriptionGroupTable {
			g := byName[name]
			if g == nil {
				g = &Group{Name: name, System: message.IsSystemGroup(name) || message.IsPredefinedGroup(name)}
				byName[name] = g
			}
			g.Brokers = append(g.Brokers, fromGroupConfig(b.Name, config))
		}
	}
	groups := make([]Group, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		groups = append(groups, *byName[name])
	}
	return groups, nil
}

// Group tells about one group. It looks through the list, since a broker may create a group that is asked for by name. Errors:
// ErrNotThere.
func (c *Client) Group(ctx context.Context, name string) (Group, error) {
	groups, err := c.Groups(ctx)
	if err != nil {
		return Group{}, err
	}
	for _, g := range groups {
		if g.Name == name {
			return g, nil
		}
	}
	return Group{}, fmt.Errorf("group %s %w", name, ErrNotThere)
}

// PutGroup creates a group or changes its configuration, on the broker that config names, or on all if it names none. What GroupConfig
// does not show stays as it was in the configuration that config was made from.
func (c *Client) PutGroup(ctx context.Context, name string, config GroupConfig) error {
	brokers, err := c.brokersNamed(ctx, config.Broker)
	if err != nil {
		return err
	}
	g := config.all
	g.GroupName = name
	g.ConsumeEnable, g.ConsumeFromMinEnable, g.ConsumeBroadcastEnable = config.ConsumeEnable, config.FromMinEnable, config.BroadcastEnable
	g.ConsumeMessageOrderly, g.RetryQueueNums, g.RetryMaxTimes = config.Orderly, config.RetryQueues, config.RetryMaxTimes
	g.NotifyConsumerIdsChangedEnable, g.ConsumeTimeoutMinute = config.NotifyChanges, config.TimeoutMinutes
	body := protocol.AppendJSON(nil, g)
	for _, b := range brokers {
		if _, err := c.call(ctx, b.Addr, protocol.ReqUpdateAndCreateSubscriptiongroup, noHeader{}, body); err != nil {
			return fmt.Errorf("put group %s on %s: %w", name, b.Name, err)
		}
	}
	return nil
}

// DeleteGroup deletes a group from all brokers, with its offsets if they are to be cleaned. Errors: ErrNotThere.
func (c *Client) DeleteGroup(ctx context.Context, name string, cleanOffsets bool) error {
	g, err := c.Group(ctx, name)
	if err != nil {
		return err
	}
	for _, on := range g.Brokers {
		brokers, err := c.brokersNamed(ctx, on.Broker)
		if err != nil {
			return err
		}
		h := &protocol.DeleteSubscriptionGroupRequest{GroupName: name, CleanOffset: cleanOffsets}
		if _, err := c.call(ctx, brokers[0].Addr, protocol.ReqDeleteSubscriptiongroup, h, nil); err != nil {
			return fmt.Errorf("delete group %s on %s: %w", name, on.Broker, err)
		}
	}
	return nil
}

// Membership is who consumes for a group, and how.
type Membership struct {
	Group         string         `json:"group"`
	Type          string         `json:"consume_type,omitempty"`
	Model         string         `json:"message_model,omitempty"`
	From          string         `json:"consume_from,omitempty"` // where a new group begins
	Members       []Member       `json:"members"`
	Subscriptions []Subscription `json:"subscriptions"`
}

// Member is a client that is connected.
type Member struct {
	ClientID string   `json:"client_id"`
	Addr     string   `json:"address"`
	Language string   `json:"language"`
	Version  int32    `json:"version"` // an ordinal
	Brokers  []string `json:"brokers"` // to which it is connected
}

// Subscription is what the group wants of a topic.
type Subscription struct {
	Topic      string `json:"topic"`
	Expression string `json:"expression"`
	Type       string `json:"type"`
}

// Members tells who consumes for a group. A group without members, or that does not exist, has an empty list.
func (c *Client) Members(ctx context.Context, group string) (Membership, error) {
	brokers, err := c.Brokers(ctx)
	if err != nil {
		return Membership{}, err
	}
	m := Membership{Group: group, Members: []Member{}, Subscriptions: []Subscription{}}
	members := map[string]*Member{}
	topics := map[string]Subscription{}
	for _, b := range brokers {
		var cc protocol.ConsumerConnection
		err := c.callInto(ctx, b.Addr, protocol.ReqGetConsumerConnectionList, &protocol.GetConsumerConnectionListRequest{ConsumerGroup: group}, &cc)
		if answered(err, protocol.RespConsumerNotOnline, protocol.RespSubscriptionGroupNotExist) {
			continue
		}
		if err != nil {
			return Membership{}, err
		}
		m.Type, m.Model, m.From = string(cc.ConsumeType), string(cc.MessageModel), string(cc.ConsumeFromWhere)
		for _, conn := range cc.ConnectionSet {
			if members[conn.ClientId] == nil {
				members[conn.ClientId] = &Member{ClientID: conn.ClientId, Addr: conn.ClientAddr, Language: conn.Language, Version: conn.Version}
			}
			members[conn.ClientId].Brokers = append(members[conn.ClientId].Brokers, b.Name)
		}
		for topic, s := range cc.SubscriptionTable {
			topics[topic] = Subscription{Topic: topic, Expression: s.SubString, Type: cmp.Or(s.ExpressionType, protocol.ExpressionTag)}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(members)) {
		m.Members = append(m.Members, *members[id])
	}
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		m.Subscriptions = append(m.Subscriptions, topics[topic])
	}
	return m, nil
}

// QueueProgress tells how far a group is in a queue.
type QueueProgress struct {
	Queue
	Committed int64 `json:"committed"` // offset of the next message to be consumed
	Max       int64 `json:"max"`       // offset of the next message to be stored
	Lag       int64 `json:"lag"`
	InFlight  int64 `json:"in_flight"`      // given to members and not committed
	Last      int64 `json:"last,omitempty"` // when the last consumed message was stored, ms since 1970
}

// Progress tells how far a group is in all queues that it has offsets in.
func (c *Client) Progress(ctx context.Context, group string) ([]QueueProgress, error) {
	brokers, err := c.Brokers(ctx)
	if err != nil {
		return nil, err
	}
	var progress []QueueProgress
	for _, b := range brokers {
		var stats protocol.ConsumeStats
		err := c.callInto(ctx, b.Addr, protocol.ReqGetConsumeStats, &protocol.GetConsumeStatsRequest{ConsumerGroup: group}, &stats)
		if answered(err, protocol.RespSubscriptionGroupNotExist, protocol.RespTopicNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for q, o := range stats.OffsetTable {
			progress = append(progress, QueueProgress{
				Queue:     Queue{Topic: q.Topic, Broker: cmp.Or(q.BrokerName, b.Name), ID: q.QueueId, addr: b.Addr},
				Committed: o.ConsumerOffset, Max: o.BrokerOffset, Lag: o.BrokerOffset - o.ConsumerOffset,
				InFlight: max(0, o.PullOffset-o.ConsumerOffset), Last: o.LastTimestamp,
			})
		}
	}
	slices.SortFunc(progress, func(a, b QueueProgress) int {
		return cmp.Or(compareRetry(a.Topic, b.Topic), compareQueues(a.Queue, b.Queue))
	})
	return progress, nil
}

// compareRetry puts retry topics behind the others.
func compareRetry(a, b string) int {
	retry := func(topic string) int {
		if strings.HasPrefix(topic, message.RetryPrefix) {
			return 1
		}
		return 0
	}
	return retry(a) - retry(b)
}
