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
