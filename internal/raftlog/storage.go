package raftlog

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/metaqio/metaq/internal/commitlog"
	"github.com/metaqio/metaq/message"
)

// keep is how many of the newest descriptors stay in memory; older ones are read from the log again.
const keep = 1 << 16

// desc describes an entry: where its frame is.
type desc struct {
	pos  message.Position
	term uint64
	size uint32
	kind byte
}

// storage is raft's view of the commit log (raft.Storage). It belongs to the tail's holder.
type storage struct {
	log *commitlog.Log
	st  *state
	// applied is the last entry that the views' checkpoint contains: the base of what raft knows.
	applied uint64
	voters  []uint64
	first   uint64 // index of descs[0]
	descs   []desc
	// baseTerm is the term of the entry before first, baseEnd where it ends in the log.
	baseTerm uint64
	baseEnd  message.Position
}

// end is the position behind an entry.
func (d *desc) end() message.Position { return d.pos + message.Position(d.size) }

func (s *storage) last() uint64 { return s.first + uint64(len(s.descs)) - 1 }

// add appends the descriptor of the next entry.
func (s *storage) add(d desc) {
	if len(s.descs) >= 2*keep {
		drop := len(s.descs) - keep
		s.baseTerm, s.baseEnd = s.descs[drop-1].term, s.descs[drop-1].end()
		s.first += uint64(drop)
		s.descs = append(s.descs[:0], s.descs[drop:]...)
	}
	s.descs = append(s.descs, d)
}

// cut removes entries from index on and returns where the log is to be cut: behind the
// entry before. Where the first of them lay may be later, at the start of the next
// segment, and what replaces it may fit in before that.
func (s *storage) cut(index uint64) (message.Position, error) {
	if index < s.first {
		return 0, fmt.Errorf("conflict at entry %d, before the oldest known entry %d", index, s.first)
	}
	s.descs = s.descs[:index-s.first]
	if len(s.descs) == 0 {
		return s.baseEnd, nil
	}
	return s.descs[len(s.descs)-1].end(), nil
}

// find returns the descriptor of an entry that is in memory.
func (s *storage) find(index uint64) (desc, bool) {
	if index < s.first || index > s.last() {
		return desc{}, false
	}
	return s.descs[index-s.first], true
}

// InitialState implements raft.Storage.
func (s *storage) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	return &raftpb.HardState{Term: &s.st.term, Vote: &s.st.vote, Commit: &s.applied}, &raftpb.ConfState{Voters: s.voters}, nil
}

// Entries implements raft.Storage.
func (s *storage) Entries(lo, hi, maxSize uint64) ([]*raftpb.Entry, error) {
	if hi > s.last()+1 {
		return nil, raft.ErrUnavailable
	}
	n := max(1, min(hi-lo, maxSize/(2*descriptorSize)))
	out := make([]*raftpb.Entry, 0, n)
	if lo < s.first {
		older, err := s.older(lo, min(lo+n, s.first))
		if err != nil {
			return nil, err
		}
		for i, d := range older {
			out = append(out, newEntry(lo+uint64(i), d))
		}
	}
	for i := lo + uint64(len(out)); i < lo+n; i++ {
		out = append(out, newEntry(i, s.descs[i-s.first]))
	}
	return out, nil
}

func newEntry(index uint64, d desc) *raftpb.Entry {
	e := &raftpb.Entry{Term: &d.term, Index: &index}
	if d.kind == commitlog.KindMessages {
		e.Data = appendDescriptor(nil, d.pos, int(d.size))
	}
	return e
}

// older reads descriptors of the entries [lo, hi) from the segments.
func (s *storage) older(lo, hi uint64) ([]desc, error) {
	var from message.Position = -1
	for _, seg := range s.log.Segments() {
		if seg.FirstIndex != 0 && seg.FirstIndex <= lo {
			from = seg.Start
		}
	}
	if from < 0 {
		return nil, raft.ErrCompacted
	}
	var out []desc
	err := s.log.Iterate(from, func(f commitlog.Frame) error {
		if f.Kind != commitlog.KindPad && f.Index >= lo && f.Index < hi {
			out = append(out, describe(f.Header))
		}
		if f.Index+1 >= hi && f.Kind != commitlog.KindPad {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	if uint64(len(out)) != hi-lo {
		return nil, raft.ErrUnavailable
	}
	return out, nil
}

func describe(h commitlog.Header) desc {
	return desc{pos: h.Position, term: h.Term, size: uint32(h.Size), kind: h.Kind}
}

// Term implements raft.Storage.
func (s *storage) Term(i uint64) (uint64, error) {
	if i == 0 { // before the first entry of all: raft asks for it when a replica has nothing, or only what is wrong
		return 0, nil
	}
	if i == s.first-1 {
		return s.baseTerm, nil
	}
	if i < s.first {
		older, err := s.older(i, i+1)
		if err != nil {
			return 0, raft.ErrCompacted
		}
		return older[0].term, nil
	}
	if i > s.last() {
		return 0, raft.ErrUnavailable
	}
	return s.descs[i-s.first].term, nil
}

// LastIndex implements raft.Storage.
func (s *storage) LastIndex() (uint64, error) { return s.last(), nil }

// FirstIndex implements raft.Storage: the oldest entry that can be sent. raft wants to
// know the term of the entry before it; so when the log does not begin at its
// beginning any more, the oldest entry that a segment holds is that one.
func (s *storage) FirstIndex() (uint64, error) {
	for _, seg := range s.log.Segments() {
		switch first := seg.FirstIndex; {
		case first == 0:
			continue
		case first >= s.first:
			return s.first, nil
		case first > 1:
			return first + 1, nil
		default:
			return first, nil
		}
	}
	return s.first, nil
}

// Snapshot implements raft.Storage. A replica that needs one gets a checkpoint by
// another way; until that is there, raft asks again later.
func (s *storage) Snapshot() (*raftpb.Snapshot, error) {
	return nil, raft.ErrSnapshotTemporarilyUnavailable
}
