package commitlog

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/metaqio/metaq/message"
)

var (
	// ErrFull says that the disk has no room. Nothing of the log is lost: the frames that wait can be written again later or be dropped with
	// [Log.Rollback].
	ErrFull = errors.New("disk is full")

	// ErrFailed says that the log failed for good, because a write or a sync did. Every error of this kind is a [*FailedError].
	ErrFailed = errors.New("log failed")

	// ErrTooLarge says that a frame is larger than a segment or a quarter of the ring. The text around it names size and limit.
	ErrTooLarge = errors.New("frame is too large")

	// ErrUnwritten says that half a ring of sealed frames waits to be written: call [Log.Write] first.
	ErrUnwritten = errors.New("too many bytes wait to be written")

	// ErrDropped says that a position is below the start of the log: retention removed it.
	ErrDropped = errors.New("position is below the start of the log")

	// ErrBeyondTail says that a range reaches beyond the tail, or that a position is no frame's (or not the tail, for AppendFrame).
	ErrBeyondTail = errors.New("position is beyond the tail of the log")

	// ErrPosition says that a frame of a leader does not fit to the tail of this log.
	ErrPosition = errors.New("frame does not belong at the tail")

	// ErrClosed says that the log was closed.
	ErrClosed = errors.New("log is closed")
)

// FailedError is the end of a log: after a failed write the disk cannot be trusted, and after a failed sync the kernel may have dropped what it
// could not write, so that a second sync would succeed and prove nothing. Only a restart, which reads the disk, may go on.
type FailedError struct {
	Path string // the file or directory
	Op   string // "write", "sync", "create", …
	Err  error
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("log failed: %s %s: %v", e.Op, e.Path, e.Err)
}

// Unwrap makes errors.Is find ErrFailed and the cause.
func (e *FailedError) Unwrap() []error { return []error{ErrFailed, e.Err} }

// CorruptError is damage at a known place: bytes that had been synced and are no longer what was written.
type CorruptError struct {
	File     string           // the segment's path
	Position message.Position // of the frame that is damaged
	Why      string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("log is damaged: %s at position %d: %s", e.File, e.Position, e.Why)
}

// isFull says whether an error means that the disk, or the quota, is used up.
func isFull(err error) bool {
	return err != nil && (vfs.IsNoSpaceError(err) || errors.Is(err, syscall.EDQUOT))
}
