package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

// shownBroker is a broker and how it is.
type shownBroker struct {
	admin.Broker
	Runtime map[string]string `json:"runtime,omitempty"` // by RocketMQ's names
	Problem string            `json:"problem,omitempty"` // why there is none
}

func newClusterShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the brokers that a server knows, and what they do",
		Long: "Shows the brokers that a server knows. The exit code is 1 when one of them does not answer.\n" +
			"With --output json all that a broker tells of itself is printed, by RocketMQ's names.",
		Example: "  metaq cluster show\n  metaq cluster show --output json | jq '.[].runtime.commitLogMaxOffset'",
		Args:    arguments(cobra.NoArgs),
	}
	server, output := addRemoteFlags(cmd), outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			brokers, err := c.Brokers(ctx)
			if err != nil {
				return err
			}
			g := grid{Header: []any{"CLUSTER", "BROKER", "ADDRESS", "VERSION", "IN/S", "OUT/S", "IN TODAY", "OUT TODAY"}}
			list := []shownBroker{}
			var failed error
			for _, b := range brokers {
				s := shownBroker{Broker: b}
				if s.Runtime, err = c.Runtime(ctx, b.Addr); err != nil {
					s.Problem = err.Error()
					failed = &reportedError{what: s.Problem}
					done(cmd, "broker %s: %v", b.Name, err)
				}
				list = append(list, s)
				g.add(b.Cluster, b.Name, b.Addr, orDash(s.Runtime["brokerVersionDesc"]), tenSeconds(s.Runtime["putTps"]),
					tenSeconds(s.Runtime["getTransferredTps"]), orDash(s.Runtime["msgPutTotalTodayNow"]), orDash(s.Runtime["msgGetTotalTodayNow"]))
			}
			if err := printResult(cmd, *output, list, g); err != nil {
				return err
			}
			return failed
		})
	}
	return cmd
}

// tenSeconds is the first of the three rates that brokers tell: over 10 seconds, a minute and ten minutes.
func tenSeconds(rates string) string {
	first, _, _ := strings.Cut(rates, " ")
	if whole, fraction, ok := strings.Cut(first, "."); ok && len(fraction) > 1 {
		first = whole + "." + fraction[:1]
	}
	return orDash(first)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
