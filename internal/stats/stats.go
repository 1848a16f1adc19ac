package stats

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Counter is a number that only grows. The zero value is ready; any goroutine may use it.
type Counter struct{ n atomic.Int64 }

// Add adds n.
func (c *Counter) Add(n int64) { c.n.Add(n) }

// Load is the number so far.
func (c *Counter) Load() int64 { return c.n.Load() }

// Buckets is the number of buckets of a Histogram.
const Buckets = 26

// Histogram counts durations: bucket i holds those of less than 2^i µs that are in
// no bucket before, the last one all others. The zero value is ready; any goroutine may use it.
type Histogram struct {
	counts [Buckets]atomic.Int64
	sum    atomic.Int64 // ns
}

// Observe counts one duration.
func (h *Histogram) Observe(d time.Duration) {
	h.counts[min(bits.Len64(uint64(max(d, 0)/time.Microsecond)), Buckets-1)].Add(1)
	h.sum.Add(int64(d))
}

// ObserveN counts n durations that are the same.
func (h *Histogram) ObserveN(d time.Duration, n int64) {
	h.counts[min(bits.Len64(uint64(max(d, 0)/time.Microsecond)), Buckets-1)].Add(n)
	h.sum.Add(int64(d) * n)
}

// UpperBound is the limit below which the durations of bucket i lie; the last bucket has none.
func UpperBound(i int) time.Duration { return time.Microsecond << i }

// Snapshot is what a Histogram holds at one moment; counts are per bucket, not cumulative.
type Snapshot struct {
	Counts [Buckets]int64
	Count  int64
	Sum    time.Duration
}

// Snapshot reads the histogram.
func (h *Histogram) Snapshot() (s Snapshot) {
	for i := range h.counts {
		s.Counts[i] = h.counts[i].Load()
		s.Count += s.Counts[i]
	}
	s.Sum = time.Duration(h.sum.Load())
	return s
}

// Quantile is an upper bound of the q-th quantile (0 to 1), 0 when nothing was counted.
func (s *Snapshot) Quantile(q float64) time.Duration {
	rank := int64(q * float64(s.Count))
	for i, n := range s.Counts {
		if rank -= n; rank < 0 {
			return UpperBound(i)
		}
	}
	if s.Count == 0 {
		return 0
	}
	return UpperBound(Buckets - 1)
}
