package raftlog

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/metaqio/metaq/internal/commitlog"
	"github.com/metaqio/metaq/message"
)

// Errors of a node.
var (
	// ErrNotLeader: only the leader may propose.
	ErrNotLeader = errors.New("not the leader")
	errEnough    = errors.New("enough")
)

// Base is where the views' checkpoint ends: folding goes on from there.
type Base struct {
	Position message.Position
	Index    uint64
	Term     uint64
}

// Entry is a committed entry.
type Entry struct {
	Index    uint64
	Term     uint64
	Position message.Position // of its frame
	Size     int              // of its frame
	Kind     byte             // of its frame
}

// Options say how a node is made.
type Options struct {
	ID     uint64
	Voters []uint64
	Log    *commitlog.Log
	FS     vfs.FS
	// StatePath is the file of term and vote.
	StatePath string
	Base      Base
	// Sync is called before entries count as stored; nil when the page cache is enough (durability async).
	Sync func() error
	// ElectionTicks and HeartbeatTicks are in calls of Tick; 10 and 1 when zero.
	ElectionTicks, HeartbeatTicks int
	// NoCheckQuorum leaves out pre-vote and the leader's lease, for tests that decide by themselves who campaigns and when.
	NoCheckQuorum bool
	// Now is the leader's clock, in ms.
	Now func() int64
	// Apply is called for each committed entry, in order.
	Apply func(Entry) error
	// Send gives messages to the network; it must not block. Nil with one voter.
	Send   func(Message)
	Logger *slog.Logger
}

// Node is one replica of a shard's log. It belongs to the tail's holder.
type Node struct {
	opts    Options
	rn      *raft.RawNode
	st      *storage
	state   *state
	leader  bool
	term    uint64
	applied uint64
	// leadFrom is the index of the empty entry that the leader began its term with.
	leadFrom uint64
	staged   []desc            // frames of proposals that raft has not returned yet, in order
	stash    map[uint64][]byte // frames that came with messages, by index
	desc     []byte
}

// Open makes a node on a log that has been opened; it recovers the log from the
// checkpoint on and calls recovered with what the log said about its end.
func Open(o Options) (*Node, commitlog.Recovery, error) {
	if o.ElectionTicks == 0 {
		o.ElectionTicks, o.HeartbeatTicks = 10, 1
	}
	st, err := openState(o.FS, o.StatePath)
	if err != nil {
		return nil, commitlog.Recovery{}, err
	}
	n := &Node{opts: o, state: st, term: st.term, applied: o.Base.Index, stash: map[uint64][]byte{}}
	n.st = &storage{log: o.Log, st: st, applied: o.Base.Index, voters: o.Voters, first: o.Base.Index + 1, baseTerm: o.Base.Term, baseEnd: o.Base.Position}
	rec, err := o.Log.Recover(o.Base.Position, func(f commitlog.Frame) error {
		if f.Kind == commitlog.KindPad {
			return nil
		}
		if want := n.st.last() + 1; f.Index != want {
			return fmt.Errorf("entry %d follows entry %d at position %d", f.Index, want-1, f.Position)
		}
		n.st.add(describe(f.Header))
		return nil
	})
	if err != nil {
		return nil, rec, errors.Join(err, st.close())
	}
	n.rn, err = raft.NewRawNode(&raft.Config{
		ID: o.ID, ElectionTick: o.ElectionTicks, HeartbeatTick: o.HeartbeatTicks, Storage: n.st, Applied: o.Base.Index,
		MaxSizePerMsg: 2 << 10, MaxInflightMsgs: 64, CheckQuorum: !o.NoCheckQuorum, PreVote: !o.NoCheckQuorum,
		DisableProposalForwarding: true, StepDownOnRemoval: true, Logger: raftLogger{o.Logger},
	})
	if err != nil {
		return nil, rec, errors.Join(fmt.Errorf("start raft: %w", err), st.close())
	}
	return n, rec, nil
}

// Leading says whether the node leads and has applied everything that earlier leaders left: it may stamp and propose.
func (n *Node) Leading() bool { return n.leader && n.leadFrom != 0 && n.applied >= n.leadFrom }

// Term is the current term.
func (n *Node) Term() uint64 { return n.term }

// NextIndex is the index that the next proposed entry gets.
func (n *Node) NextIndex() uint64 { return n.st.last() + 1 + uint64(len(n.staged)) }

// Campaign asks for votes now.
func (n *Node) Campaign() error { return n.rn.Campaign() }

// Tick advances the logical clock.
func (n *Node) Tick() { n.rn.Tick() }

// Step takes a message from another node.
func (n *Node) Step(m Message) error {
	if len(m.Frames) != len(m.raft.GetEntries()) {
		return fmt.Errorf("message with %d entries carries %d frames", len(m.raft.GetEntries()), len(m.Frames))
	}
	for i, e := range m.raft.GetEntries() {
		n.stash[e.GetIndex()] = m.Frames[i]
	}
	return n.rn.Step(m.raft)
}

// Propose offers a frame that has been sealed with Term and NextIndex and written
// to the log. On an error the frame is not part of the log: the caller rolls back.
func (n *Node) Propose(pos message.Position, size int) error {
	if !n.Leading() {
		return ErrNotLeader
	}
	d := desc{pos: pos, term: n.term, size: uint32(size), kind: commitlog.KindMessages}
	n.staged = append(n.staged, d)
	n.desc = appendDescriptor(n.desc[:0], pos, size)
	if err := n.rn.Propose(n.desc); err != nil {
		n.staged = n.staged[:len(n.staged)-1]
		return fmt.Errorf("propose: %w", err)
	}
	return nil
}

// Pump handles everything that is ready. An error is final for the node.
func (n *Node) Pump() error {
	for n.rn.HasReady() {
		rd := n.rn.Ready()
		if err := n.handle(&rd); err != nil {
			return err
		}
		n.rn.Advance(rd)
	}
	clear(n.stash)
	return nil
}

func (n *Node) handle(rd *raft.Ready) error {
	if rd.SoftState != nil {
		n.role(rd.SoftState)
	}
	if hs := rd.HardState; hs != nil {
		n.term = hs.GetTerm()
		if n.term != n.state.term || hs.GetVote() != n.state.vote {
			if err := n.state.save(n.term, hs.GetVote()); err != nil {
				return err
			}
		}
	}
	if len(rd.Entries) > 0 {
		if err := n.persist(rd.Entries); err != nil {
			return err
		}
	}
	for _, m := range rd.Messages {
		if err := n.send(m); err != nil {
			return err
		}
	}
	for _, e := range rd.CommittedEntries {
		d, ok := n.st.find(e.GetIndex())
		if !ok {
			return fmt.Errorf("committed entry %d is not in the log", e.GetIndex())
		}
		n.applied = e.GetIndex()
		if err := n.opts.Apply(Entry{Index: e.GetIndex(), Term: d.term, Position: d.pos, Size: int(d.size), Kind: d.kind}); err != nil {
			return fmt.Errorf("apply entry %d at position %d: %w", e.GetIndex(), d.pos, err)
		}
	}
	return nil
}

func (n *Node) role(s *raft.SoftState) {
	was := n.leader
	n.leader = s.RaftState == raft.StateLeader
	if n.leader != was {
		n.leadFrom = 0
		n.staged = n.staged[:0]
	}
}

// persist puts entries into the log and, if durability asks for it, on the disk.
func (n *Node) persist(entries []*raftpb.Entry) error {
	if first := entries[0].GetIndex(); first <= n.st.last() {
		pos, err := n.st.cut(first)
		if err != nil {
			return err
		}
		if err := n.opts.Log.Truncate(pos); err != nil {
			return fmt.Errorf("cut conflicting entries: %w", err)
		}
	}
	for _, e := range entries {
		if err := n.append(e); err != nil {
			return err
		}
	}
	if err := n.opts.Log.Write(); err != nil {
		return err
	}
	if n.opts.Sync == nil {
		return nil
	}
	return n.opts.Sync()
}

// append puts one entry into the log: a staged frame is there already, a frame
// that came with a message is copied, and a leader's empty entry is made here.
func (n *Node) append(e *raftpb.Entry) error {
	if want := n.st.last() + 1; e.GetIndex() != want {
		return fmt.Errorf("raft appends entry %d where %d is next", e.GetIndex(), want)
	}
	if n.leader && e.GetTerm() == n.term {
		if len(e.GetData()) > 0 {
			n.st.add(n.staged[0])
			n.staged = append(n.staged[:0], n.staged[1:]...)
			return nil
		}
		n.leadFrom = e.GetIndex()
		return n.appendEmpty(e)
	}
	frame, ok := n.stash[e.GetIndex()]
	if !ok {
		return fmt.Errorf("entry %d of term %d came without its frame", e.GetIndex(), e.GetTerm())
	}
	h, err := commitlog.ParseHeader(frame)
	if err != nil {
		return fmt.Errorf("frame of entry %d: %w", e.GetIndex(), err)
	}
	if h.Index != e.GetIndex() || h.Term != e.GetTerm() {
		return fmt.Errorf("frame of entry %d term %d says entry %d term %d", e.GetIndex(), e.GetTerm(), h.Index, h.Term)
	}
	if err := n.opts.Log.AppendFrame(frame); err != nil {
		return fmt.Errorf("append entry %d: %w", e.GetIndex(), err)
	}
	n.st.add(describe(h))
	return nil
}

func (n *Node) appendEmpty(e *raftpb.Entry) error {
	buf, pos, err := n.opts.Log.Reserve(0)
	if err != nil {
		return fmt.Errorf("begin term %d: %w", n.term, err)
	}
	h := commitlog.Header{Kind: commitlog.KindEmpty, Term: e.GetTerm(), Index: e.GetIndex(), Time: n.opts.Now(), Position: pos, Size: len(buf)}
	if n.opts.Sync == nil {
		h.Flags = commitlog.FlagAsync
	}
	n.opts.Log.Seal(buf, h)
	n.st.add(describe(h))
	return nil
}

// send adds the frames to a message and gives it to the network.
func (n *Node) send(m *raftpb.Message) error {
	if n.opts.Send == nil {
		return nil
	}
	out := Message{raft: m}
	for _, e := range m.GetEntries() {
		d, ok := n.st.find(e.GetIndex())
		if !ok {
			older, err := n.st.older(e.GetIndex(), e.GetIndex()+1)
			if err != nil {
				return fmt.Errorf("read entry %d to send it: %w", e.GetIndex(), err)
			}
			d = older[0]
		}
		frame, err := n.opts.Log.Read(nil, d.pos, int(d.size))
		if err != nil {
			return fmt.Errorf("read entry %d to send it: %w", e.GetIndex(), err)
		}
		out.Frames = append(out.Frames, frame)
	}
	n.opts.Send(out)
	return nil
}

// Close closes the state file. The log is the caller's.
func (n *Node) Close() error { return n.state.close() }

// raftLogger passes raft's messages on; what is normal for raft is debugging for an operator.
type raftLogger struct{ log *slog.Logger }

func (l raftLogger) Debug(...any)                {}
func (l raftLogger) Debugf(string, ...any)       {}
func (l raftLogger) Info(...any)                 {}
func (l raftLogger) Infof(string, ...any)        {}
func (l raftLogger) Error(v ...any)              { l.log.Error("raft", "message", fmt.Sprint(v...)) }
func (l raftLogger) Errorf(f string, v ...any)   { l.log.Error("raft", "message", fmt.Sprintf(f, v...)) }
func (l raftLogger) Warning(v ...any)            { l.log.Warn("raft", "message", fmt.Sprint(v...)) }
func (l raftLogger) Warningf(f string, v ...any) { l.log.Warn("raft", "message", fmt.Sprintf(f, v...)) }
func (l raftLogger) Fatal(v ...any)              { panic(fmt.Sprint(v...)) }
func (l raftLogger) Fatalf(f string, v ...any)   { panic(fmt.Sprintf(f, v...)) }
func (l raftLogger) Panic(v ...any)              { panic(fmt.Sprint(v...)) }
func (l raftLogger) Panicf(f string, v ...any)   { panic(fmt.Sprintf(f, v...)) }
