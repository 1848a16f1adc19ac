package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
	"github.com/metaqio/metaq/message"
)

// groupFlags are the flags by which a group is configured.
type groupFlags struct {
	cmd    *cobra.Command
	broker string
	config admin.GroupConfig
}

func addGroupFlags(cmd *cobra.Command) *groupFlags {
	d := admin.DefaultGroup()
	f := &groupFlags{cmd: cmd}
	flags := cmd.Flags()
	flags.StringVar(&f.broker, "broker", "", "only on the broker of that `NAME`, instead of on all")
	flags.BoolVar(&f.config.ConsumeEnable, "consume", d.ConsumeEnable, "members may consume")
	flags.BoolVar(&f.config.BroadcastEnable, "broadcast", d.BroadcastEnable, "members may consume in broadcast mode")
	flags.BoolVar(&f.config.FromMinEnable, "from-min", d.FromMinEnable, "a new group may begin with the oldest messages")
	flags.BoolVar(&f.config.Orderly, "orderly", d.Orderly, "members consume each queue in order")
	flags.BoolVar(&f.config.NotifyChanges, "notify", d.NotifyChanges, "members are told when others come and go")
	flags.Int32Var(&f.config.RetryMaxTimes, "retry-max", d.RetryMaxTimes, "how often a message is retried before it goes to the dead letters")
	flags.Int32Var(&f.config.RetryQueues, "retry-queues", d.RetryQueues, "queues of the retry topic")
	flags.Int32Var(&f.config.TimeoutMinutes, "consume-timeout", d.TimeoutMinutes, "minutes after which a message counts as not consumed")
	return f
}

// apply changes what was given.
func (f *groupFlags) apply(c *admin.GroupConfig) error {
	if f.config.RetryQueues < 0 || f.config.RetryMaxTimes < -1 || f.config.TimeoutMinutes < 1 {
		return usagef("--retry-queues must not be negative, --retry-max not below -1 and --consume-timeout at least 1")
	}
	for name, set := range map[string]func(){
		"consume":         func() { c.ConsumeEnable = f.config.ConsumeEnable },
		"broadcast":       func() { c.BroadcastEnable = f.config.BroadcastEnable },
		"from-min":        func() { c.FromMinEnable = f.config.FromMinEnable },
		"orderly":         func() { c.Orderly = f.config.Orderly },
		"notify":          func() { c.NotifyChanges = f.config.NotifyChanges },
		"retry-max":       func() { c.RetryMaxTimes = f.config.RetryMaxTimes },
		"retry-queues":    func() { c.RetryQueues = f.config.RetryQueues },
		"consume-timeout": func() { c.TimeoutMinutes = f.config.TimeoutMinutes },
	} {
		if f.cmd.Flags().Changed(name) {
			set()
		}
	}
	return nil
}

func newGroupCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create GROUP",
		Short:   "Create a consumer group",
		Example: "  metaq group create billing --retry-max 5\n  metaq group create audit --orderly",
		Args:    arguments(cobra.ExactArgs(1)),
	}
	server, flags := addRemoteFlags(cmd), addGroupFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := args[0]
		if err := message.ValidGroup(name); err != nil {
			return &usageError{err}
		}
		config := admin.DefaultGroup()
		config.Broker = flags.broker
		if err := flags.apply(&config); err != nil {
			return err
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			switch g, err := c.Group(ctx, name); {
			case err == nil && (flags.broker == "" || len(onBroker(g, flags.broker)) > 0):
				return fmt.Errorf("group %s exists already; `metaq group update` changes it", name)
			case err != nil && !errors.Is(err, admin.ErrNotThere):
				return err
			}
			if err := c.PutGroup(ctx, name, config); err != nil {
				return err
			}
			done(cmd, "group %s created", name)
			return nil
		})
	}
	return cmd
}

// onBroker gives the group's configurations on the broker of a name, or all if the name is empty.
func onBroker(g admin.Group, broker string) (configs []admin.GroupConfig) {
	for _, b := range g.Brokers {
		if broker == "" || b.Broker == broker {
			configs = append(configs, b)
		}
	}
	return configs
}
