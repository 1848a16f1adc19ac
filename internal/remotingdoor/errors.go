package remotingdoor

import (
	"errors"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
)

// codes turns the broker's reasons into response codes (remoting.md §3.1).
var codes = [...]int32{
	broker.Internal:          protocol.RespSystemError,
	broker.InvalidName:       protocol.RespInvalidParameter,
	broker.TopicNotFound:     protocol.RespTopicNotExist,
	broker.TopicForbidden:    protocol.RespNoPermission,
	broker.GroupNotFound:     protocol.RespSubscriptionGroupNotExist,
	broker.NoPermission:      protocol.RespNoPermission,
	broker.InvalidQueue:      protocol.RespInvalidParameter,
	broker.InvalidParameter:  protocol.RespInvalidParameter,
	broker.MessageIllegal:    protocol.RespMessageIllegal,
	broker.NotSubscribed:     protocol.RespSubscriptionNotExist,
	broker.SubscriptionStale: protocol.RespSubscriptionNotLatest,
	broker.BadExpression:     protocol.RespSubscriptionParseFailed,
	broker.NoFilter:          protocol.RespFilterDataNotExist,
	broker.NoOffset:          protocol.RespQueryNotFound,
	broker.NotOnline:         protocol.RespConsumerNotOnline,
	broker.NoMessage:         protocol.RespSystemError,
	broker.Busy:              protocol.RespSystemBusy,
	broker.Unavailable:       protocol.RespServiceNotAvailable,
	broker.NoTransaction:     protocol.RespSystemError,
	broker.IllegalOperation:  protocol.RespIllegalOperation,
	broker.NotLeading:        protocol.RespSlaveNotAvailable,
	broker.Unsupported:       protocol.RespRequestCodeNotSupported,
	broker.ReplyFailed:       protocol.RespSystemError,
}

// outcome is the code and the remark for an error that a client is about to be told; it counts it.
func (d *Door) outcome(err error) (code int32, remark string) {
	if errors.Is(err, protocol.ErrMalformed) { // the code is what RocketMQ's servers answer then
		d.b.Stats.RefusedFor[broker.InvalidParameter].Add(1)
		return protocol.RespSystemError, err.Error()
	}
	e := broker.AsError(err)
	d.b.Stats.RefusedFor[e.Reason].Add(1)
	return codes[e.Reason], e.Text
}
