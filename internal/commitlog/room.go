package commitlog

import (
	"errors"
	"fmt"
	"syscall"
)

// EnsureRoom sees to it that frames of n bytes can be written without another segment, and makes the next one if they
// could not. Whoever asks for more than it is going to write keeps a reserve for what must be written on a full disk. The
// only error is [ErrFull]; for any other, Write tries again and is the one that says so. Tail's holder only.
func (l *Log) EnsureRoom(n int64) error {
	if l.ahead == nil || int64(l.hold.active.end()-l.Tail()) >= n {
		return nil
	}
	err := l.ahead.ensureNext()
	if f := (*FailedError)(nil); errors.As(err, &f) {
		if f.Op == "sync" {
			return l.fail("", "", f)
		}
		if isFull(f.Err) {
			return fmt.Errorf("%w: %s %s: %w", ErrFull, f.Op, f.Path, f.Err)
		}
	}
	return nil
}

// ensureNext makes the segment behind the active one, unless it is there.
func (p *preparer) ensureNext() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.making {
		p.changed.Wait()
	}
	if p.next != nil || p.paused {
		return nil
	}
	p.making = true
	start := p.active.end()
	p.mu.Unlock()
	s, err := p.log.makeSegment(start)
	p.mu.Lock()
	p.making, p.next = false, s
	p.changed.Broadcast()
	return err
}

// checkRoom refuses to make a segment that would not fit: trying would take all that is left of the disk for a moment,
// from whoever else needs a little.
func (l *Log) checkRoom(path string) error {
	u, err := l.opts.FS.GetDiskUsage(l.opts.Dir)
	if err != nil || u.AvailBytes >= uint64(l.opts.SegmentBytes) { // where nobody knows, allocating will tell
		return nil
	}
	return &FailedError{Path: path, Op: "allocate", Err: fmt.Errorf("%d bytes are free: %w", u.AvailBytes, syscall.ENOSPC)}
}
