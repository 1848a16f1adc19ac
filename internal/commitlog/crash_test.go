package commitlog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/message"
)

// sealed is an entry that a test knows about.
type sealed struct {
	term, index uint64
	size        int // of the payload
	pos         message.Position
}

// bytes are the entry's payload.
func (e sealed) bytes() []byte { return payload(e.index<<20|e.term, e.size) }

// model is what a log should hold. While an operation runs, next is what it leads to; all states on the way are prefixes of now or next.
type model struct {
	mu        sync.Mutex // held while the disk is cloned, so that both show one moment
	now, next []sealed
	synced    int // that many must be there
}

func (m *model) begin(next []sealed, synced int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next, m.synced = next, min(m.synced, synced)
}

func (m *model) end(synced int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = slices.Clone(m.next)
	m.synced = max(m.synced, synced)
}

// player runs a script of random operations on a log.
type player struct {
	t    *testing.T
	rng  *rand.Rand
	opts Options
	log  *Log
	model
	term uint64
}

func (p *player) open() {
	var frames []Frame
	var err error
	p.log, frames, _, err = tryOpen(p.opts, firstStart(p.t, p.opts))
	require.NoError(p.t, err)
	p.compare(frames, p.now, p.now, len(p.now))
}

// firstStart is where the log begins, as the names of its files say.
func firstStart(t *testing.T, o Options) message.Position {
	names, err := o.FS.List("log")
	if err != nil {
		return 0
	}
	slices.Sort(names)
	for _, name := range names {
		if start, ok := parseSegmentName(name); ok {
			return start
		}
	}
	return 0
}

// compare checks what a recovery returned: a run of entries up to at least must, as in now or in next.
func (p *player) compare(frames []Frame, now, next []sealed, must int) {
	last := 0
	inNow, inNext := true, true
	for i, f := range frames {
		require.True(p.t, i == 0 || f.Index == uint64(last)+1, "entry %d follows %d", f.Index, last)
		last = int(f.Index)
		same := func(list []sealed) bool {
			if last > len(list) {
				return false
			}
			e := list[last-1]
			return e.term == f.Term && e.pos == f.Position && string(e.bytes()) == string(f.Payload)
		}
		inNow, inNext = inNow && same(now), inNext && same(next)
		require.True(p.t, inNow || inNext, "entry %d of term %d at %d is not what was written", f.Index, f.Term, f.Position)
	}
	require.GreaterOrEqual(p.t, last, must, "synced entries are missing")
}

// add seals n entries of random sizes.
func (p *player) add(list []sealed, n int) []sealed {
	list, err := p.tryAdd(list, n)
	require.NoError(p.t, err)
	return list
}

func (p *player) tryAdd(list []sealed, n int) ([]sealed, error) {
	list = slices.Clone(list)
	for range n {
		e := sealed{term: p.term, index: uint64(len(list) + 1), size: p.rng.IntN(6000)}
		if p.rng.IntN(4) == 0 {
			e.size = p.rng.IntN(100)
		}
		buf, pos, err := p.log.Reserve(e.size)
		if err != nil {
			return list, err
		}
		copy(buf[HeaderSize:], e.bytes())
		e.pos = pos
		p.log.Seal(buf, Header{Kind: KindMessages, Term: e.term, Index: e.index, Time: int64(e.index), Group: uint32(p.rng.IntN(100))})
		list = append(list, e)
	}
	return list, nil
}

// step does one operation.
func (p *player) step() {
	l := p.log
	switch op := p.rng.IntN(20); {
	case op < 10:
		next := p.add(p.now, 1+p.rng.IntN(4))
		p.begin(next, len(next))
		require.NoError(p.t, l.Write())
		p.end(0)
	case op < 15:
		p.begin(p.now, len(p.now))
		require.NoError(p.t, l.Sync())
		p.end(len(p.now))
	case op < 16: // sealed, never written
		if next := p.add(p.now, 2); p.rng.IntN(2) == 0 {
			require.NoError(p.t, l.Rollback(next[len(next)-1].pos))
			p.begin(next[:len(next)-1], len(next))
			require.NoError(p.t, l.Write())
			p.end(0)
		} else {
			require.NoError(p.t, l.Rollback(next[len(p.now)].pos))
		}
	case op < 18:
		k := max(0, len(p.now)-p.rng.IntN(25))
		if k == len(p.now) || p.now[k].pos < l.Start() {
			return
		}
		p.begin(p.now[:k], k)
		require.NoError(p.t, l.Truncate(p.now[k].pos))
		p.end(0)
		p.term++
	case op < 19:
		_, err := l.Drop(l.Start() + message.Position(p.rng.IntN(100000)))
		require.NoError(p.t, err)
	default:
		require.NoError(p.t, l.Close())
		p.open()
	}
}

func TestSyncedEntriesSurvivePowerCuts(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			crashScript(t, seed, 60)
		})
	}
}

// crashScript plays a script and cuts the power before every operation that changes the disk.
func crashScript(t *testing.T, seed uint64, steps int) {
	mem := vfs.NewCrashableMem()
	p := &player{t: t, rng: rand.New(rand.NewPCG(seed, 1)), term: 1}
	p.opts = small(nil, seed%2 == 0)
	p.opts.Prewrite = seed%4 >= 2
	cuts := rand.New(rand.NewPCG(seed, 2)) // used under model.mu
	p.opts.FS = errorfs.Wrap(mem, beforeWrites(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, keep := range []int{0, 100, 1 + cuts.IntN(99)} {
			if keep == 0 || cuts.IntN(3) == 0 {
				p.cutPower(mem, keep, cuts)
			}
		}
	}))
	p.open()
	for range steps {
		p.step()
	}
	require.NoError(t, p.log.Close())
}

// beforeWrites calls f before each operation that changes the disk.
func beforeWrites(f func()) errorfs.Injector {
	return errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpLock {
			f()
		}
		return nil
	})
}

// cutPower opens what a power cut would leave at this moment, and goes on with it. REQUIRES: mu held.
func (p *player) cutPower(mem *vfs.MemFS, keep int, rng *rand.Rand) {
	cut := &player{t: p.t, rng: rng, opts: p.opts, term: 1000}
	left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: keep, RNG: rng})
	recovering := true
	cut.opts.FS = errorfs.Wrap(left, beforeWrites(func() { // a power cut while recovery repairs what the first one left
		if recovering && rng.IntN(10) == 0 {
			cut.opts.FS = left.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
			log, frames, _, err := tryOpen(cut.opts, firstStart(p.t, cut.opts))
			require.NoError(p.t, err, "after a power cut while recovering")
			require.NoError(p.t, log.Close())
			p.compare(frames, p.now, p.next, p.synced)
		}
	}))
	cut.opts.Prewrite = false
	log, frames, r, err := tryOpen(cut.opts, firstStart(p.t, cut.opts))
	recovering = false
	require.NoError(p.t, err, "after a power cut that kept %d %%", keep)
	p.compare(frames, p.now, p.next, p.synced)
	cut.log = log
	last := int(r.LastIndex)
	if last == 0 && p.synced > 0 {
		last = p.synced // everything was dropped but an empty last segment
		require.Len(p.t, p.now, p.synced)
	}
	list := p.next
	if last > len(list) || last > 0 && r.LastIndex > 0 && list[last-1].term != r.LastTerm {
		list = p.now
	}
	// It grows again, and a second cut takes nothing of it.
	list = cut.add(list[:last], 3)
	require.NoError(p.t, log.Write())
	require.NoError(p.t, log.Sync())
	require.NoError(p.t, log.Close())
	again := left.CrashClone(vfs.CrashCloneCfg{})
	cut.opts.FS = again
	log, frames, r, err = tryOpen(cut.opts, firstStart(p.t, cut.opts))
	require.NoError(p.t, err, "after the second power cut")
	require.False(p.t, r.Torn)
	cut.compare(frames, list, list, len(list))
	require.NoError(p.t, log.Close())
	report, err := Verify("log", again, nil)
	require.NoError(p.t, err)
	require.Empty(p.t, report.Problems)
	require.EqualValues(p.t, len(list), report.LastIndex)
}
