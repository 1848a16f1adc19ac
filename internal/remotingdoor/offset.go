package remotingdoor

import (
	"context"
	"errors"
	"strings"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/message"
)

// QUERY_CONSUMER_OFFSET (14): where a group stands in a queue, 22 when it has never committed there.
func queryConsumerOffset(w *worker, s *remoting.Session, c *protocol.Command) {
	var h protocol.QueryConsumerOffsetRequest
	if err := h.Decode(&c.Ext); err != nil {
		w.refuse(s, c, err)
		return
	}
	at, err := w.pass.Offset(h.ConsumerGroup, h.Topic, h.QueueId, h.SetZeroIfNotFound)
	switch {
	case errors.Is(err, broker.ErrCold):
		w.goCold(s, c, coldOffset)
	case err != nil:
		w.refuse(s, c, err)
	default:
		w.answerOffset(s, c, at)
	}
}

// coldOffset answers for a group without an offset.
func coldOffset(_ context.Context, r *request) *protocol.Command {
	var h protocol.QueryConsumerOffsetRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	at, err := r.d.b.ColdOffset(string(h.Topic), h.QueueId)
	if err != nil {
		return r.fail(err)
	}
	a := r.ok()
	a.Ext.SetInt("offset", int64(at))
	return a
}

// answerOffset answers with a single offset.
func (w *worker) answerOffset(s *remoting.Session, c *protocol.Command, at message.QueueOffset) {
	a := c.Reply(protocol.RespSuccess, "")
	a.Ext.SetInt("offset", int64(at))
	w.answer(s, c, a)
}

// UPDATE_CONSUMER_OFFSET (15), often one-way
//
// * forwards: answered once it is stored
// * backwards, while members of the group are connected: passed over and answered with success, it comes late
// * backwards, otherwise (a tool): an administrator's reset
func updateConsumerOffset(w *worker, s *remoting.Session, c *protocol.Command) {
	r, err := decodeCommit(c, w.conn(s).client)
	if err != nil {
		w.refuse(s, c, err)
		return
	}
	outcome, err := w.pass.Commit(&r)
	switch {
	case errors.Is(err, broker.ErrCold) || outcome == broker.CommitBackwards:
		w.goCold(s, c, coldCommit)
	case err != nil:
		w.refuse(s, c, err)
	case outcome == broker.CommitPassed:
		w.answer(s, c, c.Reply(protocol.RespSuccess, ""))
	case !c.IsOneway():
		w.cur.commits = append(w.cur.commits, plainReply{s, c.Opaque, c.Encoding})
	}
}

func decodeCommit(c *protocol.Command, client *broker.Client) (r broker.CommitRequest, err error) {
	var h protocol.UpdateConsumerOffsetRequest
	if err := h.Decode(&c.Ext); err != nil {
		return r, err
	}
	if !h.HasQueueId || !h.HasCommitOffset {
		return r, &broker.Error{Reason: broker.InvalidParameter, Text: "QueueId and offset must be given"}
	}
	return broker.CommitRequest{
		Group: h.ConsumerGroup, Topic: h.Topic, QueueID: h.QueueId, Offset: message.QueueOffset(h.CommitOffset), Client: client,
	}, nil
}

// coldCommit makes the group first, or takes its offset back by order of a tool.
func coldCommit(ctx context.Context, r *request) *protocol.Command {
	req, err := decodeCommit(r.Command, r.client)
	if err != nil {
		return r.fail(err)
	}
	if err := r.d.b.ColdCommit(ctx, &req, r.actor()); err != nil {
		return r.fail(err)
	}
	return r.ok()
}

// GET_MAX_OFFSET (30): the offset that the queue's next message gets; 0 for an unknown queue.
func getMaxOffset(w *worker, s *remoting.Session, c *protocol.Command) {
	var h protocol.GetMaxOffsetRequest
	if err := h.Decode(&c.Ext); err != nil {
		w.refuse(s, c, err)
		return
	}
	_, high := w.pass.Bounds(h.Topic, h.QueueId)
	w.answerOffset(s, c, high)
}

// GET_MIN_OFFSET (31): the queue's smallest offset; 0 for an unknown queue.
func getMinOffset(w *worker, s *remoting.Session, c *protocol.Command) {
	var h protocol.GetMinOffsetRequest
	if err := h.Decode(&c.Ext); err != nil {
		w.refuse(s, c, err)
		return
	}
	low, _ := w.pass.Bounds(h.Topic, h.QueueId)
	w.answerOffset(s, c, low)
}

// SEARCH_OFFSET_BY_TIMESTAMP (29): LOWER: the first offset stored at or after a time; UPPER: the last one at or before it.
func searchOffset(ctx context.Context, r *request) *protocol.Command {
	var h protocol.SearchOffsetRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	upper := strings.EqualFold(string(h.BoundaryType), "UPPER")
	at, err := r.d.b.SearchOffset(ctx, string(h.Topic), h.QueueId, h.Timestamp, upper)
	if err != nil {
		return r.fail(err)
	}
	a := r.ok()
	a.Ext.SetInt("offset", int64(at))
	return a
}

// GET_EARLIEST_MSG_STORETIME (32): when the queue's oldest message was stored, -1 without one.
func earliestStoreTime(ctx context.Context, r *request) *protocol.Command {
	var h protocol.GetEarliestMsgStoretimeRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	t, err := r.d.b.EarliestTime(ctx, string(h.Topic), h.QueueId)
	if err != nil {
		return r.fail(err)
	}
	a := r.ok()
	a.Ext.SetInt("timestamp", t)
	return a
}
