package main

import "github.com/spf13/cobra"

func newOffset() *cobra.Command {
	cmd := parent(&cobra.Command{
		Use:     "offset",
		GroupID: groupAdmin,
		Short:   "Show and reset how far a consumer group is in a topic",
		Example: "  metaq offset show --group billing --topic orders\n  metaq offset reset --group billing --topic orders --to earliest --dry-run",
	})
	cmd.AddCommand(newOffsetShow(), newOffsetReset())
	return cmd
}

// offsetFlags say whose offsets are meant.
type offsetFlags struct{ group, topic string }

func addOffsetFlags(cmd *cobra.Command) *offsetFlags {
	f := &offsetFlags{}
	cmd.Flags().StringVarP(&f.group, "group", "g", "", "consumer `GROUP`")
	cmd.Flags().StringVarP(&f.topic, "topic", "t", "", "`TOPIC`")
	return f
}

func (f *offsetFlags) check() error {
	if f.group == "" || f.topic == "" {
		return usagef("--group and --topic are needed")
	}
	return nil
}
