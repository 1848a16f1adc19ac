package entry

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Kind says which command it is. Part of the on-disk format: do not renumber.
type Kind byte

// The kinds of commands.
const (
	KindPutTopic      Kind = 1
	KindDeleteTopic   Kind = 2
	KindPutGroup      Kind = 3
	KindDeleteGroup   Kind = 4
	KindCommitOffsets Kind = 5
	KindResetOffsets  Kind = 6
	KindDropLog       Kind = 7
	KindTimerDone     Kind = 8
	KindPutSetting    Kind = 9

	KindEndTransaction   Kind = 10
	KindCheckTransaction Kind = 11
)

// ErrMalformed marks a run of commands that cannot be read.
var ErrMalformed = errors.New("malformed command")

// Command is one change of the state of a shard.
type Command interface {
	Kind() Kind
	// AppendBody appends the protobuf encoding.
	AppendBody(dst []byte) []byte
	// ParseBody reads what AppendBody wrote; unknown fields are passed over. It may keep b.
	ParseBody(b []byte) error
}

// Append appends a command to a run.
func Append(dst []byte, c Command) []byte {
	dst = append(dst, byte(c.Kind()))
	// Most bodies are shorter than 128 bytes: leave one byte for the length and move the body only when that is not enough.
	at := len(dst)
	dst = c.AppendBody(append(dst, 0))
	n := len(dst) - at - 1
	if n < 0x80 {
		dst[at] = byte(n)
		return dst
	}
	var length [binary.MaxVarintLen64]byte
	k := binary.PutUvarint(length[:], uint64(n))
	dst = append(dst, length[:k-1]...)
	copy(dst[at+k:], dst[at+1:at+1+n])
	copy(dst[at:], length[:k])
	return dst
}

// Raw is a command that has not been parsed; Body aliases the run.
type Raw struct {
	Kind Kind
	Body []byte
}

// Reader reads a run of commands.
type Reader struct {
	rest []byte
	err  error
}

// NewReader reads the commands in run.
func NewReader(run []byte) Reader { return Reader{rest: run} }

// Next returns the next command, or ok == false at the end or at an error (Err).
func (r *Reader) Next() (c Raw, ok bool) {
	if r.err != nil || len(r.rest) == 0 {
		return Raw{}, false
	}
	n, k := binary.Uvarint(r.rest[1:])
	if k <= 0 || n > uint64(len(r.rest)-1-k) {
		r.err = fmt.Errorf("%w: kind %d: length exceeds the %d bytes that are left", ErrMalformed, r.rest[0], len(r.rest))
		return Raw{}, false
	}
	end := 1 + k + int(n)
	c = Raw{Kind: Kind(r.rest[0]), Body: r.rest[1+k : end : end]}
	r.rest = r.rest[end:]
	return c, true
}

// Err is the error that ended the run, if any.
func (r *Reader) Err() error { return r.err }
