package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

// Topic is a topic and what each broker says of it.
type Topic struct {
	Name    string        `json:"topic"`
	System  bool          `json:"system,omitempty"` // made by the servers, for themselves
	Brokers []TopicConfig `json:"brokers"`          // empty when no broker that is there has it
}

// TopicConfig is the configuration of a topic on a broker.
type TopicConfig struct {
	Broker      string            `json:"broker"`
	ReadQueues  int32             `json:"read_queues"`
	WriteQueues int32             `json:"write_queues"`
	Perm        int32             `json:"perm"` // PermRead, PermWrite
	Order       bool              `json:"order,omitempty"`
	MultiTag    bool              `json:"multi_tag,omitempty"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	sysFlag     int32
}

func fromTopicConfig(broker string, t *protocol.TopicConfig) TopicConfig {
	return TopicConfig{
		Broker: broker, ReadQueues: t.ReadQueueNums, WriteQueues: t.WriteQueueNums, Perm: t.Perm, Order: t.Order,
		MultiTag: t.TopicFilterType == protocol.MultiTag, Attributes: t.Attributes, sysFlag: t.TopicSysFlag,
	}
}

// Topics lists all topics.
func (c *Client) Topics(ctx context.Context) ([]Topic, error) {
	brokers, err := c.Brokers(ctx)
	if err != nil {
		return nil, err
	}
	byName := map[string]*Topic{}
	system := map[string]bool{}
	topic := func(name string) *Topic {
		t := byName[name]
		if t == nil {
			t = &Topic{Name: name}
			byName[name] = t
		}
		return t
	}
	var names protocol.TopicList
	err = c.callInto(ctx, c.server, protocol.ReqGetAllTopicListFromNameserver, noHeader{}, &names)
	if err != nil && !answered(err, protocol.RespRequestCodeNotSupported) {
		return nil, err
	}
	for _, name := range names.TopicList {
		topic(name)
	}
	for _, b := range brokers {
		// Topics of these names mark where a broker is; that of replies belongs to the cluster.
		system[b.Name], system[b.Cluster], system[message.ReplyTopic(b.Cluster)] = true, true, true
		var w protocol.TopicConfigWrapper
		if err := c.callInto(ctx, b.Addr, protocol.ReqGetAllTopicConfig, &protocol.GetAllTopicConfigRequest{}, &w); err != nil {
			return nil, err
		}
		for name, config := range w.TopicConfigTable {
			t := topic(name)
			t.Brokers = append(t.Brokers, fromTopicConfig(b.Name, &config))
		}
	}
	topics := make([]Topic, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		t := byName[name]
		t.System = message.IsSystemTopic(name) || system[name]
		topics = append(topics, *t)
	}
	return topics, nil
}

// Topic tells about one topic. Errors: ErrNotThere.
func (c *Client) Topic(ctx context.Context, name string) (Topic, error) {
	r, err := c.Route(ctx, name)
	if err != nil {
		return Topic{}, err
	}
	t := Topic{Name: name, System: message.IsSystemTopic(name)}
	for _, b := range r.Brokers {
		config, err := c.topicConfig(ctx, b.Addr, name)
		if answered(err, protocol.RespTopicNotExist) {
			continue // the route is older
		}
		if err != nil {
			return Topic{}, err
		}
		t.Brokers = append(t.Brokers, fromTopicConfig(b.Name, config))
	}
	return t, nil
}

func (c *Client) topicConfig(ctx context.Context, addr, topic string) (*protocol.TopicConfig, error) {
	var config protocol.TopicConfigAndQueueMapping
	if err := c.callInto(ctx, addr, protocol.ReqGetTopicConfig, &protocol.GetTopicConfigRequest{Topic: topic, Lo: true}, &config); err != nil {
		return nil, err
	}
	return &config.TopicConfig, nil
}

// PutTopic creates a topic or changes its configuration, on the broker that config names, or on all if it names none. Of the attributes
// only those are sent that config has; one with an empty value is removed.
func (c *Client) PutTopic(ctx context.Context, name string, config TopicConfig) error {
	brokers, err := c.brokersNamed(ctx, config.Broker)
	if err != nil {
		return err
	}
	filter := protocol.SingleTag
	if config.MultiTag {
		filter = protocol.MultiTag
	}
	h := &protocol.CreateTopicRequest{
		Topic: name, DefaultTopic: message.TopicAutoCreate, ReadQueueNums: config.ReadQueues, WriteQueueNums: config.WriteQueues,
		Perm: config.Perm, TopicFilterType: filter, TopicSysFlag: config.sysFlag, Order: config.Order,
		Attributes: attributeChanges(config.Attributes), Lo: true,
	}
	for _, b := range brokers {
		if _, err := c.call(ctx, b.Addr, protocol.ReqUpdateAndCreateTopic, h, nil); err != nil {
			return fmt.Errorf("put topic %s on %s: %w", name, b.Name, err)
		}
	}
	return nil
}

// attributeChanges writes +key=value for each attribute that is set and -key for each that is removed.
func attributeChanges(attributes map[string]string) string {
	var changes []string
	for _, k := range slices.Sorted(maps.Keys(attributes)) {
		if v := attributes[k]; v != "" {
			changes = append(changes, "+"+k+"="+v)
		} else {
			changes = append(changes, "-"+k)
		}
	}
	return strings.Join(changes, ",")
}

// brokersNamed gives the broker of a name, or all if the name is empty.
func (c *Client) brokersNamed(ctx context.Context, name string) ([]Broker, error) {
	brokers, err := c.Brokers(ctx)
	if err != nil || name == "" {
		return brokers, err
	}
	for _, b := range brokers {
		if b.Name == name {
			return []Broker{b}, nil
		}
	}
	return nil, fmt.Errorf("broker %s %w", name, ErrNotThere)
}

// DeleteTopic deletes a topic with its messages and offsets from all brokers, and from the name server. Errors: ErrNotThere.
func (c *Client) DeleteTopic(ctx context.Context, name string) error {
	r, err := c.Route(ctx, name)
	if err != nil {
		return err
	}
	for _, b := range r.Brokers {
		_, err := c.call(ctx, b.Addr, protocol.ReqDeleteTopicInBroker, &protocol.DeleteTopicRequest{Topic: name}, nil)
		if err != nil {
			return fmt.Errorf("delete topic %s on %s: %w", name, b.Name, err)
		}
	}
	_, err = c.call(ctx, c.server, protocol.ReqDeleteTopicInNamesrv, &protocol.DeleteTopicInNamesrvRequest{Topic: name}, nil)
	if answered(err, protocol.RespRequestCodeNotSupported) {
		return nil
	}
	return err
}

// QueueStats tells what a queue holds.
type QueueStats struct {
	Queue
	Min  int64 `json:"min"`            // offset of the oldest message
	Max  int64 `json:"max"`            // offset of the next message
	Last int64 `json:"last,omitempty"` // when the newest message was stored, ms since 1970; 0: never
}

// TopicStats tells what the queues of a topic hold. Errors: ErrNotThere.
func (c *Client) TopicStats(ctx context.Context, name string) ([]QueueStats, error) {
	r, err := c.Route(ctx, name)
	if err != nil {
		return nil, err
	}
	var stats []QueueStats
	for _, b := range r.Brokers {
		var t protocol.TopicStatsTable
		err := c.callInto(ctx, b.Addr, protocol.ReqGetTopicStatsInfo, &protocol.GetTopicStatsInfoRequest{Topic: name}, &t)
		if errors.Is(err, ErrNotThere) {
			continue // the route is older
		}
		if err != nil {
			return nil, err
		}
		for q, o := range t.OffsetTable {
			stats = append(stats, QueueStats{
				Queue: Queue{Topic: q.Topic, Broker: cmp.Or(q.BrokerName, b.Name), ID: q.QueueId, addr: b.Addr},
				Min:   o.MinOffset, Max: o.MaxOffset, Last: o.LastUpdateTimestamp,
			})
		}
	}
	slices.SortFunc(stats, func(a, b QueueStats) int { return compareQueues(a.Queue, b.Queue) })
	return stats, nil
}
