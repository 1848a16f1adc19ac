package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

// getFlags say which messages are wanted.
type getFlags struct {
	topic, tag, key, from string
	queue                 int32
	count                 int
	raw                   bool
}

func newMessageGet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get [ID]",
		Short: "Get messages by id, by key, or by their place",
		Long: "Without an id, gets messages of a topic: the newest ones, or those from a place on.\n" +
			"An id is an offset id, or a unique key, for which --topic is needed. Nothing is committed.",
		Example: "  metaq message get --topic orders\n" +
			"  metaq message get --topic orders --queue 3 --from 1200 --count 5 --output json\n" +
			"  metaq message get 7F00000100002A9F0000000000003F29 --raw > body",
		Args: arguments(cobra.MaximumNArgs(1)),
	}
	server, output := addRemoteFlags(cmd), outputFlag(cmd)
	f := &getFlags{}
	flags := cmd.Flags()
	flags.StringVarP(&f.topic, "topic", "t", "", "`TOPIC`")
	flags.Int32VarP(&f.queue, "queue", "q", -1, "only the queue of that number; -1: all")
	flags.StringVar(&f.from, "from", "", "the first ones from a `PLACE` on: earliest, an offset, a date, or how long ago; otherwise the newest")
	flags.IntVarP(&f.count, "count", "c", 10, "how many")
	flags.StringVar(&f.tag, "tag", "*", "only with a tag; several are joined by ||")
	flags.StringVarP(&f.key, "key", "k", "", "only with that key")
	flags.BoolVar(&f.raw, "raw", false, "print bodies and nothing else")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.topic == "" && len(args) == 0 {
			return usagef("an id or --topic is needed")
		}
		if f.count < 1 || f.count > 100_000 {
			return usagef("--count must be 1 to 100000")
		}
		place, err := parsePlace(cmp.Or(f.from, "latest"), time.Now())
		if err != nil {
			return err
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			if len(args) == 1 {
				m, err := c.ByID(ctx, f.topic, args[0])
				if err != nil {
					return err
				}
				return f.print(cmd, *output, []admin.Message{m}, true)
			}
			found, err := f.find(ctx, c, place)
			if err != nil {
				return err
			}
			return f.print(cmd, *output, found, false)
		})
	}
	return cmd
}

// find finds messages by key or place, the oldest first.
func (f *getFlags) find(ctx context.Context, c *admin.Client, place admin.Place) ([]admin.Message, error) {
	if f.key != "" {
		return c.ByKey(ctx, f.topic, f.key, false, f.count)
	}
	r, err := c.Route(ctx, f.topic)
	if err != nil {
		return nil, err
	}
	queues := r.ReadQueues()
	if f.queue >= 0 {
		queues = onlyQueue(queues, f.queue)
	}
	if len(queues) == 0 {
		return nil, fmt.Errorf("topic %s has no such queue that may be read", f.topic)
	}
	var found []admin.Message
	for _, q := range queues {
		var of []admin.Message
		if f.from == "" {
			of, err = f.newest(ctx, c, q)
		} else {
			of, err = f.after(ctx, c, q, place)
		}
		if err != nil {
			return nil, err
		}
		found = append(found, of...)
	}
	slices.SortStableFunc(found, func(a, b admin.Message) int {
		return cmp.Or(cmp.Compare(a.Stored, b.Stored), cmp.Compare(a.Position, b.Position))
	})
	if len(found) > f.count {
		if f.from == "" {
			return found[len(found)-f.count:], nil
		}
		return found[:f.count], nil
	}
	return found, nil
}

// after gets the first messages of a queue from a place on.
func (f *getFlags) after(ctx context.Context, c *admin.Client, q admin.Queue, place admin.Place) ([]admin.Message, error) {
	offset, err := c.Find(ctx, q, place)
	if err != nil {
		return nil, err
	}
	_, next, err := c.Bounds(ctx, q)
	if err != nil {
		return nil, err
	}
	return f.between(ctx, c, q, offset, next)
}

// newest gets the last messages of a queue, looking back further as long as not enough have the tag.
func (f *getFlags) newest(ctx context.Context, c *admin.Client, q admin.Queue) (found []admin.Message, err error) {
	first, end, err := c.Bounds(ctx, q)
	if err != nil {
		return nil, err
	}
	for step := int64(f.count); end > first && len(found) < f.count; step *= 2 {
		start := max(first, end-step)
		wide := *f
		wide.count = int(end - start)
		of, err := wide.between(ctx, c, q, start, end)
		if err != nil {
			return nil, err
		}
		found = append(of, found...)
		end = start
	}
	return found, nil
}

// between gets up to --count messages with offsets in [offset, end).
func (f *getFlags) between(ctx context.Context, c *admin.Client, q admin.Queue, offset, end int64) (found []admin.Message, err error) {
	for offset < end && len(found) < f.count {
		p, err := c.Pull(ctx, q, offset, min(f.count-len(found), 1024), f.tag, 0)
		if err != nil {
			return nil, err
		}
		for _, m := range p.Messages {
			if m.Offset < end {
				found = append(found, m)
			}
		}
		if p.Next <= offset {
			break
		}
		offset = p.Next
	}
	return found, nil
}

func (f *getFlags) print(cmd *cobra.Command, output format, found []admin.Message, single bool) error {
	switch {
	case f.raw:
		var errs []error
		for _, m := range found {
			_, err := cmd.OutOrStdout().Write(m.Body)
			if errs = append(errs, err); !single {
				_, err = cmd.OutOrStdout().Write([]byte("\n"))
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	case output == formatTable && single:
		return printResult(cmd, output, nil, messageDetails(&found[0]))
	case len(found) == 0 && output == formatTable:
		done(cmd, "no messages")
		return nil
	}
	return printResult(cmd, output, shown(found), messageGrid(found))
}

// messageDetails has a row for everything that is known of a message.
func messageDetails(m *admin.Message) grid {
	g := grid{Header: []any{"FIELD", "VALUE"}}
	g.add("topic", m.Topic)
	g.add("broker", m.Broker)
	g.add("queue", m.Queue.ID)
	g.add("offset", m.Offset)
	g.add("id", m.ID)
	g.add("offset id", m.OffsetID)
	g.add("position", m.Position)
	g.add("born", moment(m.Born)+" at "+m.BornHost)
	g.add("stored", moment(m.Stored)+" at "+m.StoreHost)
	if m.Reconsumed > 0 {
		g.add("retries", m.Reconsumed)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Properties)) {
		g.add("property "+name, m.Properties[name])
	}
	g.add("size", len(m.Body))
	g.add("body", bodyText(m, 2000))
	return g
}
