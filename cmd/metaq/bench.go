package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
	"github.com/metaqio/metaq/internal/bench"
	"github.com/metaqio/metaq/internal/protocol"
)

func newBench() *cobra.Command {
	cmd := parent(&cobra.Command{
		Use:     "bench",
		GroupID: groupCheck,
		Short:   "Measure a server: ours, or any that is compatible with RocketMQ",
		Long: "Loads a server with sends, with pulls, or with both, and measures rates and latencies.\n\n" +
			"Each message carries a checksum and a number, so that whatever consumes it sees what was lost, doubled or damaged.\n" +
			"The exit code is 1 when anything of that kind happened.",
		Example: "  metaq bench suite\n  metaq bench produce --connections 4 --in-flight 1024 --duration 10s\n" +
			"  metaq bench e2e --rate 1000 --duration 30s --output json",
	})
	cmd.AddCommand(newBenchSuite(), newBenchProduce(), newBenchConsume(), newBenchE2E())
	return cmd
}

// benchFlags are those of all loads.
type benchFlags struct {
	topic    string
	queues   int32
	encoding string
	warmUp   time.Duration
	duration time.Duration
}

func addBenchFlags(cmd *cobra.Command) *benchFlags {
	f := &benchFlags{}
	flags := cmd.Flags()
	flags.StringVarP(&f.topic, "topic", "t", "metaq-bench", "`TOPIC`")
	flags.Int32VarP(&f.queues, "queues", "n", 0, "only the first N queues on each broker; 0: all")
	flags.StringVar(&f.encoding, "header", "json", "encoding of headers: json or binary")
	flags.DurationVar(&f.warmUp, "warm-up", 0, "time before the measuring begins")
	flags.DurationVarP(&f.duration, "duration", "d", 10*time.Second, "time that is measured")
	return f
}

func (f *benchFlags) header() (protocol.Encoding, error) {
	switch f.encoding {
	case "json":
		return protocol.JSON, nil
	case "binary":
		return protocol.Binary, nil
	}
	return 0, usagef("header %q: it is json or binary", f.encoding)
}

// freshQueues is how many queues a topic gets that is made for a load and for which no number is given.
const freshQueues = 8

// topicPatience is how long a new topic may take to appear in the routes.
const topicPatience = 15 * time.Second

// route finds the topic, and makes it if it is not there.
func (f *benchFlags) route(ctx context.Context, c *admin.Client) (admin.Route, error) {
	r, err := c.Route(ctx, f.topic)
	if !errors.Is(err, admin.ErrNotThere) {
		return r, err
	}
	n := f.queues
	if n == 0 {
		n = freshQueues
	}
	if err := c.PutTopic(ctx, f.topic, admin.TopicConfig{ReadQueues: n, WriteQueues: n, Perm: admin.PermRead | admin.PermWrite}); err != nil {
		return r, err
	}
	for deadline := time.Now().Add(topicPatience); ; {
		r, err := c.Route(ctx, f.topic)
		if err == nil || !errors.Is(err, admin.ErrNotThere) || time.Now().After(deadline) {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// target gives the queues that a load goes to, those that are sent to or those that are consumed.
func (f *benchFlags) target(r admin.Route, write bool) bench.Target {
	t := bench.Target{Topic: r.Topic}
	for _, b := range r.Brokers {
		n, perm := b.ReadQueues, int32(admin.PermRead)
		if write {
			n, perm = b.WriteQueues, admin.PermWrite
		}
		if f.queues > 0 {
			n = min(n, f.queues)
		}
		of := bench.Broker{Name: b.Name, Addr: b.Addr}
		for q := range n {
			of.Queues = append(of.Queues, q)
		}
		if b.Perm&perm != 0 && n > 0 {
			t.Brokers = append(t.Brokers, of)
		}
	}
	return t
}

// starts gives where the queues of a target are consumed from, and where they end if that is wanted.
func (f *benchFlags) starts(ctx context.Context, c *admin.Client, t bench.Target, from admin.Place, toEnd bool) ([][]bench.Start, error) {
	var all [][]bench.Start
	for _, b := range t.Brokers {
		var of []bench.Start
		for _, id := range b.Queues {
			q := admin.Queue{Topic: t.Topic, Broker: b.Name, ID: id}
			first, next, err := c.Bounds(ctx, q)
			if err != nil {
				return nil, err
			}
			s := bench.Start{To: -1}
			if s.From, err = c.Find(ctx, q, from); err != nil {
				return nil, err
			}
			if toEnd {
				s.To = next
			}
			s.Whole = s.From == 0 && first == 0
			of = append(of, s)
		}
		all = append(all, of)
	}
	return all, nil
}

// showProgress gives what shows a run's progress on a terminal, and what takes it away again.
func showProgress(cmd *cobra.Command, what string) (show func(bench.Progress), clear func()) {
	line := newStatusLine(cmd)
	if !line.live() {
		return nil, func() {}
	}
	return func(p bench.Progress) {
		phase := ""
		if p.WarmUp {
			phase = "  (warm-up)"
		}
		if p.Errors > 0 {
			phase += fmt.Sprintf("  %s errors", thousands(float64(p.Errors)))
		}
		line.set("%s %3.0fs  %s msg/s  %.1f MB/s%s", what, p.Elapsed.Seconds(), thousands(p.Rate), p.Bytes/1e6, phase)
	}, line.clear
}

// loads are the two halves of a run that tell of problems.
type loads struct {
	produce *bench.ProduceResult
	consume *bench.ConsumeResult
	lost    int64
}

// problems lists what was not as it should be.
func (l loads) problems() (list []string) {
	count := func(n int64, what string) {
		if n > 0 {
			list = append(list, thousands(float64(n))+" "+what)
		}
	}
	if p := l.produce; p != nil {
		for code, n := range p.Errors {
			count(n, code)
		}
		count(p.Unanswered, "unanswered")
		count(p.Unsent, "due but not sent: the server was too slow")
		count(p.Unmatched, "answers that nobody waited for")
		count(p.BadAcks, "acknowledgements without queue, offset or id")
		count(int64(p.Broken), "connections broken")
	}
	if c := l.consume; c != nil {
		for code, n := range c.Errors {
			count(n, code)
		}
		count(c.Missing, "missing")
		count(c.Duplicates, "duplicates")
		count(c.Damaged, "damaged")
		count(c.BadCRC, "with a wrong stored CRC")
		count(c.Misrouted, "in the wrong queue")
		count(c.OffsetGaps, "gaps in offsets")
		count(int64(c.Broken), "connections broken")
	}
	count(l.lost, "lost")
	return list
}

// verdict makes problems the command's failure.
func (l loads) verdict(cmd *cobra.Command) error {
	problems := l.problems()
	if len(problems) == 0 {
		return nil
	}
	for _, p := range problems {
		done(cmd, "problem: %s", p)
	}
	if l.produce != nil && l.produce.Remark != "" {
		done(cmd, "the server said: %s", l.produce.Remark)
	}
	if l.consume != nil && l.consume.Remark != "" {
		done(cmd, "the server said: %s", l.consume.Remark)
	}
	return &reportedError{what: "the load met problems"}
}

// latencyCells are the cells of a latency, in a readable unit.
func latencyCells(l *bench.Latency) []any {
	if l == nil {
		return []any{"-", "-", "-", "-"}
	}
	return []any{micros(l.P50), micros(l.P99), micros(l.P999), micros(l.Max)}
}

var latencyHeader = []any{"P50", "P99", "P99.9", "MAX"}

// micros shows a time given in microseconds.
func micros(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%.2f s", us/1e6)
	case us >= 1e4:
		return fmt.Sprintf("%.1f ms", us/1e3)
	case us >= 1e3:
		return fmt.Sprintf("%.2f ms", us/1e3)
	}
	return fmt.Sprintf("%.0f µs", us)
}
