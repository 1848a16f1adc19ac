package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newGroupUpdate() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "update GROUP",
		Short:   "Change the configuration of a consumer group; what no flag names stays as it is",
		Example: "  metaq group update billing --retry-max 3\n  metaq group update billing --consume=false",
		Args:    arguments(cobra.ExactArgs(1)),
	}
	server, flags := addRemoteFlags(cmd), addGroupFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := flags.apply(&admin.GroupConfig{}); err != nil {
			return err
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			g, err := c.Group(ctx, args[0])
			if err != nil {
				return err
			}
			configs := onBroker(g, flags.broker)
			if len(configs) == 0 {
				return fmt.Errorf("group %s on broker %s %w", g.Name, flags.broker, admin.ErrNotThere)
			}
			for _, config := range configs {
				if err := flags.apply(&config); err != nil {
					return err
				}
				if err := c.PutGroup(ctx, g.Name, config); err != nil {
					return err
				}
			}
			done(cmd, "group %s updated", g.Name)
			return nil
		})
	}
	return cmd
}
