package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newGroupDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "delete GROUP",
		Short:   "Delete a consumer group",
		Example: "  metaq group delete billing --yes\n  metaq group delete billing --keep-offsets --yes",
		Args:    arguments(cobra.ExactArgs(1)),
	}
	server, yes := addRemoteFlags(cmd), yesFlag(cmd)
	keep := cmd.Flags().Bool("keep-offsets", false, "keep how far it has consumed: a group of that name goes on from there")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := confirm(cmd, *yes, "delete group "+args[0]); err != nil {
			return err
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			if err := c.DeleteGroup(ctx, args[0], !*keep); err != nil {
				return err
			}
			done(cmd, "group %s deleted", args[0])
			return nil
		})
	}
	return cmd
}
