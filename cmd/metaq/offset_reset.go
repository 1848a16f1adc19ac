package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newOffsetReset() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Set how far a group is in a topic, back or forth",
		Long: "Sets the offsets of a consumer group in a topic to a place: earliest, latest, an offset, a time, or how long ago.\n" +
			"Members that are connected go on from there. --dry-run only shows what would be set.",
		Example: "  metaq offset reset --group billing --topic orders --to earliest --dry-run\n" +
			"  metaq offset reset --group billing --topic orders --to 2026-11-30T12:00 --yes\n" +
			"  metaq offset reset --group billing --topic orders --to 2h --queue 3 --yes",
		Args: arguments(cobra.NoArgs),
	}
	server, output, of, yes := addRemoteFlags(cmd), outputFlag(cmd), addOffsetFlags(cmd), yesFlag(cmd)
	to := cmd.Flags().String("to", "", "`PLACE`: earliest, latest, an offset, a date, or how long ago")
	queue := cmd.Flags().Int32("queue", -1, "only the queue of that number; -1: all")
	broker := cmd.Flags().String("broker", "", "only on the broker of that `NAME`")
	dryRun := cmd.Flags().Bool("dry-run", false, "only show what would be set")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := of.check(); err != nil {
			return err
		}
		if *to == "" {
			return usagef("--to is needed")
		}
		place, err := parsePlace(*to, time.Now())
		if err != nil {
			return err
		}
		what := fmt.Sprintf("set these offsets of group %s in topic %s", of.group, of.topic)
		if err := canConfirm(cmd, *yes || *dryRun, what); err != nil {
			return err
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			plan, err := c.PlanReset(ctx, of.group, of.topic, place)
			if err != nil {
				return err
			}
			plan = slices.DeleteFunc(plan, func(r admin.Reset) bool {
				return *queue >= 0 && r.ID != *queue || *broker != "" && r.Broker != *broker
			})
			if len(plan) == 0 {
				return fmt.Errorf("topic %s has no such queue", of.topic)
			}
			if err := printResult(cmd, *output, plan, resetGrid(plan)); err != nil || *dryRun {
				return err
			}
			if err := confirm(cmd, *yes, what); err != nil {
				return err
			}
			if err := c.ApplyReset(ctx, of.group, plan); err != nil {
				return err
			}
			done(cmd, "%d offsets of group %s set", len(plan), of.group)
			return nil
		})
	}
	return cmd
}

func resetGrid(plan []admin.Reset) grid {
	g := grid{Header: []any{"BROKER", "QUEUE", "FROM", "TO", "CHANGE"}}
	for _, r := range plan {
		change := "-"
		if r.From != admin.NoOffset {
			change = fmt.Sprintf("%+d", r.To-r.From)
		}
		g.add(r.Broker, r.ID, offsetText(r.From), r.To, change)
	}
	return g
}
