package shard_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

const scriptQueues = 3

// script is a run of a shard with one voter: every step sends messages and commits an offset. What it sends is known
// beforehand, so that whatever is found after a crash can be held against it.
type script struct {
	plan  [scriptQueues][]string // bodies by queue
	steps []step

	mu    sync.Mutex // guards the following
	acked progress
}

type step struct {
	bodies []string
	queues []int32
	offset message.QueueOffset // that group G commits in queue 0
}

// progress is what senders have been told.
type progress struct {
	topic    bool
	messages [scriptQueues]int
	offset   message.QueueOffset
}

func newScript(seed uint64, steps int) *script {
	s := &script{}
	rng := rand.New(rand.NewPCG(seed, 3))
	n := 0
	for i := range steps {
		var st step
		for range rng.IntN(4) {
			n++
			q := rng.IntN(scriptQueues)
			body := fmt.Sprintf("%c%d ", 'a'+n%5, n) + strings.Repeat("x", rng.IntN(2600))
			s.plan[q] = append(s.plan[q], body)
			st.bodies, st.queues = append(st.bodies, body), append(st.queues, int32(q))
		}
		st.offset = message.QueueOffset(i + 1)
		s.steps = append(s.steps, st)
	}
	return s
}

// batch is what a step submits.
func (st *step) batch(r *replica) *shard.Batch {
	b := &shard.Batch{}
	for i, body := range st.bodies {
		if !r.add(b, "T", st.queues[i], body) {
			panic("the script's topic is not there")
		}
	}
	b.Command(&entry.CommitOffsets{Group: "G", Topic: "T", Items: []entry.QueueAt{{Queue: 0, Offset: st.offset}}})
	return b
}

func (s *script) told(st *step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range st.queues {
		s.acked.messages[q]++
	}
	s.acked.offset = st.offset
}

func (s *script) progress() progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked
}

// play runs the script from its beginning.
func (s *script) play(t *testing.T, r *replica) {
	r.command(t, putTopic("T", scriptQueues))
	s.mu.Lock()
	s.acked.topic = true
	s.mu.Unlock()
	for i := range s.steps {
		require.NoError(t, r.submit(s.steps[i].batch(r)).Err)
		s.told(&s.steps[i])
	}
}

// check holds what a shard has against what was sent, of which at least must has to be there.
func (s *script) check(r *replica, must progress) error {
	r.RLock()
	topic := r.queues.Topic([]byte("T")) != nil
	offset := r.offsets.Of([]byte("G"), []byte("T")).At(0)
	r.RUnlock()
	if !topic && must.topic {
		return errors.New("the topic is missing")
	}
	if offset < must.offset && must.offset > 0 || int(offset) > len(s.steps) {
		return fmt.Errorf("the group's offset is %d, it was told %d", offset, must.offset)
	}
	for q := range int32(scriptQueues) {
		found, err := r.bodies("T", q)
		if err != nil {
			return err
		}
		if len(found) < must.messages[q] {
			return fmt.Errorf("queue %d has %d messages, %d were acknowledged", q, len(found), must.messages[q])
		}
		if len(found) > len(s.plan[q]) {
			return fmt.Errorf("queue %d has %d messages, %d were sent", q, len(found), len(s.plan[q]))
		}
		for i, body := range found {
			if body != s.plan[q][i] {
				return fmt.Errorf("queue %d offset %d holds %.9q, want %.9q", q, i, body, s.plan[q][i])
			}
		}
	}
	return nil
}

// goOn sends one more message to a shard and checks that it gets the next offset.
func goOn(r *replica) error {
	if !r.Leading() {
		return errors.New("it does not lead")
	}
	b := &shard.Batch{Done: func(*shard.Batch) {}}
	b.Command(putTopic("U", 1))
	if r.submit(b).Err != nil {
		return b.Err
	}
	before, err := r.bodies("U", 0)
	if err != nil {
		return err
	}
	b = &shard.Batch{Done: func(*shard.Batch) {}}
	r.add(b, "U", 0, "afterwards")
	if r.submit(b).Err != nil {
		return b.Err
	}
	if b.Msgs[0].Offset != message.QueueOffset(len(before)) {
		return fmt.Errorf("the next message got offset %d behind %d messages", b.Msgs[0].Offset, len(before))
	}
	after, err := r.bodies("U", 0)
	if err == nil && len(after) != len(before)+1 {
		err = fmt.Errorf("%d messages after %d", len(after), len(before))
	}
	return err
}

// TestPowerCutsAtEveryWriteAndSync cuts the power before every operation that changes the disk, of the log, of the
// term's file and of the views' store, in a run with checkpoints and several segments. The shard must open again, hold a
// beginning of what was sent in its order, with sync all that was acknowledged, and go on.
func TestPowerCutsAtEveryWriteAndSync(t *testing.T) {
	for _, d := range []struct {
		name       string
		durability shard.Durability
	}{{"sync", shard.Sync}, {"async", shard.Async}} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			powerCuts(t, d.durability, 1, 50)
		})
	}
}

func powerCuts(t *testing.T, durability shard.Durability, seed uint64, steps int) {
	mem := vfs.NewCrashableMem()
	s := newScript(seed, steps)
	rng := rand.New(rand.NewPCG(seed, 4))
	var mu sync.Mutex // the engine of the views' store writes beside the script
	var problem error
	cuts := 0
	set := setup{durability: durability, segment: 64 << 10, checkpoint: 16 << 10}
	set.fs = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpLock {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		must := s.progress() // before the cut: what is told later need not be there
		if durability == shard.Async {
			must = progress{}
		}
		for _, keep := range []int{0, 1 + rng.IntN(100)} {
			if keep > 0 && rng.IntN(4) > 0 {
				continue // of every operation, the hardest cut; of some, one that leaves a part
			}
			cuts++
			if err := afterCut(mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: keep, RNG: rng}), set, s, must); err != nil && problem == nil {
				problem = fmt.Errorf("cut %d before %v %s, %d %% of what was not synced kept: %w", cuts, op.Kind, op.Path, keep, err)
			}
		}
		return nil
	}))
	r := mustOpen(t, set)
	s.play(t, r)
	require.NoError(t, s.check(r, s.progress()))
	require.Greater(t, len(r.Log().Segments()), 1)
	require.NoError(t, r.Close())
	require.NoError(t, problem)
	require.Greater(t, cuts, steps, "the run was shorter than thought")
	require.Greater(t, r.Stats.Checkpoints.Load(), int64(3))
	t.Logf("%d power cuts", cuts)
}

// afterCut opens what a power cut has left, checks it, goes on with it, and opens it once more.
func afterCut(fs vfs.FS, set setup, s *script, must progress) error {
	set.fs = fs
	for round := range 2 {
		r, err := set.open()
		if err != nil {
			return fmt.Errorf("open %d: %w", round+1, err)
		}
		if err = s.check(r, must); err == nil && round == 0 {
			err = goOn(r)
		}
		if e := errors.Join(err, r.failed, r.Close()); e != nil {
			return fmt.Errorf("after open %d: %w", round+1, e)
		}
	}
	return nil
}

// onLog lets operations of a kind on files of the log fail from the moment it is told to.
type onLog struct {
	kind errorfs.OpKind
	on   atomic.Bool
}

func (f *onLog) String() string { return "(onLog)" }

func (f *onLog) MaybeError(op errorfs.Op) error {
	if f.on.Load() && op.Kind == f.kind && strings.HasSuffix(op.Path, ".log") {
		return syscall.EIO
	}
	return nil
}

// TestFailedDiskStopsTheShard: after a failed sync or write nothing can be trusted: senders get an error, the owner is
// told which file it was, nothing more is accepted, and what was stored can still be read.
func TestFailedDiskStopsTheShard(t *testing.T) {
	for _, kind := range []errorfs.OpKind{errorfs.OpFileSyncData, errorfs.OpFileWriteAt} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			mem, fail := vfs.NewCrashableMem(), &onLog{kind: kind}
			set := setup{fs: errorfs.Wrap(mem, fail)}
			r := mustOpen(t, set)
			r.command(t, putTopic("T", 1))
			b := &shard.Batch{}
			require.True(t, r.add(b, "T", 0, "before"))
			require.NoError(t, r.submit(b).Err)
			require.NoError(t, r.Failure())

			fail.on.Store(true)
			lost := &shard.Batch{}
			require.True(t, r.add(lost, "T", 0, "lost"))
			require.ErrorIs(t, r.submit(lost).Err, shard.ErrStopped)
			require.ErrorIs(t, lost.Err, syscall.EIO)
			require.ErrorIs(t, r.failed, syscall.EIO)
			require.Contains(t, r.failed.Error(), "00000000000000000000.log")
			require.ErrorIs(t, r.Failure(), shard.ErrStopped)
			require.ErrorIs(t, r.Failure(), syscall.EIO)

			fail.on.Store(false) // the next attempt would succeed, and prove nothing
			told := r.failed
			late := &shard.Batch{}
			require.True(t, r.add(late, "T", 0, "late"))
			require.ErrorIs(t, r.submit(late).Err, shard.ErrStopped)
			require.Same(t, told, r.failed, "the owner is told once")
			found, err := r.bodies("T", 0)
			require.NoError(t, err)
			require.Equal(t, []string{"before"}, found, "reads go on")
			require.NoError(t, r.Close(), "what failed was told already")

			set.fs = mem.CrashClone(vfs.CrashCloneCfg{})
			r = mustOpen(t, set)
			found, err = r.bodies("T", 0)
			require.NoError(t, err)
			require.Equal(t, []string{"before"}, found)
			require.NoError(t, goOn(r))
			require.NoError(t, r.Close())
		})
	}
}

// TestFailedCheckpointStopsTheShard: the views' store is on the same disk.
func TestFailedCheckpointStopsTheShard(t *testing.T) {
	mem := vfs.NewCrashableMem()
	var bad atomic.Bool
	set := setup{fs: errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if bad.Load() && op.Kind == errorfs.OpFileSync && strings.Contains(op.Path, "views") {
			return syscall.EIO
		}
		return nil
	}))}
	r := mustOpen(t, set)
	r.command(t, putTopic("T", 1))
	bad.Store(true)
	r.CheckpointNow()
	require.ErrorIs(t, r.failed, syscall.EIO)
	require.Contains(t, r.failed.Error(), "views")
	b := &shard.Batch{}
	require.True(t, r.add(b, "T", 0, "late"))
	require.ErrorIs(t, r.submit(b).Err, shard.ErrStopped)
	require.ErrorIs(t, r.Close(), syscall.EIO)
	set.fs = mem.CrashClone(vfs.CrashCloneCfg{})
	r = mustOpen(t, set)
	require.NoError(t, goOn(r))
	require.NoError(t, r.Close())
}

// full lets the n-th operation that takes room find no room, and a few more after it.
type full struct {
	left, times atomic.Int64
	fired       atomic.Int64
	path        atomic.Pointer[string]
}

func (f *full) String() string { return "(full)" }

func (f *full) MaybeError(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFilePreallocate, errorfs.OpLink, errorfs.OpRename:
	default:
		return nil
	}
	if n := f.left.Add(-1); n >= 0 || n < -f.times.Load() {
		return nil
	}
	f.fired.Add(1)
	f.path.CompareAndSwap(nil, &op.Path)
	return &noSpace{}
}

// noSpace is how the operating system says it, wrapped.
type noSpace struct{}

func (*noSpace) Error() string { return "no space left on device" }
func (*noSpace) Unwrap() error { return syscall.ENOSPC }

// TestFullDiskRefusesAndResumes lets each operation that takes room find the disk full, for a moment. Whoever sends then
// is told ErrFull, and nothing of it is there; when there is room again, the next one gets the offset that was free.
func TestFullDiskRefusesAndResumes(t *testing.T) {
	for _, durability := range []shard.Durability{shard.Sync, shard.Async} {
		for _, times := range []int64{1, 3} {
			t.Run(fmt.Sprintf("durability %d times %d", durability, times), func(t *testing.T) {
				t.Parallel()
				refused := 0
				for n := int64(0); ; n++ {
					require.Less(t, n, int64(2000))
					fired, r := fullRun(t, durability, n, times)
					refused += r
					if !fired {
						break
					}
				}
				require.Positive(t, refused)
			})
		}
	}
}

func fullRun(t *testing.T, durability shard.Durability, n, times int64) (fired bool, refused int) {
	mem, disk := vfs.NewCrashableMem(), &full{}
	disk.left.Store(1 << 40)
	set := setup{fs: errorfs.Wrap(mem, disk), durability: durability, segment: 64 << 10, checkpoint: 12 << 10}
	s := newScript(2, 40)
	r := mustOpen(t, set)
	r.command(t, putTopic("T", scriptQueues))
	disk.times.Store(times)
	disk.left.Store(n)
	for i := range s.steps {
		for try := 0; ; try++ {
			require.LessOrEqual(t, int64(try), times)
			b := r.submit(s.steps[i].batch(r))
			if b.Err == nil {
				break
			}
			require.ErrorIs(t, b.Err, shard.ErrFull, "operation %d", n)
			refused++
		}
		s.told(&s.steps[i])
	}
	where := ""
	if p := disk.path.Load(); p != nil {
		where = *p
	}
	require.NoError(t, s.check(r, s.progress()), "operation %d on %s", n, where)
	require.NoError(t, r.failed)
	disk.left.Store(1 << 40)
	require.NoError(t, goOn(r))
	require.NoError(t, r.Close())
	set.fs = mem.CrashClone(vfs.CrashCloneCfg{})
	r = mustOpen(t, set)
	require.NoError(t, s.check(r, s.progress()), "after a restart, operation %d on %s", n, where)
	require.NoError(t, goOn(r))
	require.NoError(t, r.Close())
	return disk.fired.Load() > 0, refused
}

// TestFullDiskKeepsAReserve: messages are refused before the last byte of the last segment is used, so that consumers can
// still commit and retention can still say that room is to be made.
func TestFullDiskKeepsAReserve(t *testing.T) {
	var noRoom atomic.Bool
	set := setup{segment: 64 << 10, fs: errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if noRoom.Load() && op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".log") {
			return &noSpace{}
		}
		return nil
	}))}
	r := mustOpen(t, set)
	r.command(t, putTopic("T", 1))
	noRoom.Store(true)
	sent := 0
	for {
		require.Less(t, sent, 100)
		b := &shard.Batch{}
		require.True(t, r.add(b, "T", 0, strings.Repeat("m", 1000)))
		if r.submit(b).Err != nil {
			require.ErrorIs(t, b.Err, shard.ErrFull)
			break
		}
		sent++
	}
	require.Greater(t, sent, 40)
	require.True(t, r.Full())
	for i := range 50 {
		r.command(t, &entry.CommitOffsets{Group: "G", Topic: "T", Items: []entry.QueueAt{{Queue: 0, Offset: message.QueueOffset(i)}}})
	}
	require.True(t, r.Full(), "commands say nothing about messages")
	mixed, done := &shard.Batch{}, 0
	require.True(t, r.add(mixed, "T", 0, "m"))
	mixed.Command(putTopic("U", 1))
	mixed.Done = func(*shard.Batch) { done++ }
	require.ErrorIs(t, r.submit(mixed).Err, shard.ErrFull, "a batch is true as a whole or not at all")
	require.Equal(t, 1, done)
	require.Nil(t, r.queues.Topic([]byte("U")))
	found, err := r.bodies("T", 0)
	require.NoError(t, err)
	require.Len(t, found, sent)

	noRoom.Store(false)
	b := &shard.Batch{}
	require.True(t, r.add(b, "T", 0, "after"))
	require.NoError(t, r.submit(b).Err)
	require.EqualValues(t, sent, b.Msgs[0].Offset)
	require.False(t, r.Full())
	require.NoError(t, r.failed)
	require.NoError(t, r.Close())
}
