package remotingdoor

import (
	"context"
	"errors"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/message"
)

// END_TRANSACTION (37): what a producer says became of its transaction, one-way as a rule
//
// * commit and rollback: answered once that is stored; a repeat of the decision that was taken succeeds without effect
// * unknown: nothing happens, the producer is asked again
// * no such transaction, or another group or offset: 1; against the decision, or after the immunity that the message
// names: 604

// endTransaction serves it in the driver's pass.
func endTransaction(w *worker, s *remoting.Session, c *protocol.Command) {
	r, err := endRequest(c)
	if err != nil {
		w.refuse(s, c, err)
		return
	}
	if r == nil {
		w.answer(s, c, c.Reply(protocol.RespSuccess, ""))
		return
	}
	r.Actor = actorOf(w.conn(s).client, s)
	messages, bytes := w.cur.size()
	put, err := w.pass.EndTransaction(r)
	switch {
	case errors.Is(err, broker.ErrCold):
		w.goCold(s, c, coldEnd)
	case err != nil:
		w.refuse(s, c, err)
	case !put:
		w.answer(s, c, c.Reply(protocol.RespSuccess, ""))
	default:
		m, b := w.cur.size()
		w.cur.decided.messages += m - messages
		w.cur.decided.bytes += b - bytes
		if !c.IsOneway() {
			w.cur.commits = append(w.cur.commits, plainReply{s: s, opaque: c.Opaque, enc: c.Encoding})
		}
	}
}

// size is what the batch has so far.
func (f *flight) size() (messages, bytes int) { return len(f.batch.Msgs), len(f.batch.Records) }

// endRequest decodes a request; nil: the producer does not know yet.
func endRequest(c *protocol.Command) (*broker.EndRequest, error) {
	var h protocol.EndTransactionRequest
	if err := h.Decode(&c.Ext); err != nil {
		return nil, err
	}
	r := &broker.EndRequest{
		Half: message.Position(h.CommitLogOffset), Offset: message.QueueOffset(h.TranStateTableOffset), Group: h.ProducerGroup,
		Answer: h.FromTransactionCheck,
	}
	switch h.CommitOrRollback {
	case 0:
		return nil, nil
	case message.FlagTransactionCommit:
		r.Decision = entry.Commit
	case message.FlagTransactionRollback:
		r.Decision = entry.Rollback
	default:
		return nil, &protocol.FieldError{Field: "commitOrRollback", Why: "is neither 8 (commit) nor 12 (rollback) nor 0 (unknown)", Value: itoa(int64(h.CommitOrRollback))}
	}
	return r, nil
}

// coldEnd serves it where that takes the disk, or another decision has to be waited for.
func coldEnd(ctx context.Context, r *request) *protocol.Command {
	end, err := endRequest(r.Command)
	if err == nil {
		end.Actor = r.actor()
		err = r.d.b.EndTransaction(ctx, end)
	}
	if err != nil {
		return r.fail(err)
	}
	return r.ok()
}

// RESUME_CHECK_HALF_MESSAGE (323): a message that was given up is a half message again, and its producer is asked
func resumeTransaction(ctx context.Context, r *request) *protocol.Command {
	var h protocol.ResumeCheckHalfMessageRequest
	err := h.Decode(&r.Ext)
	if err == nil {
		var at message.Position
		if _, at, err = message.ParseOffsetID(h.MsgId); err != nil {
			return r.fail(&broker.Error{Reason: broker.InvalidParameter, Text: "msgId: " + err.Error()})
		}
		err = r.d.b.ResumeTransaction(ctx, at, r.actor())
	}
	if err != nil {
		return r.fail(err)
	}
	return r.ok()
}
