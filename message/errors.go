package message

import (
	"errors"
	"fmt"
)

var (
	// ErrShort says that the bytes end before the thing they begin does.
	ErrShort = errors.New("bytes end too early")
	// ErrMalformed says that bytes are not what they should be, however many follow.
	ErrMalformed = errors.New("malformed bytes")
	// ErrTooLarge says that something is over a limit.
	ErrTooLarge = errors.New("over the limit")
	// ErrBadName says that a name is empty, too long or has a forbidden character.
	ErrBadName = errors.New("invalid name")
)

// A FormatError tells which field of an encoded record or batch member is wrong.
// It matches [ErrShort] or [ErrMalformed].
type FormatError struct {
	What   string // "record", "batch member", "offset id"
	Field  string // as named in the layout, e.g. "body length"
	Actual int64  // the value found
	Limit  int64  // the largest (or only) value that would have been right
	Kind   error  // ErrShort or ErrMalformed
}

// Error names the field, its value and what was expected.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: %s is %d, limit %d: %v", e.What, e.Field, e.Actual, e.Limit, e.Kind)
}

// Unwrap gives the kind.
func (e *FormatError) Unwrap() error { return e.Kind }

// A LimitError tells what is too large. It matches [ErrTooLarge].
type LimitError struct {
	What   string // e.g. "properties"
	Actual int    // bytes, or members for "batch members"
	Limit  int
}

// Error names the thing, its size and the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: %d is over the limit of %d", e.What, e.Actual, e.Limit)
}

// Unwrap gives ErrTooLarge.
func (e *LimitError) Unwrap() error { return ErrTooLarge }

// A NameError tells why a topic or group name is refused. It matches [ErrBadName].
type NameError struct {
	Kind  string // "topic" or "group"
	Name  string
	Why   string
	Limit int // the allowed length when the name is too long, else 0
}

// Error names the name, the reason and, for a long name, both lengths.
func (e *NameError) Error() string {
	if e.Limit > 0 {
		return fmt.Sprintf("%s name %.32q… %s: %d bytes, limit %d", e.Kind, e.Name, e.Why, len(e.Name), e.Limit)
	}
	return fmt.Sprintf("%s name %q %s", e.Kind, e.Name, e.Why)
}

// Unwrap gives ErrBadName.
func (e *NameError) Unwrap() error { return ErrBadName }
