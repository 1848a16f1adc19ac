package shard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/metaqio/metaq/internal/commitlog"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/raftlog"
	"github.com/metaqio/metaq/message"
)

// apply folds a committed entry. It is called by the tail's holder, in log order.
func (s *Shard) apply(e raftlog.Entry) error {
	start := time.Now()
	f, own := s.takeFlight(e)
	var err error
	switch {
	case e.Kind != commitlog.KindMessages: // an entry of raft itself
	case own:
		err = s.foldOwn(e, f)
	default:
		err = s.foldLog(e)
	}
	if err != nil {
		return err
	}
	s.applied.Store(int64(e.Position) + int64(e.Size))
	s.checkpoint.index, s.checkpoint.term = e.Index, e.Term
	s.Stats.Entries.Add(1)
	s.Stats.Fold.Observe(time.Since(start))
	if own {
		for _, b := range f.batches {
			b.Done(b)
		}
	}
	return nil
}

// takeFlight returns what was proposed as entry e. Proposals that another leader's
// entries replaced are answered as lost.
func (s *Shard) takeFlight(e raftlog.Entry) (flight, bool) {
	for len(s.tail.inflight) > 0 {
		f := s.tail.inflight[0]
		if f.index > e.Index {
			break
		}
		s.tail.inflight = append(s.tail.inflight[:0], s.tail.inflight[1:]...)
		if f.index == e.Index && f.term == e.Term {
			return f, true
		}
		s.refuse(f.batches, ErrLost)
	}
	return flight{}, false
}

// foldOwn folds an entry whose batches are at hand: nothing is parsed, and targets are known.
func (s *Shard) foldOwn(e raftlog.Entry, f flight) error {
	s.state.Lock()
	defer s.state.Unlock()
	at := At{Index: e.Index, Time: f.time}
	for _, b := range f.batches {
		for i := range b.Msgs {
			m := &b.Msgs[i]
			at.Position = b.Position(i)
			counts := m.Target.Append(m.Offset, at.Position, m.Size, m.Tag)
			if counts && !m.Watched {
				continue
			}
			if err := s.foldOdd(at, b, m, counts); err != nil {
				return err
			}
		}
		s.foldKeys(at, b)
		s.Stats.Messages.Add(int64(len(b.Msgs)))
		s.Stats.Bytes.Add(int64(len(b.Records)))
	}
	at.Position = e.Position
	for _, b := range f.batches {
		if err := s.foldCommands(at, b.Commands); err != nil {
			return err
		}
	}
	return nil
}

// foldKeys gives the keys of a batch to the key index.
func (s *Shard) foldKeys(at At, b *Batch) {
	if s.opts.Keys == nil {
		return
	}
	for _, k := range b.Keys {
		if m := &b.Msgs[k.Msg]; !m.Gone {
			at.Position = b.Base + message.Position(m.Start)
			s.opts.Keys.Append(k.Hash, at)
		}
	}
}

// foldOdd folds a message that the quick way does not do: its target is out of date, or further views want it.
func (s *Shard) foldOdd(at At, b *Batch, m *Msg, counts bool) error {
	record := b.Records[m.Start : m.Start+m.Size]
	stampOne(record, b, m) // the batch's own copy still has its holes
	var err error
	if !counts {
		if counts, err = s.opts.Queues.FoldRecord(at, record); err != nil {
			return err
		}
	}
	if m.Gone = !counts; m.Gone {
		s.Stats.Dropped.Add(1)
		return nil
	}
	return s.foldWatched(at, record)
}

func stampOne(r []byte, b *Batch, m *Msg) {
	be := binary.BigEndian
	be.PutUint64(r[message.RecordQueueOffsetAt:], uint64(m.Offset))
	be.PutUint64(r[message.RecordPositionAt:], uint64(b.Base)+uint64(m.Start))
	be.PutUint64(r[m.TimeAt:], uint64(b.Time))
}

// foldWatched gives a record that counts to all other views that want records.
func (s *Shard) foldWatched(at At, record []byte) error {
	for _, v := range s.records {
		if _, err := v.FoldRecord(at, record); err != nil {
			return err
		}
	}
	return nil
}

// foldLog folds an entry from its frame: after a restart, or on a replica that does not lead.
func (s *Shard) foldLog(e raftlog.Entry) error {
	frame, err := s.log.Read(s.tail.read[:0], e.Position, e.Size)
	if err != nil {
		return err
	}
	s.tail.read = frame
	if cap(s.tail.read) > 1<<20 {
		s.tail.read = nil
	}
	f, err := commitlog.ParseFrame(frame)
	if err != nil {
		return err
	}
	s.state.Lock()
	defer s.state.Unlock()
	return s.foldFrame(f)
}

// foldFrame folds records and commands of a frame. REQUIRES: state held.
func (s *Shard) foldFrame(f commitlog.Frame) error {
	rest := f.Payload
	at := At{Index: f.Index, Time: f.Time}
	for range f.Count {
		if len(rest) < 4 {
			return errors.New("records end early")
		}
		n := binary.BigEndian.Uint32(rest)
		if n < 4 || uint64(n) > uint64(len(rest)) {
			return fmt.Errorf("record claims %d bytes of %d", n, len(rest))
		}
		at.Position = f.Position + message.Position(len(f.Payload)-len(rest)+commitlog.HeaderSize)
		record := rest[:n]
		counts, err := s.opts.Queues.FoldRecord(at, record)
		if err == nil && counts {
			err = s.foldWatched(at, record)
		}
		if err == nil && counts && s.opts.Keys != nil {
			_, err = s.opts.Keys.FoldRecord(at, record)
		}
		if err != nil {
			return err
		}
		if !counts {
			s.Stats.Dropped.Add(1)
		}
		rest = rest[n:]
	}
	s.Stats.Messages.Add(int64(f.Count))
	s.Stats.Bytes.Add(int64(len(f.Payload) - len(rest)))
	at.Position = f.Position
	return s.foldCommands(at, rest)
}

func (s *Shard) foldCommands(at At, run []byte) error {
	if len(run) == 0 {
		return nil
	}
	r := entry.NewReader(run)
	for c, ok := r.Next(); ok; c, ok = r.Next() {
		for _, v := range s.folders[c.Kind] {
			if err := v.FoldCommand(at, c); err != nil {
				return fmt.Errorf("fold command of kind %d: %w", c.Kind, err)
			}
		}
		if c.Kind == entry.KindDropLog {
			if err := s.foldDrop(c); err != nil {
				return err
			}
		}
	}
	return r.Err()
}
