package httpdoor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/commitlog"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/internal/stats"
)

// collector makes Prometheus metrics of what the rooms have counted. It keeps nothing: every scrape reads all anew.
type collector struct{ door *Door }

// sample is what a scrape has read.
type sample struct {
	door      *Door
	broker    *broker.Broker
	gauges    broker.Gauges
	segments  []commitlog.SegmentInfo
	diskTotal int64
	diskFree  int64
	lags      []broker.GroupLag
	lagsLeft  int
	conns     remoting.Stats
}

func (d *Door) sample() *sample {
	b := d.opts.Broker
	s := &sample{door: d, broker: b, gauges: b.Gauges(), segments: b.Shard().Log().Segments(), conns: d.opts.Connections()}
	s.diskTotal, s.diskFree = b.Shard().DiskSize()
	s.lags, s.lagsLeft = b.Lags(d.conf.Load().MaxLags)
	return s
}

// desc describes a family; those about a shard carry its name.
func (f *family) desc(shard string) *prometheus.Desc {
	var constant prometheus.Labels
	if f.shard {
		constant = prometheus.Labels{"shard": shard}
	}
	return prometheus.NewDesc(f.name, f.help, f.labels, constant)
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	name := c.door.opts.Broker.Config().Name
	for i := range families {
		ch <- families[i].desc(name)
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.door.sample()
	name := s.broker.Config().Name
	for i := range families {
		f := &families[i]
		desc := f.desc(name)
		switch {
		case f.times != nil:
			ch <- histogram(desc, f.times(s))
		case f.each != nil:
			f.each(s, func(v float64, labels ...string) {
				ch <- prometheus.MustNewConstMetric(desc, f.kind.value(), v, labels...)
			})
		default:
			ch <- prometheus.MustNewConstMetric(desc, f.kind.value(), f.value(s))
		}
	}
}

// histogram makes the cumulative buckets, in seconds, that Prometheus wants. The last bucket of ours has no bound.
func histogram(desc *prometheus.Desc, t stats.Snapshot) prometheus.Metric {
	buckets := make(map[float64]uint64, stats.Buckets-1)
	var n int64
	for i := range stats.Buckets - 1 {
		n += t.Counts[i]
		buckets[stats.UpperBound(i).Seconds()] = uint64(n)
	}
	return prometheus.MustNewConstHistogram(desc, uint64(t.Count), t.Sum.Seconds(), buckets)
}

func oneIf(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// unix is a moment in seconds since 1970, as Prometheus has times; 0 when there is none.
func unix(ms int64) float64 { return (time.Duration(ms) * time.Millisecond).Seconds() }
