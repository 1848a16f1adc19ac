package remotingdoor

import (
	"context"
	"strings"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/protocol"
)

// UPDATE_AND_CREATE_TOPIC (17): makes a topic or changes it; the same again is a silent success.
func updateTopic(ctx context.Context, r *request) *protocol.Command {
	var h protocol.CreateTopicRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	attributes, err := parseAttributes(h.Attributes)
	if err != nil {
		return r.fail(err)
	}
	err = r.d.b.PutTopic(ctx, entry.Topic{
		Name: h.Topic, ReadQueues: h.ReadQueueNums, WriteQueues: h.WriteQueueNums, Perm: h.Perm,
		MultiTag: h.TopicFilterType == "MULTI_TAG", SysFlag: h.TopicSysFlag, Order: h.Order, Attributes: attributes,
	}, r.actor())
	if err != nil {
		return r.fail(err)
	}
	return r.ok()
}

// parseAttributes reads "+key=value,-key".
func parseAttributes(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	out := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		if key = strings.TrimSpace(key); key == "" {
			continue
		}
		if _, twice := out[key]; twice {
			return nil, &broker.Error{Reason: broker.Internal, Text: "key duplication: " + key}
		}
		out[key] = strings.TrimSpace(value)
	}
	return out, nil
}

// DELETE_TOPIC_IN_BROKER (215)
func deleteTopic(ctx context.Context, r *request) *protocol.Command {
	var h protocol.DeleteTopicRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	if err := r.d.b.DeleteTopic(ctx, h.Topic, r.actor()); err != nil {
		return r.fail(err)
	}
	return r.ok()
}

// TopicConfig is a topic in the protocol's form.
func TopicConfig(t *entry.Topic) protocol.TopicConfig {
	c := protocol.TopicConfig{
		TopicName: t.Name, ReadQueueNums: t.ReadQueues, WriteQueueNums: t.WriteQueues, Perm: t.Perm, TopicFilterType: protocol.SingleTag,
		TopicSysFlag: t.SysFlag, Order: t.Order, Attributes: t.Attributes,
	}
	if t.MultiTag {
		c.TopicFilterType = protocol.MultiTag
	}
	if c.Attributes == nil {
		c.Attributes = map[string]string{}
	}
	return c
}

// GET_ALL_TOPIC_CONFIG (21)
func allTopics(_ context.Context, r *request) *protocol.Command {
	var h protocol.GetAllTopicConfigRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	topics, counter, changed := r.d.b.Topics()
	body := protocol.TopicConfigWrapper{
		DataVersion:        protocol.DataVersion{Counter: counter, Timestamp: changed},
		MappingDataVersion: &protocol.DataVersion{},
		TopicConfigTable:   map[string]protocol.TopicConfig{},
	}
	total := len(topics)
	if h.HasTopicSeq || h.HasMaxTopicNum {
		topics = page(topics, h.TopicSeq, h.MaxTopicNum, h.DataVersion, body.DataVersion)
	}
	for i := range topics {
		body.TopicConfigTable[topics[i].Name] = TopicConfig(&topics[i])
	}
	a := r.json(protocol.AppendJSON(nil, &body))
	a.Ext.SetInt("totalTopicNum", int64(total))
	return a
}

// GET_TOPIC_CONFIG (351)
func getTopic(_ context.Context, r *request) *protocol.Command {
	var h protocol.GetTopicConfigRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	t, ok := r.d.b.Topic(h.Topic)
	if !ok {
		return r.Reply(protocol.RespTopicNotExist, "No topic in this broker. topic: "+h.Topic)
	}
	return r.json(protocol.AppendJSON(nil, &protocol.TopicConfigAndQueueMapping{TopicConfig: TopicConfig(&t)}))
}

// UPDATE_AND_CREATE_TOPIC_LIST (18)
func updateTopicList(ctx context.Context, r *request) *protocol.Command {
	var body protocol.TopicConfigList
	if err := protocol.ParseJSON(r.Body, &body); err != nil {
		return r.fail(err)
	}
	for i := range body.TopicConfigList {
		c := &body.TopicConfigList[i]
		err := r.d.b.PutTopic(ctx, entry.Topic{
			Name: c.TopicName, ReadQueues: c.ReadQueueNums, WriteQueues: c.WriteQueueNums, Perm: c.Perm,
			MultiTag: c.TopicFilterType == protocol.MultiTag, SysFlag: c.TopicSysFlag, Order: c.Order, Attributes: c.Attributes,
		}, r.actor())
		if err != nil {
			return r.fail(err)
		}
	}
	return r.ok()
}

// GET_SYSTEM_TOPIC_LIST_FROM_BROKER (305)
func systemTopics(_ context.Context, r *request) *protocol.Command {
	return r.json(protocol.AppendJSON(nil, &protocol.TopicList{TopicList: r.d.b.SystemTopics()}))
}
