package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newTxnList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List transactions that nobody has decided yet, the oldest first",
		Example: "  metaq txn list\n  metaq txn list --group payments --output json",
		Args:    arguments(cobra.NoArgs),
	}
	server, output := addRemoteFlags(cmd), outputFlag(cmd)
	group := cmd.Flags().StringP("group", "g", "", "only those of that `GROUP` of producers")
	limit := cmd.Flags().IntP("limit", "l", 100, "so many of each broker")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *limit < 1 {
			return usagef("--limit must be 1 or more")
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			list, open, err := c.Transactions(ctx, *group, *limit)
			if err != nil {
				return err
			}
			if len(list) == 0 && *output == formatTable {
				done(cmd, "no open transactions")
				return nil
			}
			if len(list) < open && *group == "" {
				done(cmd, "%d of %d open transactions", len(list), open)
			}
			if list == nil {
				list = []admin.Transaction{}
			}
			return printResult(cmd, *output, list, txnGrid(list, time.Now()))
		})
	}
	return cmd
}

// txnGrid has a row for each transaction.
func txnGrid(list []admin.Transaction, now time.Time) grid {
	g := grid{Header: []any{"BROKER", "POSITION", "GROUP", "ONLINE", "TOPIC", "AGE", "CHECKS", "NEXT CHECK", "ID", "KEYS"}}
	for _, t := range list {
		g.add(t.Broker, t.Position, t.Group, t.Online, cmp.Or(t.Topic, "unreadable"), age(t.Stored, now), t.Checks, moment(t.NextCheck),
			cmp.Or(t.ID, "-"), cmp.Or(t.Keys, "-"))
	}
	return g
}

// age is how long ago a time is, to the second.
func age(ms int64, now time.Time) time.Duration {
	return max(now.Sub(time.UnixMilli(ms)), 0).Truncate(time.Second)
}
