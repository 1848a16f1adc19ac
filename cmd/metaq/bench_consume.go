package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
	"github.com/metaqio/metaq/internal/bench"
)

func newBenchConsume() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "consume",
		Short: "Pull messages and check them",
		Long: "Pulls all queues of a topic and checks each message: stored CRC, its own checksum, queue, offset and number.\n\n" +
			"It takes no part in the balancing of a group, and commits only if told to. Messages that no load generator made are counted, not checked.",
		Example: "  metaq bench consume --to-end\n  metaq bench consume --from latest --duration 30s --connections 4\n" +
			"  metaq bench consume --to-end --pull 1000 --header binary --output json",
		Args: arguments(cobra.NoArgs),
	}
	server, output, common := addRemoteFlags(cmd), outputFlag(cmd), addBenchFlags(cmd)
	var o bench.ConsumeOptions
	flags := cmd.Flags()
	flags.IntVarP(&o.Connections, "connections", "c", 1, "connections that pull; the queues are dealt out to them")
	flags.IntVar(&o.Batch, "pull", 32, "messages that a pull asks for; RocketMQ gives 32 at most")
	flags.StringVarP(&o.Group, "group", "g", "metaq-bench", "consumer `GROUP`")
	flags.Int64Var(&o.Count, "count", 0, "end after so many messages; 0: by time")
	flags.BoolVar(&o.Commit, "commit", false, "commit what was consumed")
	flags.Uint32Var(&o.Run, "run", 0, "check only messages of that run, whose number `bench produce` tells; 0: all")
	from := flags.String("from", "earliest", "`PLACE` to begin with: earliest, latest, an offset, a date, or how long ago")
	toEnd := flags.Bool("to-end", false, "end when everything is consumed that is there now")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		if o.Encoding, err = common.header(); err != nil {
			return err
		}
		place, err := parsePlace(*from, time.Now())
		if err != nil {
			return err
		}
		o.WarmUp, o.Duration, o.Live = common.warmUp, common.duration, *from == "latest"
		if (*toEnd || o.Count > 0) && !flags.Changed("duration") {
			o.Duration = 0
		}
		if err := o.Check(); err != nil {
			return &usageError{err}
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			r, err := c.Route(ctx, common.topic)
			if err != nil {
				return err
			}
			o.Target = common.target(r, false)
			if o.Starts, err = common.starts(ctx, c, o.Target, place, *toEnd); err != nil {
				return err
			}
			show, clear := showProgress(cmd, "consume")
			o.Progress = show
			result, err := bench.Consume(ctx, o)
			clear()
			if err != nil {
				return err
			}
			return errors.Join(printResult(cmd, *output, result, consumeGrid(result)), loads{consume: result}.verdict(cmd))
		})
	}
	return cmd
}

func consumeGrid(r *bench.ConsumeResult) grid {
	g := grid{Header: append([]any{"RECEIVED", "SECONDS", "MSG/S", "MB/S", "A PULL"}, latencyHeader...)}
	g.add(append([]any{
		thousands(float64(r.Received)), seconds(r.Seconds), thousands(r.Rate), megabytes(r.MB), fmt.Sprintf("%.1f", r.PerPull),
	}, latencyCells(r.Latency)...)...)
	return g
}

func seconds(s float64) string    { return fmt.Sprintf("%.1f", s) }
func megabytes(mb float64) string { return fmt.Sprintf("%.1f", mb) }
