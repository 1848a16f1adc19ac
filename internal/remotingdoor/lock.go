package remotingdoor

import (
	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
)

// LOCK_BATCH_MQ (41): the answer lists those queues that the client now holds, in the form in which they were asked for.
func lockQueues(w *worker, s *remoting.Session, c *protocol.Command) {
	body, queues, err := lockRequest(c)
	if err != nil {
		w.refuse(s, c, err)
		return
	}
	held := map[broker.QueueID]bool{}
	for _, q := range w.d.b.LockQueues(body.ConsumerGroup, body.ClientId, queues) {
		held[q] = true
	}
	ok := protocol.LockBatchResponse{LockOKMQSet: []protocol.MessageQueue{}}
	for _, q := range body.MqSet {
		if held[broker.QueueID{Topic: q.Topic, Queue: q.QueueId}] {
			ok.LockOKMQSet = append(ok.LockOKMQSet, q)
		}
	}
	a := c.Reply(protocol.RespSuccess, "")
	a.Body = protocol.AppendJSON(nil, &ok)
	w.answer(s, c, a)
}

// UNLOCK_BATCH_MQ (42), often one-way: gives back what the client holds.
func unlockQueues(w *worker, s *remoting.Session, c *protocol.Command) {
	body, queues, err := lockRequest(c)
	if err != nil {
		w.refuse(s, c, err)
		return
	}
	w.d.b.UnlockQueues(body.ConsumerGroup, body.ClientId, queues)
	w.answer(s, c, c.Reply(protocol.RespSuccess, ""))
}

func lockRequest(c *protocol.Command) (*protocol.LockBatchRequest, []broker.QueueID, error) {
	body := new(protocol.LockBatchRequest)
	if err := protocol.ParseJSON(c.Body, body); err != nil {
		return nil, nil, err
	}
	if body.ConsumerGroup == "" || body.ClientId == "" {
		return nil, nil, &protocol.FieldError{Field: "consumerGroup, clientId", Why: "are missing in the body"}
	}
	queues := make([]broker.QueueID, 0, len(body.MqSet))
	for _, q := range body.MqSet {
		queues = append(queues, broker.QueueID{Topic: q.Topic, Queue: q.QueueId})
	}
	return body, queues, nil
}
