package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newTxnShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show POSITION",
		Short:   "Show an open transaction and its message",
		Example: "  metaq txn show 1048576",
		Args:    arguments(cobra.ExactArgs(1)),
	}
	server, output, broker := addRemoteFlags(cmd), outputFlag(cmd), brokerFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		position, err := parsePosition(args[0])
		if err != nil {
			return err
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			t, err := c.Transaction(ctx, *broker, position)
			if err != nil {
				return err
			}
			m, err := c.HalfMessage(ctx, t)
			if err != nil {
				return err
			}
			shown := struct {
				admin.Transaction
				Message shownMessage `json:"message"`
			}{t, shownMessage{m}}
			return printResult(cmd, *output, shown, txnDetails(&t, &m, time.Now()))
		})
	}
	return cmd
}

// txnDetails has a row for everything that is known of a transaction.
func txnDetails(t *admin.Transaction, m *admin.Message, now time.Time) grid {
	g := grid{Header: []any{"FIELD", "VALUE"}}
	g.add("broker", t.Broker)
	g.add("position", t.Position)
	g.add("group", t.Group)
	g.add("producers online", t.Online)
	g.add("age", age(t.Stored, now))
	g.add("checks", t.Checks)
	g.add("next check", moment(t.NextCheck))
	if t.Immunity != nil {
		g.add("immunity", time.Duration(*t.Immunity)*time.Millisecond)
	}
	g.add("for topic", t.Topic)
	g.add("for queue", t.Queue)
	rest := messageDetails(m)
	g.Rows = append(g.Rows, rest.Rows[4:]...) // without where the half message lies
	return g
}
