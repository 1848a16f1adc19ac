package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newOffsetShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "Show where a group stands in the queues of a topic",
		Example: "  metaq offset show --group billing --topic orders",
		Args:    arguments(cobra.NoArgs),
	}
	server, output, of := addRemoteFlags(cmd), outputFlag(cmd), addOffsetFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := of.check(); err != nil {
			return err
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			offsets, err := c.Offsets(ctx, of.group, of.topic)
			if err != nil {
				return err
			}
			g := grid{Header: []any{"BROKER", "QUEUE", "MIN", "COMMITTED", "MAX", "LAG"}}
			for _, o := range offsets {
				lag := any("-")
				if o.Committed != admin.NoOffset {
					lag = o.Max - o.Committed
				}
				g.add(o.Broker, o.ID, o.Min, offsetText(o.Committed), o.Max, lag)
			}
			return printResult(cmd, *output, offsets, g)
		})
	}
	return cmd
}

func offsetText(offset int64) any {
	if offset == admin.NoOffset {
		return "none"
	}
	return offset
}
