package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
	"github.com/metaqio/metaq/internal/bench"
	"github.com/metaqio/metaq/internal/protocol"
)

// suite runs the loads that make one table.
type suite struct {
	cmd      *cobra.Command
	c        *admin.Client
	encoding protocol.Encoding
	duration time.Duration
	warmUp   time.Duration
	prefix   string // of its topics
	pid      int    // of the server, when its processor time can be looked at
}

// suiteRow is what one load came to.
type suiteRow struct {
	Run      string         `json:"run"`
	Messages int64          `json:"messages"`
	Rate     float64        `json:"rate"`
	MB       float64        `json:"mb_per_second"`
	Latency  *bench.Latency `json:"latency,omitempty"`
	CPU      float64        `json:"server_cpu_us_per_message,omitempty"` // processor time of the server
	Problems []string       `json:"problems,omitempty"`
}

// suiteQueues is how many queues a topic of the suite has.
const suiteQueues = 16

// A suiteLoad is one line of the table.
type suiteLoad struct {
	name string
	run  func(s *suite, ctx context.Context, name string) (suiteRow, error)
}

var suiteLoads = []suiteLoad{
	{"sync sends, 64 connections", sends("sync", bench.ProduceOptions{Connections: 64, InFlight: 1, Size: 100})},
	{"pipelined, 4 x 1024", sends("pipelined", bench.ProduceOptions{Connections: 4, InFlight: 1024, Size: 100})},
	{"pipelined, 4 x 1024, 1 KB", sends("pipelined-1k", bench.ProduceOptions{Connections: 4, InFlight: 1024, Size: 1024})},
	{"batches of 32, 4 x 1", sends("batch", bench.ProduceOptions{Connections: 4, InFlight: 1, Batch: 32, Size: 100})},
	{"consume, pulls of 32", drain("pipelined", 32)},
	{"consume, pulls of 1000", drain("pipelined", 1000)},
	{"end to end, 1000/s", (*suite).endToEnd},
}

func newBenchSuite() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "suite",
		Short: "Run a short series of loads and print a table",
		Long: "Starts a server of this program on free loopback ports with its data in a temporary folder, runs a series of loads against it,\n" +
			"and stops and removes it again. With --server, another server is measured; its topics metaq-suite-… are made for it and deleted.\n\n" +
			"Client and server share the machine, so compare tables only with others of the same machine and hour.",
		Example: "  metaq bench suite\n  metaq bench suite --durability async --duration 10s\n  metaq bench suite --server 127.0.0.1:9876 --output json",
		Args:    arguments(cobra.NoArgs),
	}
	output := outputFlag(cmd)
	flags := cmd.Flags()
	address := flags.StringP("server", "s", "", "`ADDRESS` of the name server or broker to be measured, instead of a server of its own")
	encoding := flags.String("header", "json", "encoding of headers: json or binary")
	duration := flags.DurationP("duration", "d", 3*time.Second, "of each load")
	durability := flags.String("durability", "sync", "of the server that is started: sync or async")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s := &suite{cmd: cmd, duration: *duration, warmUp: min(time.Second, *duration/3), prefix: fmt.Sprintf("metaq-suite-%d-", time.Now().Unix())}
		var err error
		if s.encoding, err = (&benchFlags{encoding: *encoding}).header(); err != nil {
			return err
		}
		if *duration <= 0 || *durability != "sync" && *durability != "async" {
			return usagef("--duration must be positive, --durability sync or async")
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		if *address != "" {
			return s.measure(ctx, *address, *output)
		}
		own, err := startOwnServer(ctx, *durability)
		if err != nil {
			return err
		}
		s.pid = own.pid()
		return errors.Join(s.measure(ctx, own.address, *output), own.stop())
	}
	return cmd
}

// measure runs all loads and prints the table.
func (s *suite) measure(ctx context.Context, address string, output format) (err error) {
	if s.c, err = admin.Connect(ctx, address, admin.Options{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.c.Close()) }()
	rows := []suiteRow{}
	for _, l := range suiteLoads {
		row, err := l.run(s, ctx, l.name)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, errors.Join(err, s.cleanUp()))
		}
		rows = append(rows, row)
		if ctx.Err() != nil {
			break
		}
	}
	if err := s.cleanUp(); err != nil {
		return err
	}
	g := grid{Header: append([]any{"LOAD", "MSG/S", "MB/S"}, append(latencyHeader, "SERVER CPU A MSG")...)}
	failed := false
	for _, r := range rows {
		cpu := "-"
		if r.CPU > 0 {
			cpu = fmt.Sprintf("%.2f µs", r.CPU)
		}
		g.add(append([]any{r.Run, thousands(r.Rate), megabytes(r.MB)}, append(latencyCells(r.Latency), cpu)...)...)
	}
	err = printResult(s.cmd, output, rows, g)
	for _, r := range rows {
		for _, p := range r.Problems {
			done(s.cmd, "problem: %s: %s", r.Run, p)
			failed = true
		}
	}
	if failed {
		return errors.Join(err, &reportedError{what: "a load met problems"})
	}
	return err
}

// suiteTopics are the names of the topics behind the prefix.
var suiteTopics = []string{"sync", "pipelined", "pipelined-1k", "batch", "e2e"}

// cleanUp deletes the suite's topics.
func (s *suite) cleanUp() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.cmd.Context()), 30*time.Second)
	defer cancel()
	var errs []error
	for _, name := range suiteTopics {
		if err := s.c.DeleteTopic(ctx, s.prefix+name); err != nil && !errors.Is(err, admin.ErrNotThere) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// row runs a load and fills in what all have.
func (s *suite) row(name string, run func(show func(bench.Progress)) (suiteRow, loads, error)) (suiteRow, error) {
	show, clear := showProgress(s.cmd, name)
	before := cpuTime(s.pid)
	r, l, err := run(show)
	used := cpuTime(s.pid) - before
	clear()
	if err != nil {
		return r, err
	}
	r.Run, r.Problems = name, l.problems()
	if r.Messages > 0 {
		r.CPU = float64(used) / float64(time.Microsecond) / float64(r.Messages)
	}
	return r, nil
}

// sends gives a load that sends to a topic.
func sends(topic string, o bench.ProduceOptions) func(*suite, context.Context, string) (suiteRow, error) {
	return func(s *suite, ctx context.Context, name string) (suiteRow, error) {
		f := &benchFlags{topic: s.prefix + topic, queues: suiteQueues}
		r, err := f.route(ctx, s.c)
		if err != nil {
			return suiteRow{}, err
		}
		o.Target, o.Encoding, o.WarmUp, o.Duration = f.target(r, true), s.encoding, s.warmUp, s.duration
		return s.row(name, func(show func(bench.Progress)) (suiteRow, loads, error) {
			o.Progress = show
			r, err := bench.Produce(ctx, o)
			if err != nil {
				return suiteRow{}, loads{}, err
			}
			return suiteRow{Messages: r.Total, Rate: r.Rate, MB: r.MB, Latency: r.Latency}, loads{produce: r}, nil
		})
	}
}

// drain gives a load that consumes what an earlier one has sent to a topic.
func drain(topic string, pull int) func(*suite, context.Context, string) (suiteRow, error) {
	return func(s *suite, ctx context.Context, name string) (suiteRow, error) {
		f := &benchFlags{topic: s.prefix + topic}
		r, err := f.route(ctx, s.c)
		if err != nil {
			return suiteRow{}, err
		}
		o := bench.ConsumeOptions{Target: f.target(r, false), Connections: 1, Batch: pull, Encoding: s.encoding, Duration: 4 * s.duration}
		if o.Starts, err = f.starts(ctx, s.c, o.Target, admin.Earliest(), true); err != nil {
			return suiteRow{}, err
		}
		return s.row(name, func(show func(bench.Progress)) (suiteRow, loads, error) {
			o.Progress = show
			r, err := bench.Consume(ctx, o)
			if err != nil {
				return suiteRow{}, loads{}, err
			}
			return suiteRow{Messages: r.Total, Rate: r.Rate, MB: r.MB}, loads{consume: r}, nil
		})
	}
}

// endToEnd sends a thousand messages a second and consumes them.
func (s *suite) endToEnd(ctx context.Context, name string) (suiteRow, error) {
	f := &benchFlags{topic: s.prefix + "e2e", queues: suiteQueues}
	var o bench.E2EOptions
	if err := f.aim(ctx, s.c, &o); err != nil {
		return suiteRow{}, err
	}
	o.Produce.Rate, o.Produce.Encoding, o.Produce.WarmUp, o.Produce.Duration = 1000, s.encoding, s.warmUp, s.duration
	o.Consume.Encoding = s.encoding
	return s.row(name, func(show func(bench.Progress)) (suiteRow, loads, error) {
		o.Produce.Progress = show
		r, err := bench.E2E(ctx, o)
		if err != nil {
			return suiteRow{}, loads{}, err
		}
		return suiteRow{Messages: r.Produce.Total, Rate: r.Consume.Rate, MB: r.Consume.MB, Latency: r.Consume.Latency},
			loads{produce: r.Produce, consume: r.Consume, lost: r.Lost}, nil
	})
}
