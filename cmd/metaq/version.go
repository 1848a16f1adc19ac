package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/daemon"
)

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		GroupID: groupCheck,
		Short:   "Print the version",
		Example: "  metaq version\n  metaq version --output json",
		Args:    arguments(cobra.NoArgs),
	}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *output == formatTable {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "metaq %s (data format %d, %s, %s/%s)\n",
				version, daemon.FormatVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		}
		return printResult(cmd, *output, map[string]any{
			"version": version, "format": daemon.FormatVersion, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
		}, grid{})
	}
	return cmd
}
