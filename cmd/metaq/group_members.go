package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newGroupMembers() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "members GROUP",
		Short:   "Show who consumes for a group, and what",
		Example: "  metaq group members billing",
		Args:    arguments(cobra.ExactArgs(1)),
	}
	server, output := addRemoteFlags(cmd), outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			m, err := c.Members(ctx, args[0])
			if err != nil {
				return err
			}
			g := grid{Header: []any{"CLIENT", "ADDRESS", "LANGUAGE", "VERSION", "BROKERS"}}
			for _, member := range m.Members {
				g.add(member.ClientID, member.Addr, member.Language, clientVersion(member.Version), strings.Join(member.Brokers, " "))
			}
			if err := printResult(cmd, *output, m, g); err != nil || *output != formatTable {
				return err
			}
			if len(m.Members) == 0 {
				done(cmd, "nobody is connected")
				return nil
			}
			s := grid{Header: []any{"SUBSCRIPTION", "EXPRESSION", "TYPE"}}
			for _, topic := range m.Subscriptions {
				s.add(topic.Topic, topic.Expression, topic.Type)
			}
			fmt.Fprintln(cmd.OutOrStdout())
			if err := printResult(cmd, *output, nil, s); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "\n%s %s, new groups from %s\n", m.Type, m.Model, m.From)
			return err
		})
	}
	return cmd
}

// clientVersion names a version of the classic protocol: releases from 4.0.0 on are numbered evenly.
func clientVersion(ordinal int32) string {
	const first4, first5, perMinor, perPatch = 213, 413, 20, 2
	major, from := int32(4), ordinal-first4
	if ordinal >= first5 {
		major, from = 5, ordinal-first5
	}
	if from < 0 {
		return fmt.Sprint(ordinal)
	}
	release := from + from%perPatch // a snapshot has the number before its release's
	text := fmt.Sprintf("%d.%d.%d", major, release/perMinor, release%perMinor/perPatch)
	if release != from {
		text += "-SNAPSHOT"
	}
	return text
}
