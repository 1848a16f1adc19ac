package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newGroupShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show GROUP",
		Short:   "Show how a consumer group is configured",
		Example: "  metaq group show billing",
		Args:    arguments(cobra.ExactArgs(1)),
	}
	server, output := addRemoteFlags(cmd), outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			g, err := c.Group(ctx, args[0])
			if err != nil {
				return err
			}
			return printResult(cmd, *output, g, groupGrid([]admin.Group{g}))
		})
	}
	return cmd
}
