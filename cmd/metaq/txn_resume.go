package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newTxnResume() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Have the producer asked again about a message that was given up",
		Long: "Makes an open transaction again of a message in the topic TRANS_CHECK_MAX_TIME_TOPIC, where those go that nobody decided.\n" +
			"ID is its offset id, as `metaq message get --topic TRANS_CHECK_MAX_TIME_TOPIC` shows it.",
		Example: "  metaq txn resume 7F00000100002A9F0000000000003F29",
		Args:    arguments(cobra.ExactArgs(1)),
	}
	server := addRemoteFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			if err := c.ResumeTransaction(ctx, args[0]); err != nil {
				return err
			}
			done(cmd, "%s is an open transaction again", args[0])
			return nil
		})
	}
	return cmd
}
