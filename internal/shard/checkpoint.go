package shard

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/message"
)

// checkpoint is what belongs to writing checkpoints. Fields without a word belong to the tail's holder.
type checkpoint struct {
	index, term uint64           // of the last folded entry
	started     message.Position // of the last checkpoint that was begun
	busy        atomic.Bool      // one is being written
	at          atomic.Int64     // position of the last one that is on the disk
	writing     sync.WaitGroup
	drop        atomic.Int64 // retention gave up everything before; segments follow once a checkpoint is past them
	err         error        // why the last one was not written; for who has waited for writing
}

// beginCheckpoint takes down what the views say has changed and writes it in the
// background. REQUIRES: the caller holds the tail.
func (s *Shard) beginCheckpoint() {
	if s.checkpoint.busy.Load() || s.tail.failed {
		return
	}
	at := kv.Applied{Position: s.Applied(), Index: s.checkpoint.index, Term: s.checkpoint.term}
	if at.Index == 0 || at.Position == s.checkpoint.started {
		return
	}
	start := time.Now()
	var writes []func(*kv.Batch)
	var done []func()
	s.state.Lock()
	for _, v := range s.views() {
		w, d := v.Checkpoint()
		writes, done = append(writes, w), append(done, d)
	}
	s.state.Unlock()
	s.checkpoint.busy.Store(true)
	s.checkpoint.started = at.Position
	finish := func() {
		defer s.checkpoint.busy.Store(false)
		if err := s.writeCheckpoint(at, writes); err != nil {
			s.checkpointFailed(err)
			return
		}
		s.state.Lock()
		for _, d := range done {
			d()
		}
		s.state.Unlock()
		s.checkpoint.at.Store(int64(at.Position))
		s.Stats.Checkpoints.Add(1)
		s.Stats.Checkpoint.Observe(time.Since(start))
		s.dropSegments()
	}
	if s.opts.Manual { // everything at its place in time
		finish()
		return
	}
	s.checkpoint.writing.Go(finish)
}

// checkpointFailed judges an error of a checkpoint. Only at the end a full disk is one; what the checkpoint would have
// saved is folding at the next start.
func (s *Shard) checkpointFailed(err error) {
	if errors.Is(err, kv.ErrFull) {
		s.opts.Log.Warn("last checkpoint not written, the next start folds from the one before", "dir", s.opts.Dir, "error", err)
		return
	}
	s.checkpoint.err = err
	s.fail(err)
}

func (s *Shard) writeCheckpoint(at kv.Applied, writes []func(*kv.Batch)) error {
	// The store must never know more than the log that is on the disk.
	if s.log.Synced() < at.Position {
		if err := s.sync(); err != nil {
			return err
		}
	}
	b := s.store.NewBatch()
	for _, w := range writes {
		w(b)
	}
	if err := s.store.Commit(b, at); err != nil {
		return err
	}
	return s.store.Flush()
}

// foldDrop notes that retention gave up the oldest part of the log.
func (s *Shard) foldDrop(c entry.Raw) error {
	var d entry.DropLog
	if err := d.ParseBody(c.Body); err != nil {
		return err
	}
	if int64(d.Before) > s.checkpoint.drop.Load() {
		s.checkpoint.drop.Store(int64(d.Before))
	}
	return nil
}

// dropSegments removes the segments that retention gave up and that no view needs.
func (s *Shard) dropSegments() {
	before := message.Position(min(s.checkpoint.drop.Load(), s.checkpoint.at.Load()))
	s.state.RLock()
	for _, v := range s.opts.Views {
		if h, ok := v.(Holder); ok {
			if needs := h.Needs(); needs >= 0 {
				before = min(before, needs)
			}
		}
	}
	s.state.RUnlock()
	if before <= s.log.Start() {
		return
	}
	if n, err := s.log.Drop(before); err != nil {
		s.fail(fmt.Errorf("drop old segments: %w", err))
	} else if n > 0 {
		s.opts.Log.Info("old segments dropped", "segments", n, "log_begins_at", int64(s.log.Start()))
	}
}

// CheckpointNow begins a checkpoint, as an operator or a test may ask for. Segments that retention gave up go even when
// another checkpoint is still being written: it may be waiting for the room that they take.
func (s *Shard) CheckpointNow() {
	s.do(func() {
		if s.checkpoint.busy.Load() && !s.opts.Manual {
			s.checkpoint.writing.Go(s.dropSegments)
			return
		}
		s.beginCheckpoint()
	})
}
