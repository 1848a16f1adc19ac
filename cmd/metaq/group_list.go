package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newGroupList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List consumer groups",
		Example: "  metaq group list\n  metaq group list --all --output json",
		Args:    arguments(cobra.NoArgs),
	}
	server, output := addRemoteFlags(cmd), outputFlag(cmd)
	all := cmd.Flags().Bool("all", false, "also groups of servers and tools")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			groups, err := c.Groups(ctx)
			if err != nil {
				return err
			}
			shown := []admin.Group{}
			for _, g := range groups {
				if *all || !g.System {
					shown = append(shown, g)
				}
			}
			return printResult(cmd, *output, shown, groupGrid(shown))
		})
	}
	return cmd
}

// groupGrid has a row for each group on each broker.
func groupGrid(groups []admin.Group) grid {
	g := grid{Header: []any{"GROUP", "BROKER", "CONSUME", "BROADCAST", "ORDERLY", "RETRY QUEUES", "RETRY MAX", "TIMEOUT MIN"}}
	for _, of := range groups {
		for _, b := range of.Brokers {
			g.add(of.Name, b.Broker, b.ConsumeEnable, b.BroadcastEnable, b.Orderly, b.RetryQueues, b.RetryMaxTimes, b.TimeoutMinutes)
		}
	}
	return g
}
