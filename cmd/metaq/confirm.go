package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/daemon"
)

// yesFlag gives a command that destroys something --yes.
func yesFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().BoolP("yes", "y", false, "do it without asking")
}

// confirm asks on a terminal whether to go on. Elsewhere --yes is needed: scripts say what they mean.
func confirm(cmd *cobra.Command, yes bool, what string) error {
	if err := canConfirm(cmd, yes, what); err != nil || yes {
		return err
	}
	in := cmd.InOrStdin()
	fmt.Fprintf(cmd.ErrOrStderr(), "%s? [y/N] ", what)
	answer, _ := bufio.NewReader(in).ReadString('\n') // an end without an answer is a no
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &reportedError{what: "not confirmed"}
}

// canConfirm tells early that confirm could not ask.
func canConfirm(cmd *cobra.Command, yes bool, what string) error {
	in, ok := cmd.InOrStdin().(*os.File)
	if !yes && (!ok || !daemon.IsTerminal(in)) {
		return usagef("%s: add --yes", what)
	}
	return nil
}
