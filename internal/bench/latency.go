package bench

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Range of what is recorded, in nanoseconds; what lies outside counts as the limit.
const (
	latencyMin = 100
	latencyMax = int64(10 * time.Minute)
)

// latencies is an HDR histogram of times in nanoseconds, right to three digits.
type latencies struct {
	h *hdrhistogram.Histogram
	// Answers come in bunches of one latency: they are recorded together.
	value, times int64
}

func newLatencies() latencies { return latencies{h: hdrhistogram.New(latencyMin, latencyMax, 3)} }

// add takes a time n times.
func (l *latencies) add(ns, n int64) {
	if ns != l.value {
		l.settle()
		l.value = ns
	}
	l.times += n
}

func (l *latencies) settle() {
	if l.times > 0 {
		_ = l.h.RecordValues(min(max(l.value, latencyMin), latencyMax), l.times) // it is in range
		l.times = 0
	}
}

// merge adds those of o, which is not used any more.
func (l *latencies) merge(o *latencies) {
	l.settle()
	o.settle()
	l.h.Merge(o.h)
}

// Latency is a summary of times. All but Count are microseconds.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean_us"`
	P50   float64 `json:"p50_us"`
	P90   float64 `json:"p90_us"`
	P99   float64 `json:"p99_us"`
	P999  float64 `json:"p999_us"`
	P9999 float64 `json:"p9999_us"`
	Max   float64 `json:"max_us"`
}

func (l *latencies) summary() *Latency {
	l.settle()
	if l.h.TotalCount() == 0 {
		return nil
	}
	us := func(ns int64) float64 { return float64(ns) / 1e3 }
	at := func(q float64) float64 { return us(l.h.ValueAtQuantile(q)) }
	return &Latency{
		Count: l.h.TotalCount(), Mean: l.h.Mean() / 1e3,
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), P9999: at(99.99), Max: us(l.h.Max()),
	}
}
