package remotingdoor

import (
	"context"
	"net/netip"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/message"
)

// HEART_BEAT (34): who is connected, and what the members of consumer groups subscribe to
//
// * takes effect at once; the answer waits for groups and retry topics that have to be made
// * version 2: subscriptions may be left out when they are the same; IS_SUB_CHANGE asks for all of them
func heartBeat(w *worker, s *remoting.Session, c *protocol.Command) {
	data, err := protocol.ParseHeartbeat(c.Body)
	if err == nil && data.ClientID == "" {
		err = &protocol.FieldError{Field: "clientID", Why: "is missing"}
	}
	if err != nil {
		w.refuse(s, c, err)
		return
	}
	conn := w.conn(s)
	if old := conn.client; old == nil || old.ID != data.ClientID {
		if old != nil {
			w.later(func() { w.d.b.Gone(old) })
		}
		conn.client = &broker.Client{ID: data.ClientID, Language: c.Language.String(), Version: c.Version, Peer: peer{s}}
	}
	h, unknown := beatOf(data, conn)
	needs := w.pass.Beat(conn.client, h)
	a := c.Reply(protocol.RespSuccess, "")
	a.Ext.SetBool("IS_SUPPORT_HEART_BEAT_V2", true)
	a.Ext.SetBool("IS_SUB_CHANGE", unknown || data.HeartbeatFingerprint == 0)
	if len(needs) == 0 {
		w.answer(s, c, a)
		return
	}
	w.goCold(s, c, func(ctx context.Context, r *request) *protocol.Command {
		for _, group := range needs { // one that may not be made is no reason not to make the others: its pulls are told
			if err := r.d.b.EnsureGroups(ctx, []string{group}); err != nil && !mayNotBe(err) {
				return r.fail(err)
			}
		}
		return a
	})
}

// mayNotBe says whether a group was refused for what it is, so that trying again would be of no use.
func mayNotBe(err error) bool {
	reason := broker.AsError(err).Reason
	return reason == broker.GroupNotFound || reason == broker.InvalidParameter
}

// beatOf turns a heartbeat into the broker's words. unknown says that subscriptions
// were left out which this connection has not told before, or others.
func beatOf(data *protocol.HeartbeatData, conn *conn) (h *broker.Heartbeat, unknown bool) {
	h = &broker.Heartbeat{KeepSubscriptions: data.WithoutSub && data.HeartbeatFingerprint != 0}
	for _, p := range data.ProducerDataSet {
		h.Producers = append(h.Producers, p.GroupName)
	}
	for i := range data.ConsumerDataSet {
		d := &data.ConsumerDataSet[i]
		n := &broker.Consumer{
			Group: d.GroupName, Type: string(d.ConsumeType), Model: string(d.MessageModel), From: string(d.ConsumeFromWhere), UnitMode: d.UnitMode,
		}
		for j := range d.SubscriptionDataSet {
			n.Subscriptions = append(n.Subscriptions, subscriptionOf(&d.SubscriptionDataSet[j]))
		}
		h.Consumers = append(h.Consumers, n)
	}
	unknown = conn.fingerprint != data.HeartbeatFingerprint
	if !h.KeepSubscriptions {
		conn.fingerprint = data.HeartbeatFingerprint
	}
	return h, unknown && h.KeepSubscriptions
}

func subscriptionOf(d *protocol.SubscriptionData) broker.Subscription {
	return broker.Subscription{
		Topic: d.Topic, Type: d.ExpressionType, Expression: d.SubString, Version: d.SubVersion, ByClass: d.ClassFilterMode,
	}
}

// peer is a connection as the broker speaks to it first.
type peer struct{ s *remoting.Session }

// ConsumersChanged implements broker.Peer: NOTIFY_CONSUMER_IDS_CHANGED (40).
func (p peer) ConsumersChanged(group string) {
	n := &protocol.Command{Code: protocol.ReqNotifyConsumerIdsChanged, Version: protocol.ServerVersion}
	n.Ext.Set("consumerGroup", group)
	p.s.Notify(n)
}

// CheckTransaction implements broker.Peer: CHECK_TRANSACTION_STATE (39).
func (p peer) CheckTransaction(c *broker.TransactionCheck) {
	n := &protocol.Command{Code: protocol.ReqCheckTransactionState, Version: protocol.ServerVersion, Body: c.Record}
	h := protocol.CheckTransactionStateRequest{
		Topic: message.TopicHalf, TranStateTableOffset: int64(c.Offset), CommitLogOffset: int64(c.Half), MsgId: c.Key, TransactionId: c.Key,
		OffsetMsgId: c.ID, Bname: c.Broker,
	}
	h.Encode(&n.Ext)
	p.s.Notify(n)
}

// Addr implements broker.Peer.
func (p peer) Addr() netip.AddrPort { return p.s.Remote() }

// UNREGISTER_CLIENT (35)
func unregisterClient(w *worker, s *remoting.Session, c *protocol.Command) {
	var h protocol.UnregisterClientRequest
	if err := h.Decode(&c.Ext); err != nil {
		w.refuse(s, c, err)
		return
	}
	if client := w.conn(s).client; client != nil && client.ID == h.ClientID {
		w.later(func() { w.d.b.Unregister(client, h.ProducerGroup, h.ConsumerGroup) })
	}
	w.answer(s, c, c.Reply(protocol.RespSuccess, ""))
}

// GET_CONSUMER_LIST_BY_GROUP (38): the client ids of a group, 1 when it has none.
func getConsumerList(w *worker, s *remoting.Session, c *protocol.Command) {
	var h protocol.GetConsumerListByGroupRequest
	if err := h.Decode(&c.Ext); err != nil {
		w.refuse(s, c, err)
		return
	}
	ids := w.d.b.MemberIDs(h.ConsumerGroup)
	if len(ids) == 0 {
		w.answer(s, c, c.Reply(protocol.RespSystemError, "no consumer for this group, "+h.ConsumerGroup))
		return
	}
	a := c.Reply(protocol.RespSuccess, "")
	a.Body = protocol.AppendJSON(nil, &protocol.ConsumerIdList{ConsumerIdList: ids})
	w.answer(s, c, a)
}

// CHECK_CLIENT_CONFIG (46): whether a subscription can be served. Those by tag can, always.
func checkClientConfig(_ context.Context, r *request) *protocol.Command {
	var body protocol.CheckClientRequest
	if err := protocol.ParseJSON(r.Body, &body); err != nil {
		return r.fail(err)
	}
	sub := body.SubscriptionData
	if sub.IsTag() {
		return r.ok()
	}
	if err := r.d.b.CheckExpression(sub.ExpressionType, sub.SubString); err != nil {
		return r.fail(err)
	}
	return r.ok()
}
