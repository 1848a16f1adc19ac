package main

import "github.com/spf13/cobra"

func newTxnRollback() *cobra.Command {
	return endTxn("rollback", "Roll an open transaction back: nobody gets its message", "rolled back", false)
}
