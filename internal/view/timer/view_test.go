package timer

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

func record(topic, properties string) []byte {
	return message.AppendRecord(nil, &message.Record{Topic: []byte(topic), Body: []byte("x"), Properties: []byte(properties)})
}

func (v *View) park(t testing.TB, pos message.Position, due int64) {
	t.Helper()
	counts, err := v.FoldRecord(shard.At{Position: pos}, record(message.TopicTimer, fmt.Sprintf("TIMER_OUT_MS\x01%d\x02", due)))
	require.NoError(t, err)
	require.True(t, counts)
}

func (v *View) finish(t testing.TB, pos message.Position) {
	t.Helper()
	c := &entry.TimerDone{Parked: pos}
	require.NoError(t, v.FoldCommand(shard.At{}, entry.Raw{Kind: c.Kind(), Body: c.AppendBody(nil)}))
}

func positions(ps []Parked) (out []message.Position) {
	for _, p := range ps {
		out = append(out, p.Position)
	}
	return out
}

func openStore(t *testing.T) *kv.Store {
	t.Helper()
	s, err := kv.Open(vfs.NewMem(), "views", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func checkpoint(t *testing.T, s *kv.Store, v *View) {
	t.Helper()
	write, done := v.Checkpoint()
	b := s.NewBatch()
	write(b)
	require.NoError(t, s.Commit(b, kv.Applied{Position: 1, Index: 1, Term: 1}))
	done()
}

func TestOnlyWhatIsParkedIsPending(t *testing.T) {
	v := New()
	for topic, props := range map[string]string{
		"T": "TIMER_OUT_MS\x015\x02", message.TopicTimer: "KEYS\x01k\x02", message.TopicSchedule: "TIMER_OUT_MS\x01soon\x02",
	} {
		counts, err := v.FoldRecord(shard.At{Position: 1}, record(topic, props))
		require.NoError(t, err)
		require.True(t, counts, "what it does with a record is no reason for others not to count it")
	}
	require.Zero(t, v.Len())
	_, err := v.FoldRecord(shard.At{}, []byte("no record"))
	require.Error(t, err)
	_, err = v.FoldRecord(shard.At{Position: 7}, record(message.TopicSchedule, "TIMER_OUT_MS\x015\x02"))
	require.NoError(t, err)
	require.Equal(t, 1, v.Len())
	require.Equal(t, message.Position(7), v.Needs())
}

func TestWhatIsDueComesInOrder(t *testing.T) {
	v := New()
	_, ok := v.Next()
	require.False(t, ok)
	require.Negative(t, v.Needs())
	require.Empty(t, v.Due(nil, 1<<60, 10))
	require.False(t, v.NextChanged())
	for i, due := range []int64{50, 20, 40, 20, 10, 30} {
		v.park(t, message.Position(i+1), due)
	}
	require.True(t, v.NextChanged())
	require.False(t, v.NextChanged())
	next, ok := v.Next()
	require.True(t, ok)
	require.Equal(t, int64(10), next)
	require.Empty(t, v.Due(nil, 9, 10))
	require.Equal(t, []message.Position{5, 2, 4, 6}, positions(v.Due(nil, 30, 10)), "by time, then position")
	require.Equal(t, []message.Position{5, 2, 4}, positions(v.Due(nil, 30, 3)))
	require.Equal(t, 6, v.Len(), "looking takes nothing away")
	for _, pos := range []message.Position{5, 2, 4} {
		v.finish(t, pos)
		v.finish(t, pos) // again, and of nothing
	}
	require.Equal(t, []message.Position{6, 3, 1}, positions(v.Due(nil, 100, 10)))
	require.Equal(t, message.Position(1), v.Needs())
}

// A message that was parked later may be due earlier than one that is being delivered.
func TestWhatIsDoneDoesNotComeAgain(t *testing.T) {
	v := New()
	v.park(t, 1, 100)
	v.park(t, 2, 110)
	require.Equal(t, []message.Position{1, 2}, positions(v.Due(nil, 120, 10)))
	v.park(t, 3, 50)
	v.finish(t, 1)
	v.finish(t, 2)
	require.Equal(t, []message.Position{3}, positions(v.Due(nil, 120, 10)))
	v.finish(t, 3)
	require.Empty(t, v.Due(nil, 120, 10))
	_, ok := v.Next()
	require.False(t, ok)
	require.Zero(t, v.Len())
	require.Empty(t, v.order)
}

// Random parking and finishing, in any order, with checkpoints: what is pending is what a simple list says.
func TestTimersAreLoadedAsTheyWereFolded(t *testing.T) {
	s := openStore(t)
	v, rng := New(), rand.New(rand.NewPCG(3, 5))
	pending := map[message.Position]int64{}
	pos := message.Position(0)
	for range 80 {
		for range rng.IntN(40) {
			if rng.IntN(5) < 3 || len(pending) == 0 {
				pos++
				due := int64(rng.IntN(1000))
				v.park(t, pos, due)
				pending[pos] = due
				continue
			}
			done := message.Position(rng.Int64N(int64(pos)) + 1)
			v.finish(t, done)
			delete(pending, done)
		}
		if rng.IntN(3) > 0 {
			continue
		}
		checkpoint(t, s, v)
		loaded := New()
		require.NoError(t, loaded.Load(s))
		require.Equal(t, v.pending, loaded.pending)
		var want []Parked
		for p, due := range pending {
			want = append(want, Parked{Due: due, Position: p, Size: v.pending[p].Size})
		}
		slices.SortFunc(want, func(a, b Parked) int {
			if a.Due != b.Due {
				return int(a.Due - b.Due)
			}
			return int(a.Position - b.Position)
		})
		require.Equal(t, want, append([]Parked(nil), v.Due(nil, 1<<60, 1<<30)...))
		require.Equal(t, want, append([]Parked(nil), loaded.Due(nil, 1<<60, 1<<30)...))
	}
}

// What is done while the checkpoint that has it is being written goes with the next one.
func TestATimerThatIsDoneDuringACheckpoint(t *testing.T) {
	s := openStore(t)
	v := New()
	v.park(t, 1, 10)
	write, done := v.Checkpoint()
	v.finish(t, 1)
	v.park(t, 2, 20)
	v.finish(t, 2)
	b := s.NewBatch()
	write(b)
	require.NoError(t, s.Commit(b, kv.Applied{Position: 1, Index: 1, Term: 1}))
	done()
	checkpoint(t, s, v)
	loaded := New()
	require.NoError(t, loaded.Load(s))
	require.Zero(t, loaded.Len())
	b = s.NewBatch()
	b.Set([]byte("dshort"), nil)
	require.NoError(t, s.Commit(b, kv.Applied{Position: 1, Index: 1, Term: 1}))
	require.ErrorContains(t, New().Load(s), "timer view")
}

func BenchmarkParkAndFinish(b *testing.B) {
	v := New()
	rec := record(message.TopicTimer, "TIMER_OUT_MS\x011234567890123\x02")
	pos := message.Position(0)
	var body []byte
	b.ReportAllocs()
	for b.Loop() {
		pos++
		if _, err := v.FoldRecord(shard.At{Position: pos}, rec); err != nil {
			b.Fatal(err)
		}
		c := entry.TimerDone{Parked: pos}
		body = c.AppendBody(body[:0])
		if err := v.FoldCommand(shard.At{}, entry.Raw{Kind: entry.KindTimerDone, Body: body}); err != nil {
			b.Fatal(err)
		}
	}
}
