package stats

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHistogramCountsInDoublingBuckets(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{-1, 0, 999, time.Microsecond, 3 * time.Microsecond, time.Millisecond, time.Hour} {
		h.Observe(d)
	}
	s := h.Snapshot()
	require.EqualValues(t, 7, s.Count)
	require.EqualValues(t, 3, s.Counts[0], "below 1 µs")
	require.EqualValues(t, 1, s.Counts[1], "1 µs")
	require.EqualValues(t, 1, s.Counts[2], "3 µs")
	require.EqualValues(t, 1, s.Counts[10], "1 ms < 1024 µs")
	require.EqualValues(t, 1, s.Counts[Buckets-1])
	require.Equal(t, time.Microsecond, s.Quantile(0.3))
	require.Equal(t, UpperBound(10), s.Quantile(0.75))
	require.Zero(t, (&Snapshot{}).Quantile(0.5))
}

func TestHistogramCountsManyAtOnce(t *testing.T) {
	var h Histogram
	h.ObserveN(40*time.Microsecond, 3)
	s := h.Snapshot()
	require.EqualValues(t, 3, s.Counts[6], "40 µs < 64 µs")
	require.EqualValues(t, 3, s.Count)
	require.Equal(t, 120*time.Microsecond, s.Sum)
}

func TestCounter(t *testing.T) {
	var c Counter
	c.Add(2)
	c.Add(3)
	require.EqualValues(t, 5, c.Load())
}

func BenchmarkObserve(b *testing.B) {
	var h Histogram
	b.ReportAllocs()
	for b.Loop() {
		h.Observe(123 * time.Microsecond)
	}
}
