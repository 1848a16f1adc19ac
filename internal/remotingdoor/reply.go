package remotingdoor

import (
	"context"
	"fmt"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/message"
)

// SEND_REPLY_MESSAGE (324), SEND_REPLY_MESSAGE_V2 (325): the answer to a request, for the client that REPLY_TO_CLIENT names
//
// * checked like a send; then given to that client (326), for which the answer waits, and stored
// * the client is not there, does not want it or is silent for coldTime: 1, and stored all the same
// * success: where the reply is stored, or msgId 0 and queueOffset 0 if it is not
// * every answer, errors too, carries MSG_REGION and TRACE_ON

// replyMessage leaves the driver's pass, which may have to read what the other client says.
func replyMessage(w *worker, s *remoting.Session, c *protocol.Command) {
	err := w.detach(s, c, coldReply, func(f func()) error { return w.d.b.GoReply(size(c), f) })
	if err != nil {
		w.refuseSend(s, c, err)
	}
}

// size is how much of a command is kept while it is served away from the pass.
func size(c *protocol.Command) int {
	n := len(c.Body)
	for i := range c.Ext.Len() {
		f := c.Ext.At(i)
		n += len(f.Key) + len(f.Value)
	}
	return n
}

// coldReply serves both codes on a goroutine.
func coldReply(ctx context.Context, r *request) *protocol.Command {
	w := &worker{d: r.d} // for its decoding
	send, err := w.sendRequestOf(r)
	if err != nil {
		return r.d.sendFailed(r.Command, err)
	}
	done, err := r.d.b.Reply(ctx, &broker.ReplyRequest{SendRequest: send, Producer: w.send.ProducerGroup, UnitMode: w.send.UnitMode})
	if done.Batch != nil {
		r.d.b.Stats.Sends.Add(int64(done.Count))
		r.d.b.Stats.SendBytes.Add(int64(len(done.Batch.Records)))
	}
	if err != nil {
		return r.d.sendFailed(r.Command, err)
	}
	conf := r.d.b.Config()
	h := protocol.SendMessageResponse{MsgId: []byte("0"), QueueId: done.QueueID, MsgRegion: []byte(conf.Region), TraceOn: fmt.Append(nil, conf.TraceOn)}
	if b := done.Batch; b != nil {
		h.MsgId = message.AppendOffsetID(nil, send.StoreHost, b.Position(done.First))
		h.QueueOffset = int64(b.Msgs[done.First].Offset)
	}
	a := r.ok()
	h.Encode(&a.Ext)
	return a
}

// PushReply implements broker.Peer: PUSH_REPLY_MESSAGE_TO_CLIENT (326).
func (p peer) PushReply(ctx context.Context, r *broker.PushedReply) error {
	c := &protocol.Command{Code: protocol.ReqPushReplyMessageToClient, Version: protocol.ServerVersion, Body: r.Body}
	(&protocol.PushReplyMessageRequest{
		ProducerGroup: string(r.Producer), Topic: string(r.Topic), DefaultTopic: string(r.DefaultTopic), DefaultTopicQueueNums: r.DefaultQueues,
		QueueId: r.QueueID, SysFlag: r.SysFlag, BornTimestamp: r.BornTime, Flag: r.Flag, Properties: string(r.Properties),
		ReconsumeTimes: r.Reconsumed, HasReconsumeTimes: true, UnitMode: r.UnitMode, HasUnitMode: true,
		BornHost: r.BornHost.String(), StoreHost: r.StoreHost.String(), StoreTimestamp: r.Time,
	}).Encode(&c.Ext)
	a, err := p.s.Request(ctx, c)
	if err != nil {
		return err
	}
	if a.Code != protocol.RespSuccess {
		return fmt.Errorf("it answered code %d: %s", a.Code, a.Remark)
	}
	return nil
}
