package shard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/metaqio/metaq/internal/commitlog"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/internal/raftlog"
	"github.com/metaqio/metaq/internal/stats"
	"github.com/metaqio/metaq/message"
)

// Durability says what an acknowledgement means.
type Durability byte

const (
	// Sync: a majority of the replicas has it on its disk.
	Sync Durability = iota
	// Async: a majority has it in its page cache; a sync follows within SyncInterval.
	Async
)

// Options say how a shard is opened. Zero values mean defaults.
type Options struct {
	FS  vfs.FS // the real one
	Dir string // log/, views/ and raft are made in it

	ID     uint64   // of this replica; 1
	Voters []uint64 // all replicas; just this one

	Durability   Durability
	SyncInterval time.Duration // of Async; 200 ms

	SegmentBytes int64 // 1 GiB
	RingBytes    int   // 64 MiB

	CheckpointBytes    int64         // of log between two checkpoints; 64 MiB
	CheckpointInterval time.Duration // when something changed; 30 s
	// SlowSync is how long a sync may take on average inside an event loop; 1 ms.
	SlowSync time.Duration

	// Queues is the view that messages are indexed by; Views are the others, in the order of folding.
	Queues RecordView
	Views  []View
	// Keys is the view that messages are found by their keys in, or nil; it is folded after the others.
	Keys KeyIndex

	// Folded is called after entries were folded, outside the state lock, by the tail's holder; it must not block.
	Folded func()
	// Failed is called once, when the shard can't go on. It must not block.
	Failed func(error)
	// Send gives messages for other replicas to the network; nil with one voter.
	Send func(raftlog.Message)
	// Manual leaves elections and time to the caller (Tick, Campaign), for deterministic tests.
	Manual bool
	// Now is the clock, in ms.
	Now func() int64
	Log *slog.Logger
}

func (o *Options) ensureDefaults() {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.ID == 0 {
		o.ID = 1
	}
	if len(o.Voters) == 0 {
		o.Voters = []uint64{o.ID}
	}
	if o.SyncInterval == 0 {
		o.SyncInterval = 200 * time.Millisecond
	}
	if o.CheckpointBytes == 0 {
		o.CheckpointBytes = 64 << 20
	}
	if o.CheckpointInterval == 0 {
		o.CheckpointInterval = 30 * time.Second
	}
	if o.SlowSync == 0 {
		o.SlowSync = time.Millisecond
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 1 << 30
	}
	if o.RingBytes == 0 {
		o.RingBytes = 64 << 20
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Folded == nil {
		o.Folded = func() {}
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
}

// Stats are what the shard counts of its work.
type Stats struct {
	Messages, Bytes, Entries stats.Counter // committed
	Dropped                  stats.Counter // messages that counted for nothing
	Append                   stats.Histogram
	Sync                     stats.Histogram
	Fold                     stats.Histogram
	Checkpoint               stats.Histogram
	Checkpoints              stats.Counter
}

// Shard is one replicated log with its views.
type Shard struct {
	opts  Options
	log   *commitlog.Log
	store *kv.Store
	node  *raftlog.Node
	Stats Stats

	folders map[entry.Kind][]CommandView
	records []RecordView // further ones than Queues

	state sync.RWMutex // guards the views

	mu      sync.Mutex // guards the following
	waiting []*Batch
	jobs    []func()
	held    bool
	stopped error

	tailWake chan struct{} // wakes the tail's goroutine
	slow     atomic.Bool   // syncs are slow: the tail is held by its goroutine

	tail       tail // belongs to the tail's holder
	checkpoint checkpoint
	applied    atomic.Int64  // position after the last folded frame
	leads      atomic.Uint64 // term in which this replica leads, 0: it does not
	full       atomic.Bool   // the newest messages were refused because the disk is full
	closing    sync.WaitGroup
	closed     chan struct{}
}

// Open opens a shard: it recovers the log, loads the views' checkpoint and folds the rest.
func Open(o Options) (*Shard, commitlog.Recovery, error) {
	o.ensureDefaults()
	s := &Shard{opts: o, folders: map[entry.Kind][]CommandView{}, tailWake: make(chan struct{}, 1), closed: make(chan struct{})}
	for _, v := range s.views() {
		if c, ok := v.(CommandView); ok {
			for _, k := range c.Commands() {
				s.folders[k] = append(s.folders[k], c)
			}
		}
	}
	for _, v := range o.Views {
		if r, ok := v.(RecordView); ok {
			s.records = append(s.records, r)
		}
	}
	rec, err := s.open()
	if err != nil {
		return nil, rec, errors.Join(fmt.Errorf("open shard %s: %w", o.Dir, err), s.closeParts())
	}
	s.closing.Go(s.runTail)
	return s, rec, nil
}

// views are all views, in the order of folding.
func (s *Shard) views() []View {
	all := append([]View{s.opts.Queues}, s.opts.Views...)
	if s.opts.Keys != nil {
		all = append(all, s.opts.Keys)
	}
	return all
}

func (s *Shard) open() (rec commitlog.Recovery, err error) {
	o, fs := &s.opts, s.opts.FS
	if err := makeFolder(fs, o.Dir); err != nil {
		return rec, err
	}
	s.log, err = commitlog.Open(commitlog.Options{
		FS: fs, Dir: fs.PathJoin(o.Dir, "log"), SegmentBytes: o.SegmentBytes, RingBytes: o.RingBytes,
		Prewrite: o.Durability == Sync && !o.Manual, Log: o.Log,
	})
	if err != nil {
		return rec, err
	}
	if err := s.openStore(fs.PathJoin(o.Dir, "views")); err != nil {
		return rec, err
	}
	for _, v := range s.views() {
		if err := v.Load(s.store); err != nil {
			return rec, fmt.Errorf("load view: %w", err)
		}
	}
	at := s.store.Applied()
	s.checkpoint.at.Store(int64(at.Position))
	s.checkpoint.started = at.Position
	s.applied.Store(int64(at.Position))
	ro := raftlog.Options{
		ID: o.ID, Voters: o.Voters, Log: s.log, FS: fs, StatePath: fs.PathJoin(o.Dir, "raft"),
		Base: raftlog.Base{Position: at.Position, Index: at.Index, Term: at.Term},
		Now:  o.Now, Apply: s.apply, Send: o.Send, Logger: o.Log, NoCheckQuorum: o.Manual,
	}
	if o.Durability == Sync {
		ro.Sync = s.syncInline
	}
	if o.Manual {
		ro.ElectionTicks, ro.HeartbeatTicks = 1<<20, 1
	}
	if s.node, rec, err = raftlog.Open(ro); err != nil {
		return rec, err
	}
	if len(o.Voters) == 1 { // nobody to wait for
		if err := s.node.Campaign(); err != nil {
			return rec, fmt.Errorf("campaign: %w", err)
		}
		err := s.node.Pump()
		s.noteLeading()
		return rec, err
	}
	return rec, nil
}

// openStore opens the store of the views. One whose files do not go together is thrown away, if the log still has
// everything that was folded into it.
func (s *Shard) openStore(dir string) (err error) {
	s.store, err = kv.Open(s.opts.FS, dir, s.opts.Log)
	if err == nil || !errors.Is(err, kv.ErrDamaged) || s.log.Start() != 0 {
		return err
	}
	s.opts.Log.Warn("views are folded again from the beginning of the log", "reason", err)
	if err := s.opts.FS.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove damaged view store: %w", err)
	}
	s.store, err = kv.Open(s.opts.FS, dir, s.opts.Log)
	return err
}

// makeFolder makes a shard's folder, and sees to it that a power cut does not take it away again.
func makeFolder(fs vfs.FS, dir string) error {
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	parent := fs.PathDir(dir)
	d, err := fs.OpenDir(parent)
	if err != nil {
		return fmt.Errorf("open folder %s: %w", parent, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync folder %s: %w", parent, err)
	}
	return nil
}

// RLock lets the caller read views until RUnlock. It must not be taken twice by one goroutine.
func (s *Shard) RLock() { s.state.RLock() }

// RUnlock ends RLock.
func (s *Shard) RUnlock() { s.state.RUnlock() }

// Log is the shard's log, for reading.
func (s *Shard) Log() *commitlog.Log { return s.log }

// Applied is the position up to which the views are folded.
func (s *Shard) Applied() message.Position { return message.Position(s.applied.Load()) }

// Checkpointed is the position up to which the views are on the disk.
func (s *Shard) Checkpointed() message.Position { return message.Position(s.checkpoint.at.Load()) }

// Run drives the shard's clock until ctx ends: raft ticks, interval syncs and checkpoints by time.
func (s *Shard) Run(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	syncs := time.NewTicker(s.opts.SyncInterval)
	defer syncs.Stop()
	last := s.opts.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.closed:
			return nil
		case <-tick.C:
			due := s.opts.Now()-last >= s.opts.CheckpointInterval.Milliseconds()
			if due {
				last = s.opts.Now()
			}
			s.do(func() {
				s.node.Tick()
				if due && s.applied.Load() > int64(s.checkpoint.started) {
					s.beginCheckpoint()
				}
			})
		case <-syncs.C:
			if s.log.Synced() < s.log.Written() {
				if err := s.sync(); err != nil {
					s.fail(err)
					return err
				}
			}
		}
	}
}

// Close ends the shard in order: what waits is processed, the log synced and a
// checkpoint written. It is safe to call twice.
func (s *Shard) Close() error {
	s.mu.Lock()
	if s.stopped == nil {
		s.stopped = ErrStopped
	}
	s.mu.Unlock()
	select {
	case <-s.closed:
		return nil
	default:
	}
	failed := false
	s.finish(func() { failed = s.tail.failed }) // after everything that had been submitted
	s.store.Hurry()                             // a checkpoint that waits for room on the disk has waited long enough
	s.checkpoint.writing.Wait()
	if !failed {
		s.finish(s.beginCheckpoint)
		s.checkpoint.writing.Wait()
	}
	err := s.checkpoint.err
	if !failed && err == nil && s.log.Synced() < s.log.Written() { // a checkpoint that is not written does not sync
		err = s.sync()
	}
	close(s.closed)
	s.closing.Wait()
	return errors.Join(err, s.closeParts())
}

// finish runs f as the tail's holder and waits for it, although the shard is stopped.
func (s *Shard) finish(f func()) {
	done := make(chan struct{})
	s.runJob(func() {
		defer close(done)
		f()
	})
	<-done
}

func (s *Shard) closeParts() error {
	var errs []error
	if s.node != nil {
		errs = append(errs, s.node.Close())
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	return errors.Join(errs...)
}

// fail stops the shard for good: the disk can't be trusted, or the log says something impossible.
func (s *Shard) fail(err error) {
	s.mu.Lock()
	first := s.stopped == nil
	if first {
		s.stopped = fmt.Errorf("%w: %w", ErrStopped, err)
	}
	s.mu.Unlock()
	if first {
		s.opts.Log.Error("shard stops", "dir", s.opts.Dir, "error", err)
		s.opts.Failed(err)
	}
}

// Failure is why the shard has stopped, or nil.
func (s *Shard) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// DiskUse is the share of the disk under the shard that is in use, 0 to 1, of what this process can use of it, as df
// shows it: blocks kept for the superuser count neither as used nor as free. 0 when it is not known.
func (s *Shard) DiskUse() float64 {
	u, err := s.opts.FS.GetDiskUsage(s.opts.Dir)
	if err != nil || u.UsedBytes+u.AvailBytes == 0 {
		return 0
	}
	return float64(u.UsedBytes) / float64(u.UsedBytes+u.AvailBytes)
}

// DiskSize is the size of the disk under the shard and what is free of it, in bytes; 0 when that is not known.
func (s *Shard) DiskSize() (total, free int64) {
	u, err := s.opts.FS.GetDiskUsage(s.opts.Dir)
	if err != nil {
		return 0, 0
	}
	return int64(u.TotalBytes), int64(u.AvailBytes)
}

// Tick advances raft's clock by one step; Campaign makes the replica stand for
// election; Receive takes a message of another replica. They are for who drives a
// shard by hand (Options.Manual) or brings messages from the network.
func (s *Shard) Tick() { s.do(s.node.Tick) }

// Campaign makes the replica stand for election now.
func (s *Shard) Campaign() {
	s.do(func() {
		if err := s.node.Campaign(); err != nil {
			s.opts.Log.Warn("campaign", "error", err)
		}
	})
}

// Receive takes a message of another replica.
func (s *Shard) Receive(m raftlog.Message) {
	s.do(func() {
		if err := s.node.Step(m); err != nil {
			s.opts.Log.Debug("message refused", "message", m.String(), "error", err)
		}
	})
}

// Full says whether messages are refused because the disk is full. Any goroutine.
func (s *Shard) Full() bool {
	if !s.full.Load() {
		return false
	}
	total, free := s.DiskSize()
	return total == 0 || free < s.opts.SegmentBytes // else the next message will find that there is room
}

// Leads says whether this replica led when the tail was last processed. Any goroutine; it does not wait for the tail.
func (s *Shard) Leads() bool { return s.leads.Load() != 0 }

// LeadingTerm is the term in which this replica led, with everything folded that earlier leaders left, when the tail was
// last processed; 0 when it did not. For Batch.Term: read it before the views. Any goroutine.
func (s *Shard) LeadingTerm() uint64 { return s.leads.Load() }

// Leading says whether this replica leads and may take batches.
func (s *Shard) Leading() bool {
	leading := false
	s.do(func() { leading = s.node.Leading() })
	return leading
}
