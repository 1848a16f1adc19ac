package remotingdoor

import (
	"context"
	"errors"
	"time"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/message"
)

// PULL_MESSAGE (11), LITE_PULL_MESSAGE (361)
//
// * messages at the offset: as many as the client asks for, within the limit of bytes (max-pull-bytes), one at least
// * none yet, and the client can wait: answered when one arrives or the time is over (19)
// * filtered to nothing: 20 with the offset to go on from
// * offset out of the queue: 21 with the offset to use
// * the offset that the group has consumed is committed with the first look, whatever that finds

// Bits of a pull's sysFlag.
const (
	pullCommit       = 1
	pullSuspend      = 2
	pullSubscription = 4
	pullLite         = 16
)

// maxSuspend bounds how long a pull may wait.
const maxSuspend = 5 * time.Minute

// waiting is whom to answer when a waiting pull is over.
type waiting struct {
	c      *conn
	opaque int32
	enc    protocol.Encoding
	asked  message.QueueOffset
}

// pullMessage serves a pull in the driver's pass.
func pullMessage(w *worker, s *remoting.Session, c *protocol.Command) {
	conn := w.conn(s)
	r, err := decodePull(&w.pull, c, conn.client)
	if err != nil {
		w.refuse(s, c, err)
		return
	}
	w.d.b.Stats.Pulls.Add(1)
	if w.pulling.IsZero() {
		w.pulling = time.Now()
	}
	res, err := w.pass.Pull(&r)
	switch {
	case errors.Is(err, broker.ErrNewGroup):
		w.goCold(s, c, w.pullNewGroup)
	case errors.Is(err, broker.ErrCold):
		w.goCold(s, c, coldPull)
	case err != nil:
		w.refuse(s, c, err)
	case r.Suspend > 0 && pullCode(res.Status, r.Offset) == protocol.RespPullNotFound && !c.IsOneway() && !s.HalfClosed():
		w.park(conn, c, &r, res)
	default:
		w.answerPull(s, c, &r, &res)
	}
}

func decodePull(h *protocol.PullMessageRequest, c *protocol.Command, client *broker.Client) (broker.PullRequest, error) {
	if err := h.Decode(&c.Ext); err != nil {
		return broker.PullRequest{}, err
	}
	r := broker.PullRequest{
		Group: h.ConsumerGroup, Topic: h.Topic, QueueID: h.QueueId, Offset: message.QueueOffset(h.QueueOffset), Max: h.MaxMsgNums,
		Commit: -1, ExpressionType: h.ExpressionType, SubVersion: h.SubVersion, Lite: h.SysFlag&pullLite != 0, Client: client,
	}
	if h.SysFlag&pullCommit != 0 {
		r.Commit = message.QueueOffset(h.CommitOffset)
	}
	if h.SysFlag&pullSuspend != 0 {
		r.Suspend = min(time.Duration(max(h.SuspendTimeoutMillis, 0))*time.Millisecond, maxSuspend)
	}
	if h.SysFlag&pullSubscription != 0 {
		r.HasExpression, r.Expression = true, h.Subscription
	}
	return r, nil
}

// park lets a pull wait; when too many do, it is answered at once.
func (w *worker) park(conn *conn, c *protocol.Command, r *broker.PullRequest, res broker.PullResult) {
	wait, ok := w.pass.Park(r, res, waiting{c: conn, opaque: c.Opaque, enc: c.Encoding, asked: r.Offset})
	if !ok {
		w.d.b.Stats.RefusedFor[broker.Busy].Add(1)
		w.answer(conn.s, c, c.Reply(protocol.RespSystemBusy, "[OVERLOAD]system busy: too many pulls wait for messages (max-waiters)"))
		return
	}
	if conn.waits == nil {
		conn.waits = map[*broker.Waiting]struct{}{}
	}
	conn.waits[wait] = struct{}{}
}

// answerPull writes the answer of a pull that does not wait.
func (w *worker) answerPull(s *remoting.Session, c *protocol.Command, r *broker.PullRequest, res *broker.PullResult) {
	if c.IsOneway() {
		return
	}
	if !w.writePull(s, c.Encoding, c.Opaque, r.Offset, res) {
		w.goCold(s, c, coldPull)
		return
	}
	w.pulled++
}

// writePull appends an answer with its records; false, with nothing appended, when they are not in memory.
func (w *worker) writePull(s *remoting.Session, enc protocol.Encoding, opaque int32, asked message.QueueOffset, res *broker.PullResult) bool {
	at := len(s.Out)
	s.Out = appendPulled(s.Out, enc, opaque, pullCode(res.Status, asked), res)
	if res.Status != broker.Found {
		w.d.b.Stats.EmptyPulls.Add(1)
		return true
	}
	head := len(s.Out)
	out, err := w.pass.AppendRecords(s.Out)
	if err != nil {
		s.Out = s.Out[:at]
		return false
	}
	s.Out = out
	endFrame(s.Out, at)
	w.d.b.Stats.Pulled.Add(int64(res.Count))
	w.d.b.Stats.PulledBytes.Add(int64(len(out) - head))
	return true
}

// answerWaiting answers a waiting pull that is over.
func (w *worker) answerWaiting(wait *broker.Waiting, res broker.PullResult, err error) {
	to := wait.Reply.(waiting)
	s := to.c.s
	delete(to.c.waits, wait)
	s.Touched()
	switch {
	case errors.Is(err, broker.ErrCold):
		w.coldAgain(wait, to)
	case err != nil:
		req := protocol.Command{Opaque: to.opaque, Encoding: to.enc}
		s.Out = req.Reply(w.d.outcome(err)).Append(s.Out)
	case !w.writePull(s, to.enc, to.opaque, to.asked, &res):
		w.coldAgain(wait, to)
	}
}

// coldAgain answers a waiting pull whose messages have left the memory already: the client is to ask again at once.
func (w *worker) coldAgain(wait *broker.Waiting, to waiting) {
	res := broker.PullResult{Status: broker.NoMatchedMessage, Next: wait.Offset()}
	res.Min, res.Max = wait.Bounds()
	to.c.s.Out = appendPulled(to.c.s.Out, to.enc, to.opaque, protocol.RespPullRetryImmediately, &res)
}

// pullNewGroup makes the group of a pull, which is then served as any other, for it
// may have to commit and to wait for messages. Another request may have made it since.
func (w *worker) pullNewGroup(ctx context.Context, r *request) *protocol.Command {
	var h protocol.PullMessageRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	group := string(h.ConsumerGroup)
	if err := r.d.b.EnsureGroups(ctx, []string{group}); err != nil {
		return r.fail(err)
	}
	if _, ok := r.d.b.Group(group); !ok {
		return coldPull(ctx, r) // it says why
	}
	r.s.Run(func() { pullMessage(w, r.s, r.Command) })
	return nil
}

// coldPull serves a pull that has to read the disk.
func coldPull(ctx context.Context, r *request) *protocol.Command {
	var h protocol.PullMessageRequest
	req, err := decodePull(&h, r.Command, r.client)
	if err != nil {
		return r.fail(err)
	}
	body, res, err := r.d.b.ColdPull(ctx, &req, nil)
	if err != nil {
		return r.fail(err)
	}
	r.d.b.Stats.PullTime.Observe(time.Since(r.at))
	if res.Status == broker.Found {
		r.d.b.Stats.Pulled.Add(int64(res.Count))
		r.d.b.Stats.PulledBytes.Add(int64(len(body)))
	} else {
		r.d.b.Stats.EmptyPulls.Add(1)
	}
	a := r.Reply(pullCode(res.Status, req.Offset), statusTexts[res.Status])
	a.Ext.SetInt("suggestWhichBrokerId", 0)
	a.Ext.SetInt("nextBeginOffset", int64(res.Next))
	a.Ext.SetInt("minOffset", int64(res.Min))
	a.Ext.SetInt("maxOffset", int64(res.Max))
	a.Ext.SetInt("topicSysFlag", int64(res.TopicSysFlag))
	a.Ext.SetInt("groupSysFlag", int64(res.GroupSysFlag))
	a.Body = body
	return a
}
