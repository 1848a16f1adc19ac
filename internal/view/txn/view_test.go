package txn

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

func half(topic, properties string) []byte {
	return message.AppendRecord(nil, &message.Record{Topic: []byte(topic), Body: []byte("x"), Properties: []byte(properties), QueueOffset: 7})
}

// begin folds a half message of a group; immunity is its property, "" for none.
func (v *View) begin(t testing.TB, pos message.Position, stored int64, group, immunity string) {
	t.Helper()
	props := message.AppendProperty(message.AppendProperty(nil, "PGROUP", group), "CHECK_IMMUNITY_TIME_IN_SECONDS", immunity)
	counts, err := v.FoldRecord(shard.At{Position: pos, Time: stored}, half(message.TopicHalf, string(props)))
	require.NoError(t, err)
	require.True(t, counts)
}

func (v *View) fold(t testing.TB, time int64, c entry.Command) {
	t.Helper()
	require.NoError(t, v.FoldCommand(shard.At{Time: time}, entry.Raw{Kind: c.Kind(), Body: c.AppendBody(nil)}))
}

func (v *View) decide(t testing.TB, pos message.Position, time int64, d entry.Decision) {
	t.Helper()
	v.fold(t, time, &entry.EndTransaction{Half: pos, Decision: d})
}

func positions(list []Open) (out []message.Position) {
	for _, o := range list {
		out = append(out, o.Position)
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
	commit(t, s, write)
	done()
}

func commit(t *testing.T, s *kv.Store, write func(*kv.Batch)) {
	t.Helper()
	b := s.NewBatch()
	write(b)
	require.NoError(t, s.Commit(b, kv.Applied{Position: 1, Index: 1, Term: 1}))
}

func load(t *testing.T, s *kv.Store) *View {
	t.Helper()
	v := New()
	require.NoError(t, v.Load(s))
	return v
}

func TestOnlyHalfMessagesAreOpen(t *testing.T) {
	v := New()
	for topic, props := range map[string]string{"T": "PGROUP\x01P\x02TRAN_MSG\x01true\x02", message.TopicHalf: "KEYS\x01k\x02"} {
		counts, err := v.FoldRecord(shard.At{Position: 1}, half(topic, props))
		require.NoError(t, err)
		require.True(t, counts)
	}
	require.Zero(t, v.Len())
	require.Negative(t, v.Needs())
	_, ok := v.Oldest()
	require.False(t, ok)
	_, err := v.FoldRecord(shard.At{}, []byte("no record"))
	require.Error(t, err)
	for _, c := range []entry.Kind{entry.KindEndTransaction, entry.KindCheckTransaction} {
		require.Error(t, v.FoldCommand(shard.At{}, entry.Raw{Kind: c, Body: []byte{0xff}}))
	}

	v.begin(t, 5, 1000, "P", "")
	v.begin(t, 9, 1001, "P", "3")
	o, ok := v.Get(5)
	require.True(t, ok)
	size := int32(len(half(message.TopicHalf, "PGROUP\x01P\x02")))
	require.Equal(t, Open{Position: 5, Size: size, Offset: 7, Stored: 1000, Immunity: NoImmunity, Group: "P"}, o)
	o, _ = v.Get(9)
	require.Equal(t, int64(3000), o.Immunity)
	require.Equal(t, message.Position(5), v.Needs())
}

// semantics §22: what is no number is the broker's immunity; nothing overflows.
func TestImmunityIsReadLikeRocketMQDoes(t *testing.T) {
	v := New()
	for i, test := range []struct {
		text string
		want int64
	}{
		{"", NoImmunity}, {"x", NoImmunity}, {"-1", NoImmunity}, {"1.5", NoImmunity}, {"0", 0}, {"600", 600_000},
		{"9223372036854775807", (1<<31 - 1) * 1000}, {"99999999999999999999", NoImmunity},
	} {
		v.begin(t, message.Position(i+1), 1, "P", test.text)
		o, _ := v.Get(message.Position(i + 1))
		require.Equal(t, test.want, o.Immunity, test.text)
	}
}

func TestTheFirstDecisionCounts(t *testing.T) {
	v := New()
	v.begin(t, 1, 10, "P", "")
	v.begin(t, 2, 10, "P", "")
	v.decide(t, 1, 50, entry.Rollback)
	v.decide(t, 1, 60, entry.Commit)
	v.decide(t, 3, 60, entry.Commit) // of nothing
	e, ok := v.Ended(1)
	require.True(t, ok)
	require.Equal(t, Ended{Half: 1, Offset: 7, Decision: entry.Rollback, Time: 50}, e)
	_, ok = v.Ended(3)
	require.False(t, ok)
	_, ok = v.Get(1)
	require.False(t, ok)
	require.Equal(t, 1, v.Len())
	v.fold(t, 70, &entry.CheckTransaction{Half: 1, Checks: 1, Next: 99}) // too late
	require.Equal(t, 1, v.Len())
	v.decide(t, 9, 80, entry.Resume) // what was given up is not open, and yet remembered
	e, ok = v.Ended(9)
	require.True(t, ok)
	require.Equal(t, entry.Resume, e.Decision)
}

func TestWhoIsAskedWhen(t *testing.T) {
	v := New()
	v.begin(t, 1, 1000, "P", "")
	v.begin(t, 2, 1001, "P", "1") // 2001
	v.begin(t, 3, 1002, "Q", "")
	v.begin(t, 4, 1003, "P", "")
	next := map[string]int64{}
	v.Groups(6000, func(name string, at int64) { next[name] = at })
	require.Equal(t, map[string]int64{"P": 2001, "Q": 7002}, next)
	require.Empty(t, v.Due(nil, "nobody", 1<<60, 0, 10))
	require.Empty(t, v.Due(nil, "P", 2000, 6000, 10))
	require.Equal(t, []message.Position{2}, positions(v.Due(nil, "P", 2001, 6000, 10)), "the very moment counts (C091)")
	require.Equal(t, []message.Position{2, 1}, positions(v.Due(nil, "P", 7000, 6000, 10)))
	require.Equal(t, []message.Position{2, 1}, positions(v.Due(nil, "P", 1<<60, 6000, 2)))
	require.Equal(t, []message.Position{2, 1, 4}, positions(v.Due(nil, "P", 7003, 6000, 10)))

	v.fold(t, 2001, &entry.CheckTransaction{Half: 2, Checks: 1, Next: 9000})
	v.fold(t, 7000, &entry.CheckTransaction{Half: 1, Checks: 3, Next: 8000})
	require.Equal(t, []message.Position{4}, positions(v.Due(nil, "P", 7003, 6000, 10)))
	require.Equal(t, []message.Position{1, 2, 4}, positions(v.Due(nil, "P", 9000, 6000, 10)))
	o, _ := v.Get(1)
	require.Equal(t, int32(3), o.Checks)
	require.Equal(t, int64(8000), o.Next)
	v.Groups(6000, func(name string, at int64) { next[name] = at })
	require.Equal(t, map[string]int64{"P": 7003, "Q": 7002}, next)

	for _, pos := range []message.Position{4, 3, 2} {
		v.decide(t, pos, 1, entry.Commit)
	}
	clear(next)
	v.Groups(6000, func(name string, at int64) { next[name] = at })
	require.Equal(t, map[string]int64{"P": 8000}, next, "groups without open transactions are forgotten")
}

func TestOpenTransactionsAreListedByPosition(t *testing.T) {
	v := New()
	for pos := message.Position(1); pos <= 100; pos++ {
		v.begin(t, pos*10, 1, fmt.Sprint("P", pos%3), "")
	}
	for pos := message.Position(2); pos <= 98; pos++ {
		v.decide(t, pos*10, 1, entry.Commit)
	}
	require.Equal(t, []message.Position{10, 990, 1000}, positions(v.After(nil, 0, "", 10)))
	require.Equal(t, []message.Position{990}, positions(v.After(nil, 10, "", 1)))
	require.Equal(t, []message.Position{990}, positions(v.After(nil, 0, "P0", 10)))
	require.Empty(t, v.After(nil, 1000, "", 10))
	require.LessOrEqual(t, len(v.order), 6, "what ended takes no room")
	v.decide(t, 10, 1, entry.Commit)
	require.Equal(t, message.Position(990), v.Needs())
}

// What ended is forgotten by the entries' time and by number, whatever the clock does.
func TestWhatEndedIsForgottenInTheEnd(t *testing.T) {
	v := New()
	end := func(pos message.Position, time int64) {
		v.begin(t, pos, 1, "P", "")
		v.decide(t, pos, time, entry.Commit)
	}
	end(1, 1000)
	end(2, 500) // the clock was set back
	end(3, 1000+rememberTime)
	_, ok := v.Ended(1)
	require.True(t, ok)
	end(4, 1001+rememberTime)
	for _, pos := range []message.Position{1, 2} {
		_, ok := v.Ended(pos)
		require.False(t, ok)
	}
	for i := range rememberCount {
		end(message.Position(i+10), 2000+rememberTime)
	}
	require.Len(t, v.ended.list, rememberCount)
	require.Len(t, v.ended.by, rememberCount)
	_, ok = v.Ended(4)
	require.False(t, ok)
	v.decide(t, 10, 1, entry.Resume) // the same position again: the later word counts, also when the first is forgotten
	end(message.Position(rememberCount+100), 2000+rememberTime)
	e, ok := v.Ended(10)
	require.True(t, ok)
	require.Equal(t, entry.Resume, e.Decision)
}

// Random transactions with checkpoints: a view that is loaded is like the one that was folded, and the store has nothing
// that is neither open nor remembered.
func TestTransactionsAreLoadedAsTheyWereFolded(t *testing.T) {
	s := openStore(t)
	v, rng := New(), rand.New(rand.NewPCG(3, 5))
	pos, clock := message.Position(0), int64(1000)
	for range 120 {
		for range rng.IntN(40) {
			clock += rng.Int64N(rememberTime / 100)
			one := pos - message.Position(rng.Int64N(20))
			switch rng.IntN(4) {
			case 0, 1:
				pos++
				v.begin(t, pos, clock, fmt.Sprint("P", rng.IntN(3)), []string{"", "5"}[rng.IntN(2)])
			case 2:
				v.decide(t, one, clock, entry.Decision(1+rng.IntN(3)))
			case 3:
				v.fold(t, clock, &entry.CheckTransaction{Half: one, Checks: rng.Int32N(15), Next: clock + rng.Int64N(10_000)})
			}
		}
		if rng.IntN(3) > 0 {
			continue
		}
		checkpoint(t, s, v)
		loaded := load(t, s)
		same(t, v, loaded)
		if rng.IntN(2) == 0 {
			v = loaded
		}
		keys := 0
		require.NoError(t, s.Scan([]byte{prefix}, []byte{prefix + 1}, func(_, _ []byte) bool { keys++; return true }))
		require.Equal(t, v.Len()+len(v.ended.list), keys)
	}
}

func same(t *testing.T, want, got *View) {
	t.Helper()
	require.Equal(t, want.After(nil, -1, "", 1<<30), got.After(nil, -1, "", 1<<30))
	for _, name := range []string{"P0", "P1", "P2"} {
		require.Equal(t, want.Due(nil, name, 1<<60, 6000, 1<<30), got.Due(nil, name, 1<<60, 6000, 1<<30))
		require.True(t, slices.IsSortedFunc(got.Due(nil, name, 1<<60, 6000, 1<<30), func(a, b Open) int {
			if a.young() != b.young() {
				return map[bool]int{false: -1, true: 1}[a.young()]
			}
			return int(a.due() - b.due())
		}))
	}
	require.Equal(t, append([]Ended{}, want.ended.list...), append([]Ended{}, got.ended.list...))
	require.Equal(t, want.ended.by, got.ended.by)
	if len(want.ended.list) > 0 {
		require.Equal(t, want.ended.head, got.ended.head)
	}
}

// What happens while a checkpoint is being written goes with the next one.
func TestADecisionDuringACheckpoint(t *testing.T) {
	s := openStore(t)
	v := New()
	v.begin(t, 1, 10, "P", "")
	v.begin(t, 2, 10, "P", "")
	write, done := v.Checkpoint()
	v.decide(t, 1, 20, entry.Commit)
	v.fold(t, 20, &entry.CheckTransaction{Half: 2, Checks: 1, Next: 99})
	v.begin(t, 3, 30, "P", "")
	v.decide(t, 3, 40, entry.Rollback)
	commit(t, s, write)
	done()
	require.Equal(t, 2, load(t, s).Len())
	checkpoint(t, s, v)
	loaded := load(t, s)
	same(t, v, loaded)
	require.Equal(t, 1, loaded.Len())
}

func TestAStoreThatIsDamagedIsRefused(t *testing.T) {
	for _, k := range []string{"xo", "xe", "xo12345678", "xe12345678"} {
		s := openStore(t)
		commit(t, s, func(b *kv.Batch) { b.Set([]byte(k), []byte("short")) })
		require.ErrorContains(t, New().Load(s), "transaction view")
	}
	s := openStore(t)
	commit(t, s, func(b *kv.Batch) { // a gap
		b.Set(key(endedKey, 5), (&Ended{Half: 1}).value())
		b.Set(key(endedKey, 7), (&Ended{Half: 2}).value())
	})
	require.ErrorContains(t, New().Load(s), "transaction view")
}

// FuzzStoredValues reads any bytes: what can be read is written as it was.
func FuzzStoredValues(f *testing.F) {
	o := Open{Position: 1 << 40, Size: 300, Offset: 9, Stored: 1 << 40, Immunity: NoImmunity, Checks: 3, Next: 1 << 41, Group: "P"}
	e := Ended{Half: 1 << 40, Offset: 9, Decision: entry.GiveUp, Time: 1 << 40}
	f.Add(key(openKey, 1<<40), o.value())
	f.Add(key(endedKey, 3), e.value())
	f.Fuzz(func(t *testing.T, k, b []byte) {
		if o, ok := parseOpen(k, b); ok {
			require.Equal(t, b, o.value())
		}
		if _, e, ok := parseEnded(k, b); ok {
			require.Equal(t, b, e.value())
		}
	})
}

func BenchmarkBeginAndEnd(b *testing.B) {
	v := New()
	rec := half(message.TopicHalf, "PGROUP\x01P\x02TRAN_MSG\x01true\x02UNIQ_KEY\x01C00002027B784E0E2F2A93F983F10000\x02")
	pos := message.Position(0)
	var body []byte
	b.ReportAllocs()
	for b.Loop() {
		pos++
		if _, err := v.FoldRecord(shard.At{Position: pos}, rec); err != nil {
			b.Fatal(err)
		}
		c := entry.EndTransaction{Half: pos, Decision: entry.Commit}
		body = c.AppendBody(body[:0])
		if err := v.FoldCommand(shard.At{}, entry.Raw{Kind: c.Kind(), Body: body}); err != nil {
			b.Fatal(err)
		}
	}
}
