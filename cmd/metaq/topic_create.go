package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
	"github.com/metaqio/metaq/message"
)

// topicFlags are the flags by which a topic is configured.
type topicFlags struct {
	cmd                 *cobra.Command
	broker              string
	queues, read, write int32
	perm                string
	order, multiTag     bool
	attributes          []string
}

func addTopicFlags(cmd *cobra.Command) *topicFlags {
	f := &topicFlags{cmd: cmd}
	flags := cmd.Flags()
	flags.StringVar(&f.broker, "broker", "", "only on the broker of that `NAME`, instead of on all")
	flags.Int32VarP(&f.queues, "queues", "n", 8, "queues that are read and written on each broker")
	flags.Int32Var(&f.read, "read-queues", 0, "queues that are read, when they are not --queues")
	flags.Int32Var(&f.write, "write-queues", 0, "queues that are written, when they are not --queues")
	flags.StringVar(&f.perm, "perm", "rw", "what clients may do: rw, r, w or -")
	flags.BoolVar(&f.order, "order", false, "for ordered messages: a broker that goes away does not move them to other queues")
	flags.BoolVar(&f.multiTag, "multi-tag", false, "messages have several tags")
	flags.StringArrayVar(&f.attributes, "attribute", nil, "`NAME=VALUE`, for example message.type=FIFO; an empty value removes it; may be given more than once")
	return f
}

// apply changes what was given.
func (f *topicFlags) apply(c *admin.TopicConfig) error {
	flags := f.cmd.Flags()
	if flags.Changed("queues") {
		c.ReadQueues, c.WriteQueues = f.queues, f.queues
	}
	if flags.Changed("read-queues") {
		c.ReadQueues = f.read
	}
	if flags.Changed("write-queues") {
		c.WriteQueues = f.write
	}
	if c.ReadQueues < 1 || c.WriteQueues < 1 {
		return usagef("a topic has at least one queue to read and one to write")
	}
	if flags.Changed("perm") {
		perm, err := parsePerm(f.perm)
		if err != nil {
			return err
		}
		c.Perm = perm
	}
	if flags.Changed("order") {
		c.Order = f.order
	}
	if flags.Changed("multi-tag") {
		c.MultiTag = f.multiTag
	}
	c.Attributes = map[string]string{}
	for _, a := range f.attributes {
		name, value, ok := strings.Cut(a, "=")
		if !ok || name == "" {
			return usagef("attribute %q: it is NAME=VALUE", a)
		}
		c.Attributes[name] = value
	}
	return nil
}

func newTopicCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create TOPIC",
		Short:   "Create a topic",
		Example: "  metaq topic create orders --queues 16\n  metaq topic create payments --queues 4 --attribute message.type=FIFO",
		Args:    arguments(cobra.ExactArgs(1)),
	}
	server, flags := addRemoteFlags(cmd), addTopicFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := args[0]
		if err := message.ValidTopic(name); err != nil {
			return &usageError{err}
		}
		config := admin.TopicConfig{Broker: flags.broker, ReadQueues: flags.queues, WriteQueues: flags.queues, Perm: admin.PermRead | admin.PermWrite}
		if err := flags.apply(&config); err != nil {
			return err
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			switch t, err := c.Topic(ctx, name); {
			case err == nil && (flags.broker == "" || hasBroker(t, flags.broker)):
				return fmt.Errorf("topic %s exists already; `metaq topic update` changes it", name)
			case err != nil && !errors.Is(err, admin.ErrNotThere):
				return err
			}
			if err := c.PutTopic(ctx, name, config); err != nil {
				return err
			}
			done(cmd, "topic %s created", name)
			return nil
		})
	}
	return cmd
}

func hasBroker(t admin.Topic, broker string) bool {
	for _, b := range t.Brokers {
		if b.Broker == broker {
			return true
		}
	}
	return false
}
