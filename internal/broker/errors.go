package broker

import (
	"errors"
	"fmt"

	"github.com/metaqio/metaq/internal/shard"
)

// Reason says why a use case was refused; a door turns it into a code.
type Reason byte

// The reasons.
const (
	Internal Reason = iota
	InvalidName
	TopicNotFound
	TopicForbidden // a system topic that clients may not send to
	GroupNotFound
	NoPermission
	InvalidQueue
	InvalidParameter
	MessageIllegal // body, properties or flags
	NotSubscribed
	SubscriptionStale
	BadExpression
	NoFilter         // the expression of the client's heartbeat is wrong
	NoOffset         // a group has not committed an offset yet
	NotOnline        // nobody of the group is connected
	NoMessage        // nothing at that place
	Busy             // a limit of the process is reached: try again
	Unavailable      // disk full, stopping, not the leader: try another node
	NoTransaction    // no open transaction is what the request says
	IllegalOperation // too late, or against what was decided
	NotLeading       // another replica decides
	Unsupported
	ReplyFailed // who asked did not get the reply
)

// Reasons is the number of reasons.
const Reasons = int(ReplyFailed) + 1

var reasonNames = [Reasons]string{
	Internal: "internal", InvalidName: "invalid-name", TopicNotFound: "topic-not-found", TopicForbidden: "topic-forbidden",
	GroupNotFound: "group-not-found", NoPermission: "no-permission", InvalidQueue: "invalid-queue", InvalidParameter: "invalid-parameter",
	MessageIllegal: "message-illegal", NotSubscribed: "not-subscribed", SubscriptionStale: "subscription-stale",
	BadExpression: "bad-expression", NoFilter: "no-filter", NoOffset: "no-offset", NotOnline: "not-online", NoMessage: "no-message", Busy: "busy",
	Unavailable: "unavailable", NoTransaction: "no-transaction", IllegalOperation: "illegal-operation", NotLeading: "not-leading", Unsupported: "unsupported", ReplyFailed: "reply-failed",
}

// String is a short name, as metrics have it.
func (r Reason) String() string {
	if int(r) < Reasons {
		return reasonNames[r]
	}
	return "internal"
}

// Error is a refusal that the client is told of.
type Error struct {
	Reason Reason
	Text   string
}

func (e *Error) Error() string { return e.Text }

func refuse(r Reason, format string, args ...any) error {
	return &Error{Reason: r, Text: fmt.Sprintf(format, args...)}
}

// ErrCold says that a hot use case cannot answer without blocking: call its cold twin on a goroutine.
var ErrCold = errors.New("needs a goroutine that may block")

// ErrNewGroup is the [ErrCold] of a pull whose group has to be made first: make it
// with EnsureGroups, then pull again in a pass, which alone commits and lets wait.
var ErrNewGroup = fmt.Errorf("the consumer group has to be made: %w", ErrCold)

// AsError gives the reason of any error that a use case or a batch returned.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	switch {
	case errors.Is(err, shard.ErrBusy):
		return &Error{Busy, "[PC_SYNCHRONIZED]broker busy: " + err.Error()}
	case errors.Is(err, shard.ErrFull):
		return &Error{Unavailable, "the disk of the broker is full: nothing was stored; sends resume when there is room (disk-stop-use)"}
	case errors.Is(err, shard.ErrStopped):
		return &Error{Unavailable, "the broker is shutting down or has failed: " + err.Error()}
	case errors.Is(err, shard.ErrNotLeader), errors.Is(err, shard.ErrLost):
		return &Error{Unavailable, "this node does not lead the shard: " + err.Error()}
	case errors.Is(err, shard.ErrTooLarge):
		return &Error{MessageIllegal, err.Error()}
	}
	return &Error{Internal, err.Error()}
}
