package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newGroupProgress() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "progress GROUP",
		Short:   "Show how far a consumer group is, and how far behind, for each queue",
		Example: "  metaq group progress billing\n  metaq group progress billing --output json | jq 'map(.lag) | add'",
		Args:    arguments(cobra.ExactArgs(1)),
	}
	server, output := addRemoteFlags(cmd), outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			progress, err := c.Progress(ctx, args[0])
			if err != nil {
				return err
			}
			if len(progress) == 0 {
				return fmt.Errorf("group %s has consumed nothing yet, or %w", args[0], admin.ErrNotThere)
			}
			g := grid{Header: []any{"TOPIC", "BROKER", "QUEUE", "COMMITTED", "MAX", "LAG", "IN FLIGHT", "LAST CONSUMED"}}
			lag, inFlight := int64(0), int64(0)
			for _, q := range progress {
				g.add(q.Topic, q.Broker, q.ID, q.Committed, q.Max, q.Lag, q.InFlight, moment(q.Last))
				lag += q.Lag
				inFlight += q.InFlight
			}
			g.add("total", "", "", "", "", lag, inFlight, "")
			return printResult(cmd, *output, progress, g)
		})
	}
	return cmd
}
