package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newTxn() *cobra.Command {
	cmd := parent(&cobra.Command{
		Use:     "txn",
		GroupID: groupAdmin,
		Short:   "List, show, commit and roll back open transactions",
		Example: "  metaq txn list\n  metaq txn show 1048576\n  metaq txn commit 1048576 --yes",
	})
	cmd.AddCommand(newTxnList(), newTxnShow(), newTxnCommit(), newTxnRollback(), newTxnResume())
	return cmd
}

// brokerFlag names the broker that has a transaction.
func brokerFlag(cmd *cobra.Command) *string {
	return cmd.Flags().StringP("broker", "b", "", "`NAME` of the broker that has it, where there are several")
}

// parsePosition reads the position by which a transaction is named.
func parsePosition(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, usagef("position %q: it is a number that `metaq txn list` shows", text)
	}
	return n, nil
}

// endTxn makes a command that decides a transaction.
func endTxn(use, short, outcome string, commit bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use + " POSITION",
		Short: short,
		Long: short + ", in place of its producer.\n" +
			"The first decision counts: what the producer says later is refused.",
		Example: "  metaq txn " + use + " 1048576 --yes",
		Args:    arguments(cobra.ExactArgs(1)),
	}
	server, broker, yes := addRemoteFlags(cmd), brokerFlag(cmd), yesFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		position, err := parsePosition(args[0])
		if err != nil {
			return err
		}
		if err := confirm(cmd, *yes, use+" the transaction at "+args[0]); err != nil {
			return err
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			t, err := c.Transaction(ctx, *broker, position)
			if err != nil {
				return err
			}
			if err := c.EndTransaction(ctx, t, commit); err != nil {
				return err
			}
			done(cmd, "transaction at %d of %s %s", position, t.Broker, outcome)
			return nil
		})
	}
	return cmd
}
