package admin

import (
	"context"
	"fmt"

	"github.com/metaqio/metaq/internal/protocol"
)

// NoOffset is the committed offset of a group that has none.
const NoOffset = -1

// GroupOffset is where a group stands in a queue, and what is in the queue.
type GroupOffset struct {
	Queue
	Min       int64 `json:"min"`       // offset of the oldest message
	Committed int64 `json:"committed"` // offset of the next message to be consumed, or NoOffset
	Max       int64 `json:"max"`       // offset of the next message to be stored
}

// Offsets tells where a group stands in the queues of a topic. Errors: ErrNotThere.
func (c *Client) Offsets(ctx context.Context, group, topic string) ([]GroupOffset, error) {
	r, err := c.Route(ctx, topic)
	if err != nil {
		return nil, err
	}
	offsets := []GroupOffset{}
	for _, q := range r.ReadQueues() {
		o := GroupOffset{Queue: q}
		if o.Min, o.Max, err = c.Bounds(ctx, q); err != nil {
			return nil, err
		}
		if o.Committed, err = c.committed(ctx, group, q); err != nil {
			return nil, err
		}
		offsets = append(offsets, o)
	}
	return offsets, nil
}

// Bounds gives the offsets of the oldest message of a queue and of the next to be stored.
func (c *Client) Bounds(ctx context.Context, q Queue) (first, next int64, err error) {
	addr, err := c.queueAddr(ctx, q)
	if err != nil {
		return 0, 0, err
	}
	var low protocol.GetMinOffsetResponse
	var high protocol.GetMaxOffsetResponse
	answer, err := c.call(ctx, addr, protocol.ReqGetMinOffset, &protocol.GetMinOffsetRequest{
		Topic: []byte(q.Topic), QueueId: q.ID, Bname: []byte(q.Broker), Lo: true,
	}, nil)
	if err != nil {
		return 0, 0, err
	}
	if err := low.Decode(&answer.Ext); err != nil {
		return 0, 0, err
	}
	answer, err = c.call(ctx, addr, protocol.ReqGetMaxOffset, &protocol.GetMaxOffsetRequest{
		Topic: []byte(q.Topic), QueueId: q.ID, Committed: true, Bname: []byte(q.Broker), Lo: true,
	}, nil)
	if err != nil {
		return 0, 0, err
	}
	if err := high.Decode(&answer.Ext); err != nil {
		return 0, 0, err
	}
	return low.Offset, high.Offset, nil
}

// queueAddr is the address of the broker that has a queue.
func (c *Client) queueAddr(ctx context.Context, q Queue) (string, error) {
	if q.addr != "" {
		return q.addr, nil
	}
	brokers, err := c.brokersNamed(ctx, q.Broker)
	if err != nil {
		return "", err
	}
	return brokers[0].Addr, nil
}

func (c *Client) committed(ctx context.Context, group string, q Queue) (int64, error) {
	answer, err := c.call(ctx, q.addr, protocol.ReqQueryConsumerOffset, &protocol.QueryConsumerOffsetRequest{
		ConsumerGroup: []byte(group), Topic: []byte(q.Topic), QueueId: q.ID, Bname: []byte(q.Broker), Lo: true,
	}, nil, protocol.RespQueryNotFound)
	if err != nil {
		return 0, err
	}
	if answer.Code == protocol.RespQueryNotFound {
		return NoOffset, nil
	}
	var h protocol.QueryConsumerOffsetResponse
	err = h.Decode(&answer.Ext)
	return h.Offset, err
}

// OffsetAt gives the offset of the first message of a queue that was stored at a time or later, in ms since 1970; the end of the
// queue if there is none.
func (c *Client) OffsetAt(ctx context.Context, q Queue, ms int64) (int64, error) {
	addr, err := c.queueAddr(ctx, q)
	if err != nil {
		return 0, err
	}
	answer, err := c.call(ctx, addr, protocol.ReqSearchOffsetByTimestamp, &protocol.SearchOffsetRequest{
		Topic: []byte(q.Topic), QueueId: q.ID, Timestamp: ms, Bname: []byte(q.Broker), Lo: true,
	}, nil)
	if err != nil {
		return 0, err
	}
	var h protocol.SearchOffsetResponse
	err = h.Decode(&answer.Ext)
	return h.Offset, err
}

// Place is a place in a queue, whichever queue it is.
type Place struct {
	kind  placeKind
	value int64
}

type placeKind byte

const (
	placeEarliest placeKind = iota
	placeLatest
	placeTime
	placeOffset
)

// Earliest is the oldest message.
func Earliest() Place { return Place{kind: placeEarliest} }

// Latest is the end of the queue.
func Latest() Place { return Place{kind: placeLatest} }

// AtTime is the first message that was stored at a time or later, in ms since 1970.
func AtTime(ms int64) Place { return Place{kind: placeTime, value: ms} }

// AtOffset is a message's number.
func AtOffset(offset int64) Place { return Place{kind: placeOffset, value: offset} }

// Find gives the offset of a place in a queue. An offset outside of the queue is an error.
func (c *Client) Find(ctx context.Context, q Queue, p Place) (int64, error) {
	if p.kind == placeTime {
		return c.OffsetAt(ctx, q, p.value)
	}
	first, next, err := c.Bounds(ctx, q)
	if err != nil {
		return 0, err
	}
	return p.within(q, first, next)
}

func (p Place) within(q Queue, first, next int64) (int64, error) {
	switch p.kind {
	case placeEarliest:
		return first, nil
	case placeLatest:
		return next, nil
	}
	if p.value < first || p.value > next {
		return 0, fmt.Errorf("queue %d of %s on %s has offsets %d to %d, not %d", q.ID, q.Topic, q.Broker, first, next, p.value)
	}
	return p.value, nil
}

// Reset is an offset that is to be set.
type Reset struct {
	Queue
	From int64 `json:"from"` // what is committed now, or NoOffset
	To   int64 `json:"to"`
}

// PlanReset tells what a reset of a group's offsets in a topic to a place would do, and changes nothing. Errors: ErrNotThere.
func (c *Client) PlanReset(ctx context.Context, group, topic string, to Place) ([]Reset, error) {
	offsets, err := c.Offsets(ctx, group, topic)
	if err != nil {
		return nil, err
	}
	plan := make([]Reset, 0, len(offsets))
	for _, o := range offsets {
		r := Reset{Queue: o.Queue, From: o.Committed}
		if to.kind == placeTime {
			r.To, err = c.OffsetAt(ctx, o.Queue, to.value)
		} else {
			r.To, err = to.within(o.Queue, o.Min, o.Max)
		}
		if err != nil {
			return nil, err
		}
		plan = append(plan, r)
	}
	return plan, nil
}

// ApplyReset sets the offsets of a plan. Members of the group that are connected go on from there. Brokers that know no such request
// get a commit, which members can overwrite.
func (c *Client) ApplyReset(ctx context.Context, group string, plan []Reset) error {
	for _, r := range plan {
		_, err := c.call(ctx, r.addr, protocol.ReqInvokeBrokerToResetOffset, &protocol.ResetOffsetRequest{
			Topic: r.Topic, Group: group, QueueId: r.ID, Offset: r.To, IsForce: true,
		}, nil)
		if answered(err, protocol.RespRequestCodeNotSupported, protocol.RespConsumerNotOnline) {
			_, err = c.call(ctx, r.addr, protocol.ReqUpdateConsumerOffset, &protocol.UpdateConsumerOffsetRequest{
				ConsumerGroup: []byte(group), Topic: []byte(r.Topic), QueueId: r.ID, HasQueueId: true, CommitOffset: r.To, HasCommitOffset: true,
				Bname: []byte(r.Broker), Lo: true,
			}, nil)
		}
		if err != nil {
			return fmt.Errorf("reset queue %d of %s on %s: %w", r.ID, r.Topic, r.Broker, err)
		}
	}
	return nil
}
