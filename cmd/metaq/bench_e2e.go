package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
	"github.com/metaqio/metaq/internal/bench"
)

func newBenchE2E() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "e2e",
		Short: "Send and consume at the same time; measure from when a message is due until it has arrived",
		Long: "Sends by a fixed schedule, consumes at the same time from the ends of the queues, and waits until everything that was\n" +
			"acknowledged has arrived. The latency counts from when a message was due, whatever became of those before it.",
		Example: "  metaq bench e2e --rate 1000 --duration 30s\n  metaq bench e2e --rate 50000 --connections 4 --consumers 4 --output json",
		Args:    arguments(cobra.NoArgs),
	}
	server, output, common := addRemoteFlags(cmd), outputFlag(cmd), addBenchFlags(cmd)
	load := addProduceFlags(cmd, 1000)
	var consume bench.ConsumeOptions
	cmd.Flags().IntVar(&consume.Connections, "consumers", 1, "connections that pull")
	cmd.Flags().IntVar(&consume.Batch, "pull", 32, "messages that a pull asks for")
	cmd.Flags().StringVarP(&consume.Group, "group", "g", "metaq-bench", "consumer `GROUP`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o := bench.E2EOptions{Consume: consume}
		var err error
		if o.Produce, err = load.options(cmd, common); err != nil {
			return err
		}
		o.Consume.Encoding = o.Produce.Encoding
		if err := o.Consume.Check(); err != nil {
			return &usageError{err}
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			if err := common.aim(ctx, c, &o); err != nil {
				return err
			}
			show, clear := showProgress(cmd, "e2e")
			o.Produce.Progress = show
			result, err := bench.E2E(ctx, o)
			clear()
			if err != nil {
				return err
			}
			l := loads{produce: result.Produce, consume: result.Consume, lost: result.Lost}
			return errors.Join(printResult(cmd, *output, result, e2eGrid(result)), l.verdict(cmd))
		})
	}
	return cmd
}

// aim gives both halves of a run their queues.
func (f *benchFlags) aim(ctx context.Context, c *admin.Client, o *bench.E2EOptions) error {
	r, err := f.route(ctx, c)
	if err != nil {
		return err
	}
	o.Produce.Target, o.Consume.Target = f.target(r, true), f.target(r, false)
	o.Consume.Starts, err = f.starts(ctx, c, o.Consume.Target, admin.Latest(), false)
	return err
}

func e2eGrid(r *bench.E2EResult) grid {
	g := grid{Header: append([]any{"WHAT", "MESSAGES", "MSG/S"}, latencyHeader...)}
	row := func(what string, n int64, rate float64, l *bench.Latency) {
		g.add(append([]any{what, thousands(float64(n)), thousands(rate)}, latencyCells(l)...)...)
	}
	row("end to end", r.Consume.Received, r.Consume.Rate, r.Consume.Latency)
	row("acknowledged", r.Produce.Acked, r.Produce.Rate, r.Produce.Latency)
	if r.Produce.Lateness != nil {
		g.add(append([]any{"sent late by", "", ""}, latencyCells(r.Produce.Lateness)...)...)
	}
	return g
}
