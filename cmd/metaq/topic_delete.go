package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newTopicDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "delete TOPIC",
		Short:   "Delete a topic with its messages and the offsets of its groups",
		Example: "  metaq topic delete orders --yes",
		Args:    arguments(cobra.ExactArgs(1)),
	}
	server, yes := addRemoteFlags(cmd), yesFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := confirm(cmd, *yes, "delete topic "+args[0]+" and all its messages"); err != nil {
			return err
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			if err := c.DeleteTopic(ctx, args[0]); err != nil {
				return err
			}
			done(cmd, "topic %s deleted", args[0])
			return nil
		})
	}
	return cmd
}
