package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newTopicShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show TOPIC",
		Short:   "Show where a topic is and how it is configured",
		Example: "  metaq topic show orders",
		Args:    arguments(cobra.ExactArgs(1)),
	}
	server, output := addRemoteFlags(cmd), outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			t, err := c.Topic(ctx, args[0])
			if err != nil {
				return err
			}
			g := grid{Header: []any{"BROKER", "READ", "WRITE", "PERM", "ORDERED", "MULTI TAG", "ATTRIBUTES"}}
			for _, b := range t.Brokers {
				g.add(b.Broker, b.ReadQueues, b.WriteQueues, permText(b.Perm), b.Order, b.MultiTag, attributesText(b.Attributes))
			}
			return printResult(cmd, *output, t, g)
		})
	}
	return cmd
}

func attributesText(attributes map[string]string) string {
	var texts []string
	for _, k := range slices.Sorted(maps.Keys(attributes)) {
		texts = append(texts, k+"="+attributes[k])
	}
	if len(texts) == 0 {
		return "-"
	}
	return strings.Join(texts, " ")
}
