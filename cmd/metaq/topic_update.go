package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newTopicUpdate() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "update TOPIC",
		Short:   "Change the configuration of a topic; what no flag names stays as it is",
		Example: "  metaq topic update orders --queues 32\n  metaq topic update orders --perm r --broker broker-a",
		Args:    arguments(cobra.ExactArgs(1)),
	}
	server, flags := addRemoteFlags(cmd), addTopicFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := flags.apply(&admin.TopicConfig{ReadQueues: 1, WriteQueues: 1}); err != nil {
			return err
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			t, err := c.Topic(ctx, args[0])
			if err != nil {
				return err
			}
			changed := 0
			for _, config := range t.Brokers {
				if flags.broker != "" && flags.broker != config.Broker {
					continue
				}
				if err := flags.apply(&config); err != nil {
					return err
				}
				if err := c.PutTopic(ctx, t.Name, config); err != nil {
					return err
				}
				changed++
			}
			if changed == 0 {
				return fmt.Errorf("topic %s on broker %s %w", t.Name, flags.broker, admin.ErrNotThere)
			}
			done(cmd, "topic %s updated", t.Name)
			return nil
		})
	}
	return cmd
}
