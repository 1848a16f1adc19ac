package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newClusterConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config [NAME=VALUE…]",
		Short: "Show the settings of brokers, or change some while they run",
		Long: "Shows the settings of brokers by RocketMQ's names, or changes those that are given. What cannot be changed while a broker\n" +
			"runs is refused.",
		Example: "  metaq cluster config --broker broker-a\n  metaq cluster config fileReservedTime=48",
	}
	server, output := addRemoteFlags(cmd), outputFlag(cmd)
	name := cmd.Flags().String("broker", "", "only the broker of that `NAME`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		changes := map[string]string{}
		for _, a := range args {
			k, v, ok := strings.Cut(a, "=")
			if !ok || k == "" {
				return usagef("setting %q: it is NAME=VALUE", a)
			}
			changes[k] = v
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			brokers, err := c.Brokers(ctx)
			if err != nil {
				return err
			}
			if *name != "" {
				brokers = slices.DeleteFunc(slices.Clone(brokers), func(b admin.Broker) bool { return b.Name != *name })
			}
			if len(brokers) == 0 {
				return fmt.Errorf("broker %s %w", *name, admin.ErrNotThere)
			}
			if len(changes) == 0 {
				return showConfig(ctx, cmd, c, brokers, *output)
			}
			for _, b := range brokers {
				if err := c.SetConfig(ctx, b.Addr, changes); err != nil {
					return fmt.Errorf("broker %s: %w", b.Name, err)
				}
				done(cmd, "settings of %s changed", b.Name)
			}
			return nil
		})
	}
	return cmd
}

func showConfig(ctx context.Context, cmd *cobra.Command, c *admin.Client, brokers []admin.Broker, output format) error {
	g := grid{Header: []any{"BROKER", "SETTING", "VALUE"}}
	all := map[string]map[string]string{}
	for _, b := range brokers {
		config, err := c.Config(ctx, b.Addr)
		if err != nil {
			return err
		}
		all[b.Name] = config
		for _, k := range slices.Sorted(maps.Keys(config)) {
			g.add(b.Name, k, config[k])
		}
	}
	return printResult(cmd, output, all, g)
}
