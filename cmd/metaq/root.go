package main

import (
	"cmp"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metaqio/metaq/internal/daemon"
)

// Headings of `metaq help`.
const (
	groupServe = "serve"
	groupAdmin = "admin"
	groupCheck = "check"
)

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := parent(&cobra.Command{
		Use:   "metaq",
		Short: "A message broker that speaks Apache RocketMQ's protocol",
		Long: "metaq is a message broker for existing RocketMQ clients: name server and broker in one program, on one replicated log.\n\n" +
			"Start one with `metaq server`, and point a client at 127.0.0.1:9876.",
		Example:       "  metaq server --data ./data\n  metaq doctor ./data",
		SilenceErrors: true, // main prints them
		SilenceUsage:  true,
	})
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w%s; see %s --help", err, flagHint(cmd, err), cmd.CommandPath())
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddGroup(
		&cobra.Group{ID: groupServe, Title: "Serve:"}, &cobra.Group{ID: groupAdmin, Title: "Administrate a server:"},
		&cobra.Group{ID: groupCheck, Title: "Look and check:"},
	)
	root.AddCommand(newServer(), newTopic(), newGroup(), newMessage(), newOffset(), newTxn(), newCluster(), newLog(), newBench(), newDoctor(), newVersion())
	root.SetHelpCommandGroupID(groupCheck)
	return root
}

// parent makes a command that has only sub-commands: alone it prints its help, with an unknown word it is a wrong usage.
func parent(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		hint := ""
		cmd.SuggestionsMinimumDistance = 2
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "; did you mean " + strings.Join(near, " or ") + "?"
		}
		return usagef("there is no command %q%s See %s --help", args[0], cmp.Or(hint, "."), cmd.CommandPath())
	}
	return cmd
}

// arguments makes a wrong number of arguments a wrong usage.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usagef("%w; see %s --help", err, cmd.CommandPath())
		}
		return nil
	}
}

// flagHint names what an unknown flag may have been meant to be.
func flagHint(cmd *cobra.Command, err error) string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || cmd.Flags().Lookup("set") == nil {
		return ""
	}
	switch near := daemon.Nearest(unknown.GetSpecifiedName()); {
	case near == "":
		return ""
	case cmd.Flags().Lookup(near) != nil:
		return ", did you mean --" + near + "?"
	default:
		return ", did you mean --set " + near + "=…?"
	}
}
