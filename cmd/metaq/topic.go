package main

import "github.com/spf13/cobra"

func newTopic() *cobra.Command {
	cmd := parent(&cobra.Command{
		Use:     "topic",
		GroupID: groupAdmin,
		Short:   "List, show, create, update and delete topics",
		Example: "  metaq topic list\n  metaq topic create orders --queues 16\n  metaq topic stats orders",
	})
	cmd.AddCommand(newTopicList(), newTopicShow(), newTopicCreate(), newTopicUpdate(), newTopicDelete(), newTopicStats())
	return cmd
}
