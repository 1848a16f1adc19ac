package main

import "github.com/spf13/cobra"

func newTxnCommit() *cobra.Command {
	return endTxn("commit", "Commit an open transaction: its message is delivered", "committed", true)
}
