package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

// Bits of a permission.
const (
	PermWrite = 2
	PermRead  = 4
)

// Broker is a broker of a cluster.
type Broker struct {
	Cluster string `json:"cluster"`
	Name    string `json:"broker"`
	Addr    string `json:"address"` // host:port of its master
}

// Brokers lists the brokers that the server knows, or the server itself if it is a broker and nothing else.
func (c *Client) Brokers(ctx context.Context) ([]Broker, error) {
	c.mu.Lock()
	known := c.brokers
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	var info protocol.ClusterInfo
	err := c.callInto(ctx, c.server, protocol.ReqGetBrokerClusterInfo, noHeader{}, &info)
	switch {
	case answered(err, protocol.RespRequestCodeNotSupported):
		self, err := c.self(ctx)
		if err != nil {
			return nil, err
		}
		known = []Broker{self}
	case err != nil:
		return nil, err
	}
	for name, b := range info.BrokerAddrTable {
		if addr := master(b.BrokerAddrs); addr != "" {
			known = append(known, Broker{Cluster: b.Cluster, Name: cmp.Or(b.BrokerName, name), Addr: addr})
		}
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("no broker is registered with %s", c.server)
	}
	slices.SortFunc(known, func(a, b Broker) int { return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name)) })
	c.mu.Lock()
	c.brokers = known
	c.mu.Unlock()
	return known, nil
}

// master is the address of id 0, or of the lowest id there is.
func master(addrs map[int64]string) string {
	lowest := int64(-1)
	for id := range addrs {
		if lowest < 0 || id < lowest {
			lowest = id
		}
	}
	return addrs[lowest]
}

// self describes a server that is a broker, but no name server.
func (c *Client) self(ctx context.Context) (Broker, error) {
	config, err := c.Config(ctx, c.server)
	if err != nil {
		return Broker{}, err
	}
	return Broker{Cluster: config["brokerClusterName"], Name: config["brokerName"], Addr: c.server}, nil
}

// Route tells where a topic is.
type Route struct {
	Topic   string        `json:"topic"`
	Brokers []RouteBroker `json:"brokers"`
}

// RouteBroker is a broker that has a topic.
type RouteBroker struct {
	Broker
	ReadQueues  int32 `json:"read_queues"`
	WriteQueues int32 `json:"write_queues"`
	Perm        int32 `json:"perm"` // PermRead, PermWrite
}

// Queue is one queue of a topic.
type Queue struct {
	Topic  string `json:"topic"`
	Broker string `json:"broker"`
	ID     int32  `json:"queue"`
	addr   string
}

func compareQueues(a, b Queue) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Broker, b.Broker), cmp.Compare(a.ID, b.ID))
}

// Route asks where a topic is. Errors: ErrNotThere.
func (c *Client) Route(ctx context.Context, topic string) (Route, error) {
	var data protocol.TopicRouteData
	err := c.callInto(ctx, c.server, protocol.ReqGetRouteinfoByTopic, &protocol.GetRouteinfoRequest{Topic: []byte(topic)}, &data)
	if answered(err, protocol.RespRequestCodeNotSupported) {
		return c.ownRoute(ctx, topic)
	}
	if err != nil {
		return Route{}, err
	}
	r := Route{Topic: topic}
	for _, q := range data.QueueDatas {
		for _, b := range data.BrokerDatas {
			if addr := master(b.BrokerAddrs); b.BrokerName == q.BrokerName && addr != "" {
				r.Brokers = append(r.Brokers, RouteBroker{
					Broker:     Broker{Cluster: b.Cluster, Name: b.BrokerName, Addr: addr},
					ReadQueues: q.ReadQueueNums, WriteQueues: q.WriteQueueNums, Perm: q.Perm,
				})
			}
		}
	}
	slices.SortFunc(r.Brokers, func(a, b RouteBroker) int { return cmp.Compare(a.Name, b.Name) })
	return r, nil
}

// ownRoute is the route of a server that is a broker and nothing else.
func (c *Client) ownRoute(ctx context.Context, topic string) (Route, error) {
	brokers, err := c.Brokers(ctx)
	if err != nil {
		return Route{}, err
	}
	config, err := c.topicConfig(ctx, c.server, topic)
	if err != nil {
		return Route{}, err
	}
	return Route{Topic: topic, Brokers: []RouteBroker{{
		Broker: brokers[0], ReadQueues: config.ReadQueueNums, WriteQueues: config.WriteQueueNums, Perm: config.Perm,
	}}}, nil
}

// ReadQueues lists the queues from which the topic is consumed.
func (r Route) ReadQueues() (queues []Queue) {
	for _, b := range r.Brokers {
		if b.Perm&PermRead != 0 {
			queues = r.appendQueues(queues, b, b.ReadQueues)
		}
	}
	return queues
}

// WriteQueues lists the queues to which the topic is sent.
func (r Route) WriteQueues() (queues []Queue) {
	for _, b := range r.Brokers {
		if b.Perm&PermWrite != 0 {
			queues = r.appendQueues(queues, b, b.WriteQueues)
		}
	}
	return queues
}

func (r Route) appendQueues(dst []Queue, b RouteBroker, n int32) []Queue {
	for id := range n {
		dst = append(dst, Queue{Topic: r.Topic, Broker: b.Name, ID: id, addr: b.Addr})
	}
	return dst
}

// SendRoute is Route, and for a topic that does not exist yet the route of the template from which brokers make topics when they
// are first sent to. Errors: ErrNotThere, when there is no template either.
func (c *Client) SendRoute(ctx context.Context, topic string) (r Route, fresh bool, err error) {
	r, err = c.Route(ctx, topic)
	if !answered(err, protocol.RespTopicNotExist) {
		return r, false, err
	}
	template, templateErr := c.Route(ctx, message.TopicAutoCreate)
	if templateErr != nil {
		return r, false, err
	}
	template.Topic = topic
	for i := range template.Brokers {
		b := &template.Brokers[i]
		b.WriteQueues = min(b.WriteQueues, defaultTopicQueues)
		b.ReadQueues = b.WriteQueues
	}
	return template, true, nil
}

// defaultTopicQueues is how many queues clients ask for when their first message makes a topic.
const defaultTopicQueues = 4
