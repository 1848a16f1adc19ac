package shard

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/metaqio/metaq/internal/commitlog"
	"github.com/metaqio/metaq/message"
)

// tail is what the holder works with.
type tail struct {
	batches  []*Batch // taken, being processed
	spare    []*Batch
	groups   []group
	inflight []flight // proposed, not yet committed, in the order of their index
	slowness time.Duration
	lazy     bool // nothing of what is being proposed needs a sync
	failed   bool
	read     []byte // of entries that are folded from the log
}

// group is a run of batches that share a frame.
type group struct {
	from, to int // in batches
	pos      message.Position
	size     int // of the frame
}

// flight is a proposed frame and the batches in it.
type flight struct {
	index, term uint64
	time        int64
	batches     []*Batch
}

// maxFrame bounds a frame's payload: a quarter of the ring at the most, so that a
// frame is folded long before the ring overwrites it.
func (s *Shard) maxFrame() int { return min(s.opts.RingBytes/8, 16<<20) }

// MaxBatch is how many bytes a batch may have; larger ones fail with ErrTooLarge.
func (s *Shard) MaxBatch() int { return s.maxFrame() }

// Submit gives a batch to the tail. Its Done is called in any case.
func (s *Shard) Submit(b *Batch) {
	s.mu.Lock()
	if s.stopped != nil {
		b.Err = s.stopped
		s.mu.Unlock()
		b.Done(b)
		return
	}
	s.waiting = append(s.waiting, b)
	s.unlockAndHold()
}

// Do submits b on behalf of a goroutine and waits for it. It yields first, so that
// every other runnable submitter gets into the same entry. The batch goes on when
// ctx ends early: its outcome is then unknown to the caller. A Done that b has is
// called in any case, before Do returns or after it gave up.
func (s *Shard) Do(ctx context.Context, b *Batch) error {
	done := make(chan struct{})
	before := b.Done
	b.Done = func(b *Batch) {
		if before != nil {
			before(b)
		}
		close(done)
	}
	runtime.Gosched()
	s.Submit(b)
	select {
	case <-done:
		return b.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// do runs f as the tail's holder, soon; not at all when the shard is stopped.
func (s *Shard) do(f func()) {
	s.mu.Lock()
	if s.stopped != nil {
		s.mu.Unlock()
		return
	}
	s.jobs = append(s.jobs, f)
	s.unlockAndHold()
}

// runJob is do for a shard that is stopped.
func (s *Shard) runJob(f func()) {
	s.mu.Lock()
	s.jobs = append(s.jobs, f)
	s.unlockAndHold()
}

// unlockAndHold processes what waits, unless somebody does already. REQUIRES: mu held.
func (s *Shard) unlockAndHold() {
	if s.held {
		s.mu.Unlock()
		return
	}
	s.held = true
	slow := s.slow.Load()
	s.mu.Unlock()
	if slow {
		select {
		case s.tailWake <- struct{}{}:
		default:
		}
		return
	}
	s.hold()
}

// runTail holds the tail while syncs are too slow for an event loop.
func (s *Shard) runTail() {
	for {
		select {
		case <-s.tailWake:
			s.hold()
		case <-s.closed:
			return
		}
	}
}

// hold processes everything that waits until nothing does. REQUIRES: held was set by the caller.
func (s *Shard) hold() {
	for {
		s.mu.Lock()
		if len(s.waiting) == 0 && len(s.jobs) == 0 {
			s.held = false
			s.mu.Unlock()
			return
		}
		jobs := s.jobs
		s.jobs = nil
		s.tail.batches, s.waiting = s.waiting, s.tail.spare[:0]
		s.mu.Unlock()
		for _, j := range jobs {
			j()
		}
		s.process(s.tail.batches)
		clear(s.tail.batches)
		s.tail.spare = s.tail.batches[:0]
	}
}

// process makes entries of the batches and handles whatever raft has ready.
func (s *Shard) process(batches []*Batch) {
	if s.tail.failed {
		s.refuse(batches, s.Failure())
		return
	}
	if batches = s.admit(s.ofThisTerm(batches)); len(batches) > 0 {
		start := time.Now()
		if err := s.propose(batches); err != nil {
			s.refuse(batches, err)
		}
		defer func() { s.Stats.Append.Observe(time.Since(start)) }()
	}
	if err := s.node.Pump(); err != nil {
		s.tail.failed = true
		s.fail(err)
		s.failFlights(s.Failure())
		return
	}
	s.tail.lazy = false
	s.noteLeading()
	s.opts.Folded()
	if s.applied.Load()-int64(s.checkpoint.started) >= s.opts.CheckpointBytes {
		s.beginCheckpoint()
	}
}

func (s *Shard) refuse(batches []*Batch, err error) {
	for _, b := range batches {
		if b.Err == nil {
			b.Err = err
		}
		b.Done(b)
	}
}

func (s *Shard) failFlights(err error) {
	for _, f := range s.tail.inflight {
		s.refuse(f.batches, err)
	}
	s.tail.inflight = s.tail.inflight[:0]
}

// noteLeading tells everybody whether this replica leads now, and since which term.
func (s *Shard) noteLeading() {
	term := uint64(0)
	if s.node.Leading() {
		term = s.node.Term()
	}
	if term != s.leads.Load() {
		s.leads.Store(term)
	}
}

// ofThisTerm refuses batches that were meant for another leadership, and returns what is left. Who reads the term, then
// the views, then submits, so knows that no other leader's entries came between what it saw and its batch.
func (s *Shard) ofThisTerm(batches []*Batch) []*Batch {
	kept := batches[:0]
	for _, b := range batches {
		if b.Term != 0 && (b.Term != s.node.Term() || !s.node.Leading()) {
			b.Err = fmt.Errorf("%w: the batch belongs to term %d", ErrNotLeader, b.Term)
			b.Done(b)
			continue
		}
		kept = append(kept, b)
	}
	return kept
}

// reserve is how much of the last segment is kept on a full disk for batches without messages: offsets of consumers, and
// retention's word that makes room.
func (s *Shard) reserve() int64 { return min(s.opts.SegmentBytes/8, 1<<20) }

// admit refuses batches with messages when the disk is full but for the reserve, and returns what is left.
func (s *Shard) admit(batches []*Batch) []*Batch {
	size := int64(0)
	for _, b := range batches {
		size += int64(b.size())
	}
	err := s.log.EnsureRoom(size + s.reserve())
	if err == nil {
		return batches
	}
	if !errors.Is(err, commitlog.ErrFull) {
		return batches // the log has failed, and will say so
	}
	kept := batches[:0]
	for _, b := range batches {
		if len(b.Msgs) == 0 {
			kept = append(kept, b)
			continue
		}
		s.full.Store(true)
		b.Err = fmt.Errorf("%w: %w", ErrFull, err)
		b.Done(b)
	}
	return kept
}

// propose lays the batches out as frames, writes them and proposes them. An error
// means that none of them is in the log.
func (s *Shard) propose(batches []*Batch) error {
	if !s.node.Leading() {
		return ErrNotLeader
	}
	if int64(s.log.Tail())-s.applied.Load() > int64(s.opts.RingBytes/2) {
		return fmt.Errorf("%w: %d, limit %d (half of ring-bytes)", ErrBusy, int64(s.log.Tail())-s.applied.Load(), s.opts.RingBytes/2)
	}
	if err := s.split(batches); err != nil {
		return err
	}
	begin, first := s.log.Tail(), s.node.NextIndex()
	lazy := true
	for i := range s.tail.groups {
		g := &s.tail.groups[i]
		if err := s.layout(batches[g.from:g.to], g, first+uint64(i), begin); err != nil {
			return s.takeBack(batches[:g.from], begin, err)
		}
		for _, b := range batches[g.from:g.to] {
			lazy = lazy && b.Lazy
		}
	}
	if err := s.log.Write(); err != nil {
		return s.takeBack(batches, begin, err)
	}
	s.tail.lazy = lazy
	if s.full.Load() && slices.ContainsFunc(batches, func(b *Batch) bool { return len(b.Msgs) > 0 }) {
		s.full.Store(false)
	}
	for _, g := range s.tail.groups {
		index := s.node.NextIndex()
		if err := s.node.Propose(g.pos, g.size); err != nil { // the groups before it are on their way
			s.refuse(batches[g.from:], s.takeBack(batches[g.from:], g.pos, err))
			return nil
		}
		part := batches[g.from:g.to]
		s.tail.inflight = append(s.tail.inflight, flight{index: index, term: s.node.Term(), time: part[0].Time, batches: append([]*Batch(nil), part...)})
	}
	return nil
}

// split forms groups of batches whose frames are not too large.
func (s *Shard) split(batches []*Batch) error {
	s.tail.groups = s.tail.groups[:0]
	limit, size := s.maxFrame(), 0
	for i, b := range batches {
		n := b.size()
		if n > limit {
			return fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, n, limit)
		}
		if i == 0 || size+n > limit {
			s.tail.groups = append(s.tail.groups, group{from: i})
			size = 0
		}
		size += n
		s.tail.groups[len(s.tail.groups)-1].to = i + 1
		s.tail.groups[len(s.tail.groups)-1].size = size
	}
	return nil
}

// layout stamps the messages of a group and lays its frame into the ring.
func (s *Shard) layout(batches []*Batch, g *group, index uint64, begin message.Position) error {
	frame, pos, err := s.log.Reserve(g.size)
	if err != nil {
		return err
	}
	now := s.opts.Now()
	term := s.node.Term()
	at := commitlog.HeaderSize
	count := 0
	for _, b := range batches {
		b.Base, b.Time = pos+message.Position(at), now
		count += len(b.Msgs)
		stamp(frame[at:at+copy(frame[at:], b.Records)], b, term)
		at += len(b.Records)
	}
	for _, b := range batches {
		at += copy(frame[at:], b.Commands)
	}
	h := commitlog.Header{
		Kind: commitlog.KindMessages, Count: uint32(count), Term: term, Index: index, Position: pos, Time: now, Size: len(frame),
		Group: uint32(pos - begin),
	}
	if s.opts.Durability == Async {
		h.Flags = commitlog.FlagAsync
	}
	s.log.Seal(frame, h)
	g.pos, g.size = pos, len(frame)
	return nil
}

// stamp fills the holes of a batch's records, which lie in the frame.
func stamp(records []byte, b *Batch, term uint64) {
	be := binary.BigEndian
	for i := range b.Msgs {
		m := &b.Msgs[i]
		m.Offset = m.Target.Assign(term)
		r := records[m.Start : m.Start+m.Size]
		be.PutUint64(r[message.RecordQueueOffsetAt:], uint64(m.Offset))
		be.PutUint64(r[message.RecordPositionAt:], uint64(b.Base)+uint64(m.Start))
		be.PutUint64(r[m.TimeAt:], uint64(b.Time))
	}
}

// takeBack undoes what propose did: the newest assignments first.
func (s *Shard) takeBack(batches []*Batch, begin message.Position, err error) error {
	for _, b := range slices.Backward(batches) {
		for _, m := range slices.Backward(b.Msgs) {
			m.Target.Rewind(m.Offset)
		}
	}
	if e := s.log.Rollback(begin); e != nil && !errors.Is(err, commitlog.ErrFailed) {
		err = e
	}
	switch {
	case errors.Is(err, commitlog.ErrFailed):
		s.tail.failed = true
		s.fail(err)
		return s.Failure()
	case errors.Is(err, commitlog.ErrFull):
		s.full.Store(true)
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// sync syncs the log and keeps an eye on how long that takes.
func (s *Shard) sync() error {
	start := time.Now()
	err := s.log.Sync()
	d := time.Since(start)
	s.Stats.Sync.Observe(d)
	return err
}

// syncInline is the sync of the tail's holder: it decides who holds the tail.
func (s *Shard) syncInline() error {
	if s.tail.lazy && len(s.opts.Voters) == 1 {
		return nil // nobody is told, and nobody else counts on it
	}
	start := time.Now()
	if err := s.sync(); err != nil {
		return err
	}
	s.tail.slowness += (time.Since(start) - s.tail.slowness) / 16
	s.slow.Store(s.tail.slowness > s.opts.SlowSync)
	return nil
}
