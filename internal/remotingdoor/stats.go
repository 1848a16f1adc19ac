package remotingdoor

import (
	"context"
	"slices"
	"strings"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
)

// GET_TOPIC_STATS_INFO (202): bounds of each queue, and when its newest message was stored.
func topicStats(ctx context.Context, r *request) *protocol.Command {
	var h protocol.GetTopicStatsInfoRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	queues, err := r.d.b.TopicStats(ctx, h.Topic)
	if err != nil {
		return r.fail(err)
	}
	body := protocol.TopicStatsTable{OffsetTable: map[protocol.MessageQueue]protocol.TopicOffset{}}
	for _, q := range queues {
		body.OffsetTable[r.queue(h.Topic, q.Queue)] = protocol.TopicOffset{MinOffset: int64(q.Min), MaxOffset: int64(q.Max), LastUpdateTimestamp: q.LastStored}
	}
	return r.json(protocol.AppendJSON(nil, &body))
}

func (r *request) queue(topic string, id int32) protocol.MessageQueue {
	return protocol.MessageQueue{BrokerName: r.d.b.Config().Name, QueueId: id, Topic: topic}
}

// GET_CONSUME_STATS (208): how far a group is in each queue of its topics.
func consumeStats(ctx context.Context, r *request) *protocol.Command {
	var h protocol.GetConsumeStatsRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	var topics []string
	if h.TopicList != "" {
		topics = strings.Split(h.TopicList, ";")
	}
	if h.Topic != "" {
		topics = append(topics, h.Topic)
	}
	progress, err := r.d.b.Progress(ctx, h.ConsumerGroup, topics)
	if err != nil {
		return r.fail(err)
	}
	body := protocol.ConsumeStats{OffsetTable: map[protocol.MessageQueue]protocol.OffsetWrapper{}}
	for _, p := range progress {
		body.OffsetTable[r.queue(p.Topic, p.Queue)] = protocol.OffsetWrapper{
			BrokerOffset: int64(p.Max), ConsumerOffset: int64(p.Consumed), PullOffset: int64(p.Consumed), LastTimestamp: p.LastConsumed,
		}
	}
	return r.json(protocol.AppendJSON(nil, &body))
}

// GET_CONSUMER_CONNECTION_LIST (203): the members of a group, 206 when nobody is connected.
func consumerConnections(_ context.Context, r *request) *protocol.Command {
	var h protocol.GetConsumerConnectionListRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	members := r.d.b.Members(h.ConsumerGroup)
	if len(members) == 0 {
		return r.Reply(protocol.RespConsumerNotOnline, "the consumer group["+h.ConsumerGroup+"] not online")
	}
	body := protocol.ConsumerConnection{SubscriptionTable: map[string]protocol.SubscriptionData{}}
	for _, m := range members {
		body.ConnectionSet = append(body.ConnectionSet, connection(m.Client))
		body.ConsumeFromWhere = protocol.ConsumeFromWhere(m.Consumer.From)
		body.ConsumeType = protocol.ConsumeType(m.Consumer.Type)
		body.MessageModel = protocol.MessageModel(m.Consumer.Model)
		for _, s := range m.Consumer.Subscriptions {
			body.SubscriptionTable[s.Topic] = subscriptionData(&s)
		}
	}
	return r.json(protocol.AppendJSON(nil, &body))
}

func connection(c *broker.Client) protocol.Connection {
	return protocol.Connection{ClientAddr: c.Peer.Addr().String(), ClientId: c.ID, Language: c.Language, Version: c.Version}
}

func subscriptionData(s *broker.Subscription) protocol.SubscriptionData {
	d, err := protocol.ParseSubscription(s.Topic, s.Expression, s.Type, s.Version)
	if err != nil { // an expression that the client should not have sent
		return protocol.SubscriptionData{Topic: s.Topic, SubString: s.Expression, ExpressionType: s.Type, SubVersion: s.Version, TagsSet: []string{}, CodeSet: []int32{}}
	}
	return *d
}

// GET_PRODUCER_CONNECTION_LIST (204)
func producerConnections(_ context.Context, r *request) *protocol.Command {
	var h protocol.GetProducerConnectionListRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	clients := r.d.b.Producers(h.ProducerGroup)
	if len(clients) == 0 {
		return r.Reply(protocol.RespSystemError, "the producer group["+h.ProducerGroup+"] not exist")
	}
	var body protocol.ProducerConnection
	for _, c := range clients {
		body.ConnectionSet = append(body.ConnectionSet, connection(c))
	}
	return r.json(protocol.AppendJSON(nil, &body))
}

// QUERY_TOPIC_CONSUME_BY_WHO (300): groups that subscribe the topic or have offsets in it.
func topicConsumers(_ context.Context, r *request) *protocol.Command {
	var h protocol.QueryTopicConsumeByWhoRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	return r.json(protocol.AppendJSON(nil, &protocol.GroupList{GroupList: nonNil(r.d.b.GroupsOf(h.Topic))}))
}

// QUERY_TOPICS_BY_CONSUMER (343): topics in which a group has offsets.
func groupTopics(_ context.Context, r *request) *protocol.Command {
	var h protocol.QueryTopicsByConsumerRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	body := protocol.TopicList{BrokerAddr: r.d.opts.StoreHost(r.s).String(), TopicList: nonNil(r.d.b.TopicsOf(h.Group))}
	return r.json(protocol.AppendJSON(nil, &body))
}

func nonNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return slices.Clone(s)
}

// GET_ALL_CONSUMER_OFFSET (43)
func allOffsets(_ context.Context, r *request) *protocol.Command {
	body := protocol.ConsumerOffsets{OffsetTable: map[string]map[int32]int64{}}
	for _, o := range r.d.b.Offsets() {
		key := o.Topic + "@" + o.Group
		if body.OffsetTable[key] == nil {
			body.OffsetTable[key] = map[int32]int64{}
		}
		body.OffsetTable[key][o.Queue] = int64(o.Offset)
	}
	return r.json(protocol.AppendJSON(nil, &body))
}

// INVOKE_BROKER_TO_RESET_OFFSET (222): sets offsets and makes the group's next pulls follow; works without members online.
func resetOffset(ctx context.Context, r *request) *protocol.Command {
	var h protocol.ResetOffsetRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	items, err := r.d.b.ResetGroup(ctx, &broker.ResetRequest{
		Group: h.Group, Topic: h.Topic, QueueID: h.QueueId, Offset: h.Offset, Timestamp: h.Timestamp, Actor: r.actor(),
	})
	if err != nil {
		return r.fail(err)
	}
	body := protocol.ResetOffsetBody{OffsetTable: map[protocol.MessageQueue]int64{}}
	for _, it := range items {
		body.OffsetTable[r.queue(h.Topic, it.Queue)] = int64(it.Offset)
	}
	if r.Language == protocol.LanguageCPP {
		return r.json(protocol.AppendJSON(nil, body.ForC()))
	}
	return r.json(protocol.AppendJSON(nil, &body))
}
