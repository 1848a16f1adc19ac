package remotingdoor

import (
	"context"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

// CONSUMER_SEND_MSG_BACK (36): the group gets the message again later, or never: then it goes to its dead letters.
func sendMessageBack(ctx context.Context, r *request) *protocol.Command {
	var h protocol.ConsumerSendMsgBackRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	limit := int32(-1)
	if h.HasMaxReconsumeTimes && r.Version >= versionOwnLimit {
		limit = h.MaxReconsumeTimes
	}
	err := r.d.b.SendBack(ctx, &broker.SendBackRequest{
		Group: h.Group, Position: message.Position(h.Offset), DelayLevel: h.DelayLevel,
		MaxReconsume: limit, Client: r.client, From: r.s.Remote().String(),
	})
	if err != nil {
		return r.fail(err)
	}
	return r.ok()
}

// VIEW_MESSAGE_BY_ID (33): the record at a position.
func viewMessage(_ context.Context, r *request) *protocol.Command {
	var h protocol.ViewMessageRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	raw, err := r.d.b.RawRecordAt(message.Position(h.Offset))
	if err != nil {
		return r.fail(err)
	}
	return r.json(raw)
}
