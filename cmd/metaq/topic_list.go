package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newTopicList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List topics",
		Example: "  metaq topic list\n  metaq topic list --all --output json",
		Args:    arguments(cobra.NoArgs),
	}
	server, output := addRemoteFlags(cmd), outputFlag(cmd)
	all := cmd.Flags().Bool("all", false, "also topics of the servers, retry topics and dead letters")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			topics, err := c.Topics(ctx)
			if err != nil {
				return err
			}
			shown := []admin.Topic{}
			for _, t := range topics {
				if *all || !t.System && t.Name[0] != '%' {
					shown = append(shown, t)
				}
			}
			return printResult(cmd, *output, shown, topicGrid(shown))
		})
	}
	return cmd
}

// topicGrid has a row for each topic on each broker.
func topicGrid(topics []admin.Topic) grid {
	g := grid{Header: []any{"TOPIC", "BROKER", "READ", "WRITE", "PERM", "KIND"}}
	for _, t := range topics {
		for _, b := range t.Brokers {
			g.add(t.Name, b.Broker, b.ReadQueues, b.WriteQueues, permText(b.Perm), topicKind(t, b))
		}
		if len(t.Brokers) == 0 {
			g.add(t.Name, "-", "-", "-", "-", topicKind(t, admin.TopicConfig{}))
		}
	}
	return g
}

func topicKind(t admin.Topic, b admin.TopicConfig) string {
	switch {
	case t.System:
		return "system"
	case b.Order:
		return "ordered"
	case b.Attributes["message.type"] != "":
		return b.Attributes["message.type"]
	}
	return "normal"
}
