package commitlog

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/metaqio/metaq/message"
)

const (
	prewriteAhead = 128 << 20 // how far ahead of the tail zeros are written at most
	leastAhead    = 4 << 20   // how far at least: a log that is hardly written to gets no more
	prewriteStep  = 256 << 10 // one pwrite of zeros; a write of the tail may have to wait for one
	prewriteSync  = 4 << 20   // zeros between two syncs
	prewriteJump  = 1 << 20   // how far to go ahead when the tail has overtaken
)

var zeros [prewriteStep]byte

// preparer makes the next segment before it is needed, and (with Prewrite) fills blocks ahead of the tail with zeros; how far ahead depends on how
// much is written. One goroutine (run); the tail's holder calls claim, take, pause and resume.
//
// Zeros never meet the tail: before each write the tail's holder claims everything up to the write's end and waits for a step of zeros that lies
// below; a step of zeros is announced (busy) under the same mutex, and begins behind the claim.
type preparer struct {
	log     *Log
	kick    chan struct{} // there may be work; holds one
	stop    chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex       // guards the following; never held across the disk
	changed sync.Cond        // busy or making ended
	active  *segment         // takes the tail's writes
	next    *segment         // follows, ready for use; nil when it was not made yet
	making  bool             // somebody makes the next segment
	paused  bool             // a cut removes segments: nothing may be made or written meanwhile
	retry   message.Position // after an error, the background tries again when the tail is here
	claimed message.Position // end of the tail's newest write
	busy    message.Position // a step of zeros that begins here is being written; -1 when none is
	zeroed  message.Position // zeros were written up to here
	began   message.Position // where the tail was in the beginning

	prewrite bool // to write zeros; false after an error

	zero zeroFile // of the goroutine
}

// zeroFile is the segment that zeros are written to, and the handle for that.
type zeroFile struct {
	seg      *segment
	file     vfs.File
	unsynced int64
}

func newPreparer(l *Log, active, next *segment, tail message.Position) *preparer {
	p := &preparer{
		log: l, kick: make(chan struct{}, 1), stop: make(chan struct{}), active: active, next: next, claimed: tail, busy: -1,
		began: tail, prewrite: l.opts.Prewrite,
	}
	p.changed.L = &p.mu
	p.running.Go(p.run)
	return p
}

// claim says that everything below end is, or is about to be, written by the tail's holder.
func (p *preparer) claim(end message.Position) {
	p.mu.Lock()
	for p.busy >= 0 && p.busy < end {
		p.changed.Wait()
	}
	p.claimed = max(p.claimed, end)
	last := p.active
	if p.next != nil {
		last = p.next
	}
	work := p.wantsNext() || p.prewrite && p.zeroed < min(end+p.distance()*3/4, last.end())
	p.mu.Unlock()
	if work {
		select {
		case p.kick <- struct{}{}:
		default:
		}
	}
}

// distance is how far to go ahead of the tail. REQUIRES: mu held.
func (p *preparer) distance() message.Position {
	return min(prewriteAhead, max(leastAhead, 4*(p.claimed-p.began)))
}

// wantsNext says whether it is time to make the next segment. REQUIRES: mu held.
func (p *preparer) wantsNext() bool {
	if p.next != nil || p.making || p.paused || p.claimed < p.retry {
		return false
	}
	left := int64(p.active.end() - p.claimed)
	return left <= p.active.size/2 || p.prewrite && left <= prewriteAhead/2
}

// take returns the segment that starts at a position, which follows the active one, and makes it the active one.
func (p *preparer) take(start message.Position) (*segment, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.making {
		p.changed.Wait()
	}
	s := p.next
	if s == nil {
		p.making = true
		p.mu.Unlock()
		made, err := p.log.makeSegment(start)
		p.mu.Lock()
		p.making = false
		p.changed.Broadcast()
		if err != nil {
			return nil, err
		}
		s = made
	}
	p.next, p.active, p.retry = nil, s, 0
	return s, nil
}

// pause stops the background work until resume, so that segments can be removed. It returns the next segment, which is the caller's now.
func (p *preparer) pause() (next *segment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = true
	for p.making || p.busy >= 0 {
		p.changed.Wait()
	}
	next, p.next = p.next, nil
	return next
}

// resume goes on with another segment that takes the writes.
func (p *preparer) resume(active *segment, tail message.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active, p.claimed, p.zeroed, p.retry, p.paused = active, tail, 0, 0, false
}

func (p *preparer) run() {
	for {
		select {
		case <-p.stop:
			return
		case <-p.kick:
		}
		for p.step() {
			select {
			case <-p.stop:
				return
			default:
			}
		}
	}
}

// step does one piece of work and says whether there may be more.
func (p *preparer) step() (more bool) {
	p.mu.Lock()
	if p.wantsNext() {
		p.making = true
		start := p.active.end()
		p.mu.Unlock()
		p.makeNext(start)
		return true
	}
	if !p.prewrite || p.paused {
		p.mu.Unlock()
		return false
	}
	s, from, n := p.nextZeros()
	if n > 0 {
		p.busy = from
	}
	p.mu.Unlock()
	if n <= 0 {
		p.endZeros(p.syncZeros())
		return false
	}
	err := p.writeZeros(s, from, n)
	p.mu.Lock()
	p.busy, p.zeroed = -1, from+message.Position(n)
	p.changed.Broadcast()
	p.mu.Unlock()
	if err == nil && p.zero.unsynced >= prewriteSync {
		err = p.syncZeros()
	}
	p.endZeros(err)
	return err == nil
}

// makeNext makes the next segment in the background. An error is only logged: when the segment is needed, take tries once more.
func (p *preparer) makeNext(start message.Position) {
	s, err := p.log.makeSegment(start)
	p.mu.Lock()
	p.making, p.next = false, s
	if err != nil {
		p.retry = p.claimed + message.Position(p.active.size/16)
	}
	p.changed.Broadcast()
	p.mu.Unlock()
	if f := (*FailedError)(nil); errors.As(err, &f) {
		if err = fmt.Errorf("%s %s: %w", f.Op, f.Path, f.Err); f.Op == "sync" { // else nothing has failed for good
			err = p.log.fail("", "", f)
		}
	}
	if err != nil {
		p.log.opts.Log.Warn("next segment could not be made ahead of time", "error", err)
	}
}

// nextZeros chooses the next step of zeros; n is 0 when there is none to write. REQUIRES: mu held.
func (p *preparer) nextZeros() (s *segment, from message.Position, n int64) {
	tail := (p.claimed + pageBytes - 1) / pageBytes * pageBytes
	from = p.zeroed
	if from < tail {
		if from = tail; p.zeroed != 0 {
			from += prewriteJump
		}
	}
	s = p.active
	if from >= s.end() {
		if s = p.next; s == nil || from >= s.end() {
			return nil, from, 0
		}
	}
	return s, from, min(prewriteStep, int64(s.end()-from), int64(p.claimed+p.distance()-from))
}

func (p *preparer) writeZeros(s *segment, from message.Position, n int64) error {
	z := &p.zero
	if z.seg != s {
		if err := p.closeZeros(); err != nil {
			return err
		}
		f, err := s.fs.OpenReadWrite(s.path, vfs.WriteCategoryUnspecified)
		if err != nil {
			return fmt.Errorf("open segment to write ahead: %w", err)
		}
		z.seg, z.file = s, f
	}
	if _, err := z.file.WriteAt(zeros[:n], int64(from-s.start)); err != nil {
		return fmt.Errorf("write ahead: %w", err)
	}
	z.unsynced += n
	return nil
}

// syncZeros syncs what was written ahead. Its failure is the log's: the kernel may have dropped pages of the tail in the same file.
func (p *preparer) syncZeros() error {
	z := &p.zero
	if z.file == nil || z.unsynced == 0 {
		return nil
	}
	z.unsynced = 0
	if err := z.file.SyncData(); err != nil {
		return p.log.fail("sync", z.seg.path, err)
	}
	return nil
}

// endZeros gives up writing ahead after an error: the log does not need it, and if the disk is bad the tail will find out.
func (p *preparer) endZeros(err error) {
	if err == nil {
		return
	}
	p.mu.Lock()
	p.prewrite = false
	p.mu.Unlock()
	p.log.opts.Log.Warn("blocks are no longer written ahead of the log", "error", err)
}

// closeZeros syncs and closes the file that zeros were written to.
func (p *preparer) closeZeros() error {
	z := &p.zero
	if z.file == nil {
		return nil
	}
	err := p.syncZeros()
	if e := z.file.Close(); err == nil && e != nil {
		err = fmt.Errorf("close segment written ahead: %w", e)
	}
	*z = zeroFile{}
	return err
}

// close stops the goroutine and lets go of what it made.
func (p *preparer) close() error {
	close(p.stop)
	p.running.Wait()
	err := p.closeZeros()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != nil {
		if e := p.next.release(); err == nil {
			err = e
		}
		p.next = nil
	}
	return err
}

// makeSegment makes the file of a segment, with its blocks, its size and its name on the disk.
func (l *Log) makeSegment(start message.Position) (*segment, error) {
	s := newSegment(l.opts.FS, l.opts.Dir, start, l.opts.SegmentBytes)
	if err := l.checkRoom(s.path); err != nil {
		return nil, err
	}
	f, err := s.fs.Create(s.path, vfs.WriteCategoryUnspecified) // fresh: whatever had this name is gone
	if err != nil {
		return nil, &FailedError{Path: s.path, Op: "create", Err: err}
	}
	if err := f.Close(); err != nil {
		return nil, &FailedError{Path: s.path, Op: "close", Err: err}
	}
	if err = s.openForWriting(); err == nil {
		err = s.allocate()
	}
	if err != nil {
		_ = s.release()         // nothing was written
		_ = s.fs.Remove(s.path) // gives the blocks back to a full disk; if it stays, it is empty, and made again later
		return nil, err
	}
	if err := syncDir(l.opts.FS, l.opts.Dir); err != nil {
		_ = s.release() // nothing was written
		return nil, err
	}
	return s, nil
}
