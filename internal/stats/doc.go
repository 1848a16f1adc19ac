// Package stats has the counters and latency histograms that rooms keep of their work.
//
// They are plain atomics that cost nanoseconds, know no metrics system and are
// read by whoever exposes them (the HTTP door makes Prometheus metrics of them).
//
// [Counter] is a number that grows; [Histogram] counts durations in buckets that
// double, from 1 µs to about 34 s.
package stats
