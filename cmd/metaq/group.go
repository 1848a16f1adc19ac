package main

import "github.com/spf13/cobra"

func newGroup() *cobra.Command {
	cmd := parent(&cobra.Command{
		Use:     "group",
		GroupID: groupAdmin,
		Short:   "List, show, create, update and delete consumer groups; see members and lag",
		Example: "  metaq group list\n  metaq group progress billing\n  metaq group members billing",
	})
	cmd.AddCommand(newGroupList(), newGroupShow(), newGroupCreate(), newGroupUpdate(), newGroupDelete(), newGroupMembers(), newGroupProgress())
	return cmd
}
