package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSequencesAgainstASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Uint64Range(0, 200).Draw(t, "from")
		var s sequences
		s.begin(from)
		seen := map[uint64]bool{}
		last, high := from, from
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			n := rapid.Uint64Range(last-min(last, 3), last+4).Draw(t, "n")
			got := s.add(n)
			switch {
			case n < from:
				require.Equal(t, arrivedEarly, got)
				continue
			case seen[n]:
				require.Equal(t, arrivedAgain, got)
				continue
			case n+1 < last:
				require.Equal(t, arrivedLate, got)
			default:
				require.Equal(t, arrivedFirst, got)
			}
			seen[n] = true
			last, high = n+1, max(high, n+1)
		}
		require.Equal(t, high-from-uint64(len(seen)), s.missing())
	})
}

func TestSequencesForgetWhatIsComplete(t *testing.T) {
	var s sequences
	s.begin(0)
	for n := range uint64(100_000) {
		require.Equal(t, arrivedFirst, s.add(n))
	}
	require.LessOrEqual(t, len(s.words), 1)
	require.Zero(t, s.missing())
	require.Equal(t, arrivedAgain, s.add(5))
}

func TestLatencies(t *testing.T) {
	l, other := newLatencies(), newLatencies()
	require.Nil(t, l.summary())
	l.add(1000, 990)
	l.add(50_000, 9)
	other.add(int64(time.Hour), 1) // beyond the range
	l.merge(&other)
	sum := l.summary()
	require.Equal(t, int64(1000), sum.Count)
	require.InDelta(t, 1, sum.P50, 0.05)
	require.InDelta(t, 50, sum.P999, 0.5)
	require.InDelta(t, 6e8, sum.Max, 1e6)
}
