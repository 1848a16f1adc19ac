package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
	"github.com/metaqio/metaq/internal/bench"
)

// produceFlags are those of a load that sends.
type produceFlags struct {
	o bench.ProduceOptions
}

func addProduceFlags(cmd *cobra.Command, rate float64) *produceFlags {
	f := &produceFlags{}
	flags := cmd.Flags()
	flags.IntVarP(&f.o.Connections, "connections", "c", 1, "connections that send")
	flags.IntVarP(&f.o.InFlight, "in-flight", "i", 0, "requests that a connection has under way; 0: one, or 1024 with --rate")
	flags.IntVarP(&f.o.Batch, "batch", "b", 1, "messages in a request")
	flags.IntVar(&f.o.Size, "size", 100, "bytes of a body")
	flags.Float64VarP(&f.o.Rate, "rate", "r", rate, "messages a second by a fixed schedule, over all connections; 0: as many as the server takes")
	flags.Int64Var(&f.o.Count, "count", 0, "end after so many messages, instead of by time; 0: by time")
	flags.StringVar(&f.o.Group, "producer-group", "metaq-bench", "producer `GROUP`")
	return f
}

// options completes the options but for the target.
func (f *produceFlags) options(cmd *cobra.Command, of *benchFlags) (bench.ProduceOptions, error) {
	o := f.o
	encoding, err := of.header()
	if err != nil {
		return o, err
	}
	o.Encoding, o.WarmUp, o.Duration = encoding, of.warmUp, of.duration
	if o.Count > 0 && !cmd.Flags().Changed("duration") {
		o.Duration = 0
	}
	if err := o.Check(); err != nil {
		return o, &usageError{err}
	}
	return o, nil
}

func newBenchProduce() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "produce",
		Short: "Send as fast as the server takes, or at a rate",
		Long: "Sends messages and measures the time until they are acknowledged.\n\n" +
			"Without --rate, each connection keeps its window of requests full (closed loop). With --rate, each message has a time at which\n" +
			"it is due, and its latency counts from then, so that a server that stalls is charged for all that had to wait. The topic is\n" +
			"made if it does not exist.",
		Example: "  metaq bench produce --connections 64\n  metaq bench produce --connections 4 --in-flight 1024 --header binary\n" +
			"  metaq bench produce --rate 20000 --connections 4 --duration 30s --output json\n" +
			"  metaq bench produce --connections 4 --batch 32 --size 1024",
		Args: arguments(cobra.NoArgs),
	}
	server, output, common := addRemoteFlags(cmd), outputFlag(cmd), addBenchFlags(cmd)
	load := addProduceFlags(cmd, 0)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o, err := load.options(cmd, common)
		if err != nil {
			return err
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			r, err := common.route(ctx, c)
			if err != nil {
				return err
			}
			o.Target = common.target(r, true)
			show, clear := showProgress(cmd, "produce")
			o.Progress = show
			result, err := bench.Produce(ctx, o)
			clear()
			if err != nil {
				return err
			}
			return errors.Join(printResult(cmd, *output, result, produceGrid(result)), loads{produce: result}.verdict(cmd))
		})
	}
	return cmd
}

func produceGrid(r *bench.ProduceResult) grid {
	g := grid{Header: append([]any{"SENT", "SECONDS", "MSG/S", "MB/S"}, latencyHeader...)}
	g.add(append([]any{thousands(float64(r.Acked)), seconds(r.Seconds), thousands(r.Rate), megabytes(r.MB)}, latencyCells(r.Latency)...)...)
	if r.Lateness != nil {
		g.add(append([]any{"", "", "", "late by"}, latencyCells(r.Lateness)...)...)
	}
	return g
}
