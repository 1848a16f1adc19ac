package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newTopicStats() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "stats TOPIC",
		Short:   "Show what the queues of a topic hold",
		Example: "  metaq topic stats orders",
		Args:    arguments(cobra.ExactArgs(1)),
	}
	server, output := addRemoteFlags(cmd), outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			stats, err := c.TopicStats(ctx, args[0])
			if err != nil {
				return err
			}
			g := grid{Header: []any{"BROKER", "QUEUE", "MIN", "MAX", "MESSAGES", "LAST"}}
			total := int64(0)
			for _, q := range stats {
				g.add(q.Broker, q.ID, q.Min, q.Max, q.Max-q.Min, moment(q.Last))
				total += q.Max - q.Min
			}
			g.add("total", "", "", "", total, "")
			return printResult(cmd, *output, stats, g)
		})
	}
	return cmd
}
