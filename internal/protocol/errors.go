package protocol

import (
	"errors"
	"fmt"
)

// ErrMalformed is matched by every error that says that bytes are not what the
// protocol wants: [*FrameError], [*HeaderError], [*FieldError] and [*BodyError].
var ErrMalformed = errors.New("malformed")

// A FrameError says that the first words of a frame make no sense. Nothing that
// follows on the connection can be understood.
type FrameError struct {
	Field  string // "length" or "header length"
	Actual int64
	Limit  int64 // the largest value allowed, or the smallest when Actual is below it
}

// Error names the word, its value and the limit.
func (e *FrameError) Error() string {
	return fmt.Sprintf("frame: %s is %d, limit %d", e.Field, e.Actual, e.Limit)
}

// Is makes it match ErrMalformed.
func (e *FrameError) Is(target error) bool { return target == ErrMalformed }

// A HeaderError says what is wrong in a header, and where.
type HeaderError struct {
	Encoding Encoding
	At       int // byte in the header
	Why      string
}

// Error names the encoding, the place and the reason.
func (e *HeaderError) Error() string {
	return fmt.Sprintf("%v header, byte %d: %s", e.Encoding, e.At, e.Why)
}

// Is makes it match ErrMalformed.
func (e *HeaderError) Is(target error) bool { return target == ErrMalformed }

// A FieldError says which ext field of a typed header is wrong.
type FieldError struct {
	Field string
	Why   string // "is missing", "is not a 32-bit integer", …
	Value string // what was there, shortened
}

// Error names the field, the reason and the value.
func (e *FieldError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("header field %s %s", e.Field, e.Why)
	}
	return fmt.Sprintf("header field %s %s: %q", e.Field, e.Why, e.Value)
}

// Is makes it match ErrMalformed.
func (e *FieldError) Is(target error) bool { return target == ErrMalformed }

// missing is why a required field is wrong most often.
const missing = "is missing"

// maxShown is how much of a bad value an error repeats.
const maxShown = 64

func fieldError(field, why string, value []byte) *FieldError {
	if len(value) > maxShown {
		return &FieldError{Field: field, Why: why, Value: string(value[:maxShown]) + "…"}
	}
	return &FieldError{Field: field, Why: why, Value: string(value)}
}

// A BodyError says what is wrong in a body, and where.
type BodyError struct {
	Path string // the member, e.g. "consumerDataSet[0].groupName"; empty for the whole
	At   int    // byte in the body
	Why  string
}

// Error names the member, the place and the reason.
func (e *BodyError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("body, byte %d: %s", e.At, e.Why)
	}
	return fmt.Sprintf("body, byte %d, %s: %s", e.At, e.Path, e.Why)
}

// Is makes it match ErrMalformed.
func (e *BodyError) Is(target error) bool { return target == ErrMalformed }
