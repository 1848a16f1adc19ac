package admin

import (
	"errors"
	"fmt"
	"slices"

	"github.com/metaqio/metaq/internal/protocol"
)

// ErrNotThere is matched by errors that say that a topic, group or message does not exist.
var ErrNotThere = errors.New("does not exist")

// Error is an answer that says no.
type Error struct {
	Request int32  // code of the request
	Server  string // address of the server that was asked
	Code    int32  // code of the answer
	Remark  string // of the answer
}

// Error names the code, its number and the remark.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s (%d)", protocol.RespName(e.Code), e.Code)
	if e.Remark != "" {
		text += ": " + e.Remark
	}
	return fmt.Sprintf("%s (asked %s for %s)", text, e.Server, protocol.ReqName(e.Request))
}

// Is makes codes that mean so match ErrNotThere.
func (e *Error) Is(target error) bool {
	return target == ErrNotThere && (e.Code == protocol.RespTopicNotExist || e.Code == protocol.RespSubscriptionGroupNotExist)
}

// answered tells whether err is an answer with one of the codes.
func answered(err error, codes ...int32) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && slices.Contains(codes, e.Code)
}
