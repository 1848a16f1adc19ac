package main

import "github.com/spf13/cobra"

func newCluster() *cobra.Command {
	cmd := parent(&cobra.Command{
		Use:     "cluster",
		GroupID: groupAdmin,
		Short:   "Show brokers, and their configuration",
		Example: "  metaq cluster show\n  metaq cluster config --broker broker-a",
	})
	cmd.AddCommand(newClusterShow(), newClusterConfig())
	return cmd
}
