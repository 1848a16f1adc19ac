package key

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

func openStore(t testing.TB, fs vfs.FS) *kv.Store {
	s, err := kv.Open(fs, "views", nil)
	require.NoError(t, err)
	return s
}

func loaded(t testing.TB, s *kv.Store) *View {
	v := New(slog.New(slog.DiscardHandler))
	require.NoError(t, v.Load(s))
	t.Cleanup(func() { _ = v.Close() })
	return v
}

func keep(t testing.TB, s *kv.Store, v *View) {
	write, done := v.Checkpoint()
	b := s.NewBatch()
	write(b)
	require.NoError(t, s.Commit(b, kv.Applied{Position: 1}))
	require.NoError(t, s.Flush())
	done()
}

// find gives all positions of a hash, the newest first.
func find(t testing.TB, v *View, h Hash, begin, end int64) (found []message.Position) {
	s := v.Search()
	require.NoError(t, s.Each(h, begin, end, func(p message.Position) bool {
		found = append(found, p)
		return true
	}))
	require.NoError(t, s.Close())
	return found
}

func always(t testing.TB, v *View, h Hash) []message.Position {
	return find(t, v, h, math.MinInt64, math.MaxInt64)
}

func TestWords(t *testing.T) {
	for in, want := range map[string][]string{
		"": nil, "  ": nil, "a": {"a"}, " a  b ": {"a", "b"}, "é ü": {"é", "ü"},
	} {
		var got []string
		for w := range Words([]byte(in)) {
			got = append(got, string(w))
		}
		require.Equal(t, want, got, "%q", in)
	}
	n := 0
	for range Words([]byte(strings.Repeat("x ", 1000))) {
		n++
	}
	require.Equal(t, maxWords, n)
}

func TestFoldRecordIndexesUniqueKeyAndWords(t *testing.T) {
	v := loaded(t, openStore(t, vfs.NewMem()))
	var props []byte
	props = message.AppendProperty(props, message.PropertyKeys, "order-1 U customer-2")
	props = message.AppendProperty(props, message.PropertyUniqueKey, "U")
	rec := message.AppendRecord(nil, &message.Record{Topic: []byte("T"), Properties: props})
	counts, err := v.FoldRecord(shard.At{Position: 77, Time: 5}, rec)
	require.NoError(t, err)
	require.True(t, counts)
	topic := Topic([]byte("T"))
	for _, k := range []string{"U", "order-1", "customer-2"} {
		require.Equal(t, []message.Position{77}, always(t, v, topic.Of([]byte(k))), k)
	}
	require.Len(t, v.fresh, 3, "the unique key as a word of KEYS counts once")
	require.Empty(t, always(t, v, topic.Of([]byte("order-1 U customer-2"))))
	require.Empty(t, always(t, v, Topic([]byte("U")).Of([]byte("T"))), "topic and key are not to be mixed up")
	_, err = v.FoldRecord(shard.At{Position: 77}, rec[:20])
	require.Error(t, err)
}

// TestEverythingIsFound appends keys at random, with checkpoints and restarts in
// between, and compares with a map.
func TestEverythingIsFound(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			fs := vfs.NewMem()
			s := openStore(t, fs)
			v := loaded(t, s)
			want := map[Hash][]message.Position{}
			pos, hot := message.Position(1000), Hash(rng.Uint64())
			for range 60 {
				for range rng.IntN(400) {
					pos += 1 + message.Position(rng.IntN(1<<20))
					h := Hash(rng.Uint64N(50)) << 56 >> rng.IntN(3) // neighbours in one bucket
					if rng.IntN(3) == 0 {
						h = hot // in more entries than are read at once
					}
					want[h] = append(want[h], pos)
					v.Append(uint64(h), shard.At{Position: pos, Time: int64(pos)})
				}
				keep(t, s, v)
				if rng.IntN(10) == 0 {
					require.NoError(t, v.Close())
					require.NoError(t, s.Close())
					s = openStore(t, fs)
					v = loaded(t, s)
				}
			}
			require.Less(t, len(v.runs), 2*mergeCount, "small runs are merged")
			for h, positions := range want {
				slices.Reverse(positions)
				require.Equal(t, positions, always(t, v, h))
			}
			require.Empty(t, always(t, v, hot^1<<20))
			files, err := s.Files()
			require.NoError(t, err)
			require.LessOrEqual(t, len(files), len(v.runs)+len(v.dead))
			require.NoError(t, s.Close())
		})
	}
}

func TestSearchIsOfItsMoment(t *testing.T) {
	s := openStore(t, vfs.NewMem())
	v := loaded(t, s)
	var search *Search
	for i := range 3 * mergeCount {
		if i == mergeCount/2 {
			search = v.Search()
		}
		v.Append(7<<40, shard.At{Position: message.Position(i), Time: int64(i)})
		keep(t, s, v)
	}
	n := 0
	require.NoError(t, search.Each(7<<40, 0, 1000, func(message.Position) bool { n++; return true }))
	require.Equal(t, mergeCount/2, n, "runs that were merged since can still be read")
	require.NoError(t, search.Close())
	require.Len(t, always(t, v, 7<<40), 3*mergeCount)
}

func TestSearchStopsWhenToldTo(t *testing.T) {
	s := openStore(t, vfs.NewMem())
	v := loaded(t, s)
	for i := range 100 {
		v.Append(9<<40, shard.At{Position: message.Position(i), Time: int64(i)})
		if i == 30 || i == 60 {
			keep(t, s, v)
		}
	}
	for _, limit := range []int{1, 39, 40, 50, 99} {
		search := v.Search()
		var got []message.Position
		require.NoError(t, search.Each(9<<40, 0, 1000, func(p message.Position) bool {
			got = append(got, p)
			return len(got) < limit
		}))
		require.NoError(t, search.Close())
		require.Len(t, got, limit)
		require.Equal(t, message.Position(100-limit), got[limit-1])
	}
	require.Equal(t, message.Position(30), find(t, v, 9<<40, 0, 10)[39], "runs beyond the time are left out")
}

// Retention takes runs with the log that they are about, and their files.
func TestRunsGoWithTheLog(t *testing.T) {
	s := openStore(t, vfs.NewMem())
	v := loaded(t, s)
	for i := range 4 {
		v.Append(uint64(i+1)<<40, shard.At{Position: message.Position(i * 100), Time: 1})
		keep(t, s, v)
	}
	drop := entry.DropLog{Before: 150}
	require.NoError(t, v.FoldCommand(shard.At{}, entry.Raw{Kind: entry.KindDropLog, Body: drop.AppendBody(nil)}))
	keep(t, s, v)
	keep(t, s, v) // removes the files
	require.Len(t, v.runs, 2)
	files, err := s.Files()
	require.NoError(t, err)
	require.Len(t, files, 2)
	again := loaded(t, s)
	require.Equal(t, message.Position(150), again.start)
	require.Len(t, again.runs, 2)
}

// What a crash between a file and its batch leaves behind is removed, and what was in it is folded again.
func TestFilesThatNothingNamesAreRemoved(t *testing.T) {
	s := openStore(t, vfs.NewMem())
	v := loaded(t, s)
	v.Append(1<<40, shard.At{Position: 5})
	write, _ := v.Checkpoint()
	write(s.NewBatch())
	files, err := s.Files()
	require.NoError(t, err)
	require.Len(t, files, 1)
	v = loaded(t, s)
	files, err = s.Files()
	require.NoError(t, err)
	require.Empty(t, files)
	v.Append(1<<40, shard.At{Position: 5})
	keep(t, s, v)
	require.Equal(t, []message.Position{5}, always(t, v, 1<<40))
}

// A run that cannot be read is reported; everything else is found.
func TestADamagedRunIsReported(t *testing.T) {
	fs := vfs.NewMem()
	s := openStore(t, fs)
	v := loaded(t, s)
	for i := range 3 {
		v.Append(3<<40, shard.At{Position: message.Position(i), Time: int64(i)})
		keep(t, s, v)
	}
	overwrite(t, s, v.runs[1], make([]byte, 500))
	var log strings.Builder
	v = New(slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, v.Load(s))
	t.Cleanup(func() { _ = v.Close() })
	require.Contains(t, log.String(), "damaged")
	require.Equal(t, []message.Position{2, 0}, always(t, v, 3<<40))
}

func overwrite(t *testing.T, s *kv.Store, r *run, with []byte) {
	t.Helper()
	require.NoError(t, s.WriteFile(r.name(), func(w io.Writer) error {
		_, err := w.Write(with)
		return err
	}))
}

// Damage that only merging meets does not stop checkpoints: the run stays as it is, and the others around it are merged.
func TestADamagedRunIsNotMerged(t *testing.T) {
	for name, damage := range map[string]func(sp *span) []byte{
		"ends early":   func(sp *span) []byte { return sp.header() },
		"zeros":        func(sp *span) []byte { return append(sp.header(), make([]byte, 1000)...) },
		"another part": func(sp *span) []byte { return append(sp.header(), slices.Repeat([]byte{0xff}, 1000)...) },
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, vfs.NewMem())
			v := loaded(t, s)
			add := func(n int) {
				for range n {
					pos := message.Position(1000 + 10*len(v.runs))
					for i := range 5 {
						v.Append(uint64(i+1)<<40, shard.At{Position: pos, Time: 1})
					}
					keep(t, s, v)
				}
			}
			add(mergeCount / 2)
			bad := v.runs[2]
			overwrite(t, s, bad, damage(&bad.span))
			var err error
			bad.file, err = s.OpenFile(bad.name())
			require.NoError(t, err)
			pos := message.Position(5000)
			for range 4 * mergeCount {
				pos++
				v.Append(9<<40, shard.At{Position: pos, Time: 1})
				keep(t, s, v)
			}
			require.Less(t, len(v.runs), 3*mergeCount)
			search := v.Search()
			n := 0
			for _, r := range slices.Backward(search.runs) {
				if r != bad {
					_, err := r.each(Hash(9<<40).short(), func(message.Position) bool { n++; return true })
					require.NoError(t, err)
				}
			}
			require.NoError(t, search.Close())
			require.Equal(t, 4*mergeCount, n)
		})
	}
}

func TestRunsAreAboutAtMostFourGiBOfLog(t *testing.T) {
	s := openStore(t, vfs.NewMem())
	v := loaded(t, s)
	var want []message.Position
	for i := range 10 {
		want = append(want, message.Position(i)<<31)
		v.Append(5<<40, shard.At{Position: want[i], Time: 1})
	}
	keep(t, s, v)
	require.Greater(t, len(v.runs), 3)
	slices.Reverse(want)
	require.Equal(t, want, always(t, v, 5<<40))
}

// FuzzRun reads a run of any bytes: errors are fine, other things are not.
func FuzzRun(f *testing.F) {
	items := []item{{1 << 40, 3}, {2 << 40, 5}, {2 << 40, 9}}
	f.Add([]byte{1, 2, 3}, uint64(2<<40), uint64(3))
	sp := span{From: 3, To: 10, Count: uint64(len(items))}
	var file strings.Builder
	if err := sp.write(&file, &memorySource{sorted(items)}); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(file.String())[headerSize:], uint64(2<<40), uint64(3))
	f.Fuzz(func(t *testing.T, body []byte, hash, count uint64) {
		s := openStore(t, vfs.NewMem())
		defer s.Close()
		sp := span{From: 3, To: 1 << 40, Count: count % 5000}
		require.NoError(t, s.WriteFile(sp.name(), func(w io.Writer) error {
			_, err := w.Write(append(sp.header(), body...))
			return err
		}))
		r, err := openRun(s, sp)
		require.NoError(t, err)
		_, _ = r.each(Hash(hash).short(), func(message.Position) bool { return true })
		require.NoError(t, r.release())
	})
}

func BenchmarkSearch(b *testing.B) {
	s := openStore(b, vfs.NewMem())
	v := loaded(b, s)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 20 {
		for k := range 50_000 {
			v.Append(rng.Uint64(), shard.At{Position: message.Position(i*50_000+k) * 300, Time: 1})
		}
		keep(b, s, v)
	}
	b.ReportAllocs()
	for b.Loop() {
		search := v.Search()
		_ = search.Each(Hash(rng.Uint64()), 0, 10, func(message.Position) bool { return true })
		_ = search.Close()
	}
}

func BenchmarkAppend(b *testing.B) {
	v := New(slog.New(slog.DiscardHandler))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if v.Append(uint64(i)<<20, shard.At{Position: message.Position(i), Time: 1}); len(v.fresh) == 1<<18 {
			v.fresh = v.fresh[:0]
		}
	}
}

func BenchmarkSorted(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	items := make([]item, 230_000)
	for i := range items {
		items[i] = item{Hash(rng.Uint64()), message.Position(i)}
	}
	b.ReportAllocs()
	for b.Loop() {
		sorted(items)
	}
}
