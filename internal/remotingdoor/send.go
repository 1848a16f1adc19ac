package remotingdoor

import (
	"context"
	"errors"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

// SEND_MESSAGE (10), SEND_MESSAGE_V2 (310), SEND_BATCH_MESSAGE (320)
//
// * success: where the message is (msgId: its position; for a batch all of them), once it is stored
// * the batch branch is chosen by the header, not by the code
// * unknown topic: made from the template in the header, if that is allowed; else 17
// * every answer, errors too, carries MSG_REGION and TRACE_ON

// sendMessage serves the three codes in the driver's pass.
func sendMessage(w *worker, s *remoting.Session, c *protocol.Command) {
	r, err := w.sendRequest(s, c)
	if err != nil {
		w.refuseSend(s, c, err)
		return
	}
	if w.pass.Full(&r) {
		w.split()
	}
	sent, err := w.pass.Send(&r)
	if errors.Is(err, broker.ErrCold) {
		w.goCold(s, c, coldSend)
		return
	}
	if err != nil {
		w.refuseSend(s, c, err)
		return
	}
	if c.IsOneway() {
		return
	}
	f := w.cur
	reply := sendReply{s: s, opaque: c.Opaque, enc: c.Encoding, sent: sent}
	if r.Batch {
		reply.key, reply.keyTo = f.keepKey(r.Properties)
	}
	f.sends = append(f.sends, reply)
}

// keepKey keeps the unique key of a batch of messages for the answer.
func (f *flight) keepKey(props []byte) (from, to int32) {
	key, _ := message.Property(props, message.PropertyUniqueKey)
	from = int32(len(f.keys))
	f.keys = append(f.keys, key...)
	return from, int32(len(f.keys))
}

// sendRequest decodes a request; what it returns is valid until the next one.
func (w *worker) sendRequest(s *remoting.Session, c *protocol.Command) (broker.SendRequest, error) {
	h := &w.send
	if err := h.Decode(&c.Ext); err != nil {
		return broker.SendRequest{}, err
	}
	w.props = w.props[:0]
	if h.Properties != nil {
		w.props = c.Ext.AppendUnescaped(w.props, h.Properties)
	}
	r := broker.SendRequest{
		Topic: h.Topic, DefaultTopic: h.DefaultTopic, DefaultQueues: h.DefaultTopicQueueNums, QueueID: h.QueueId,
		SysFlag: h.SysFlag, Flag: h.Flag, BornTime: h.BornTimestamp, BornHost: s.Remote(), StoreHost: w.conn(s).storeHost,
		Reconsumed: h.ReconsumeTimes, MaxReconsume: -1, Batch: h.Batch, Properties: w.props, Body: c.Body,
	}
	if h.HasMaxReconsumeTimes && c.Version >= versionOwnLimit {
		r.MaxReconsume = h.MaxReconsumeTimes
	}
	return r, nil
}

// versionOwnLimit is 3.4.9: from it on, a client's limit of attempts overrides the group's.
const versionOwnLimit = 121

func (w *worker) refuseSend(s *remoting.Session, c *protocol.Command, err error) {
	if a := w.d.sendFailed(c, err); !c.IsOneway() {
		s.Out = a.Append(s.Out)
	}
}

func (d *Door) sendFailed(c *protocol.Command, err error) *protocol.Command {
	d.b.Stats.Refused.Add(1)
	a := c.Reply(d.outcome(err))
	conf := d.b.Config()
	a.Ext.Set("MSG_REGION", conf.Region)
	a.Ext.SetBool("TRACE_ON", conf.TraceOn)
	return a
}

// answerFlight answers everybody who waits for a batch that is done.
func (w *worker) answerFlight(f *flight) {
	if f.batch.Err == nil {
		w.d.b.Stats.Sends.Add(int64(len(f.batch.Msgs) - f.decided.messages)) // those were counted when they were sent
		w.d.b.Stats.SendBytes.Add(int64(len(f.batch.Records) - f.decided.bytes))
	}
	for i := range f.sends {
		r := &f.sends[i]
		r.s.Touched()
		switch c, err := w.conn(r.s), f.batch.Err; {
		case err != nil:
			r.s.Out = w.d.sendFailed(r.request(), err).Append(r.s.Out)
		case f.batch.Msgs[r.sent.First].Gone:
			r.s.Out = w.d.sendFailed(r.request(), errGone).Append(r.s.Out)
		default:
			r.s.Out = w.appendSent(r.s.Out, f, r, c.hostHex)
		}
	}
	for _, r := range f.commits {
		r.s.Touched()
		req := protocol.Command{Opaque: r.opaque, Encoding: r.enc}
		a := req.Reply(protocol.RespSuccess, "")
		if f.batch.Err != nil {
			a = req.Reply(w.d.outcome(f.batch.Err))
		}
		r.s.Out = a.Append(r.s.Out)
	}
}

var errGone = &broker.Error{Reason: broker.TopicNotFound, Text: "topic not exist, it was deleted meanwhile"}

// request is as much of the request as its answer needs.
func (r *sendReply) request() *protocol.Command {
	return &protocol.Command{Opaque: r.opaque, Encoding: r.enc}
}

// coldSend serves a send whose topic has to be made first.
func coldSend(ctx context.Context, r *request) *protocol.Command {
	w := &worker{d: r.d} // for its decoding
	req, err := w.sendRequestOf(r)
	if err != nil {
		return r.d.sendFailed(r.Command, err)
	}
	sent, batch, err := r.d.b.ColdSend(ctx, &req)
	if err != nil {
		return r.d.sendFailed(r.Command, err)
	}
	r.d.b.Stats.Sends.Add(int64(sent.Count))
	r.d.b.Stats.SendBytes.Add(int64(len(batch.Records)))
	return r.sentAnswer(sent, batch, &req)
}

// sendRequestOf is sendRequest for a request that has been copied.
func (w *worker) sendRequestOf(r *request) (broker.SendRequest, error) {
	h := &w.send
	if err := h.Decode(&r.Ext); err != nil {
		return broker.SendRequest{}, err
	}
	if h.Properties != nil {
		w.props = r.Ext.AppendUnescaped(nil, h.Properties)
	}
	req := broker.SendRequest{
		Topic: h.Topic, DefaultTopic: h.DefaultTopic, DefaultQueues: h.DefaultTopicQueueNums, QueueID: h.QueueId,
		SysFlag: h.SysFlag, Flag: h.Flag, BornTime: h.BornTimestamp, BornHost: r.s.Remote(), StoreHost: r.d.opts.StoreHost(r.s),
		Reconsumed: h.ReconsumeTimes, MaxReconsume: -1, Batch: h.Batch, Properties: w.props, Body: r.Body,
	}
	if h.HasMaxReconsumeTimes && r.Version >= versionOwnLimit {
		req.MaxReconsume = h.MaxReconsumeTimes
	}
	return req, nil
}

// sentAnswer is the answer of a cold send.
func (r *request) sentAnswer(sent broker.Sent, batch *shard.Batch, req *broker.SendRequest) *protocol.Command {
	f := &flight{batch: *batch}
	reply := sendReply{sent: sent}
	if sent.KeyLen > 0 {
		f.keys = batch.Records[sent.KeyAt : sent.KeyAt+sent.KeyLen]
	} else {
		f.keepKey(req.Properties)
	}
	a := r.ok()
	conf := r.d.b.Config()
	a.Ext.Set("MSG_REGION", conf.Region)
	a.Ext.SetBool("TRACE_ON", conf.TraceOn)
	a.Ext.SetBytes("msgId", appendMessageIDs(nil, f, &reply, appendHostHex(nil, req.StoreHost)))
	a.Ext.SetInt("queueId", int64(sent.QueueID))
	a.Ext.SetInt("queueOffset", int64(batch.Msgs[sent.First].Offset))
	if len(f.keys) > 0 {
		a.Ext.SetBytes("transactionId", f.keys)
	}
	return a
}
