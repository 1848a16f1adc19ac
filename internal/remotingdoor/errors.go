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
	broker.NoOffset:          protocol.RespQueryNotFound,
	broker.NotOnline:         protocol.RespConsumerNotOnline,
	broker.NoMessage:         protocol.RespSystemError,
	broker.Busy:              protocol.RespSystemBusy,
	broker.Unavailable:       protocol.RespServiceNotAvailable,
	broker.Unsupported:       protocol.RespRequestCodeNotSupported,
}

// outcome is the code and the remark for an error.
func outcome(err error) (code int32, remark string) {
	if errors.Is(err, &protocol.FieldError{}) {
		if e, ok := errors.AsType[*protocol.FieldError](err); ok {
			return protocol.RespInvalidParameter, "header " + e.Error()
		}
	}
	e := broker.AsError(err)
	return codes[e.Reason], e.Text
}
