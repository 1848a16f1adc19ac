package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
	"github.com/metaqio/metaq/internal/protocol"
)

// How long a pull waits for a message, and how long we wait after a failure.
const (
	tailHold  = 15 * time.Second
	tailPause = time.Second
)

func newMessageTail() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Follow a topic: print messages as they arrive",
		Long: "Prints the messages of a topic as they arrive, from the end of its queues or from a place on, until it is interrupted.\n" +
			"It belongs to no consumer group: nothing is committed, and nobody's share of messages changes.",
		Example: "  metaq message tail --topic orders\n  metaq message tail --topic orders --tag 'new || paid' --from 10m --output json | jq .body",
		Args:    arguments(cobra.NoArgs),
	}
	server, output := addRemoteFlags(cmd), outputFlag(cmd)
	flags := cmd.Flags()
	topic := flags.StringP("topic", "t", "", "`TOPIC`")
	queue := flags.Int32P("queue", "q", -1, "only the queue of that number; -1: all")
	from := flags.String("from", "latest", "`PLACE` to begin with: earliest, latest, an offset, a date, or how long ago")
	tag := flags.String("tag", "*", "only with a tag; several are joined by ||")
	count := flags.IntP("count", "c", 0, "end after so many messages; 0: never")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *topic == "" {
			return usagef("--topic is needed")
		}
		place, err := parsePlace(*from, time.Now())
		if err != nil {
			return err
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			r, err := c.Route(ctx, *topic)
			if err != nil {
				return err
			}
			queues := r.ReadQueues()
			if *queue >= 0 {
				queues = onlyQueue(queues, *queue)
			}
			if len(queues) == 0 {
				return fmt.Errorf("topic %s has no such queue that may be read", *topic)
			}
			t := &tail{cmd: cmd, c: c, tag: *tag, output: *output, left: *count, endless: *count == 0}
			return t.follow(ctx, queues, place)
		})
	}
	return cmd
}

// tail prints what arrives in some queues.
type tail struct {
	cmd    *cobra.Command
	c      *admin.Client
	tag    string
	output format

	mu      sync.Mutex
	left    int // messages still to be printed
	endless bool
	stop    context.CancelFunc
	err     error // the first one that ended a queue
}

// follow pulls all queues at the same time.
func (t *tail) follow(ctx context.Context, queues []admin.Queue, place admin.Place) error {
	ctx, t.stop = context.WithCancel(ctx)
	defer t.stop()
	offsets := make([]int64, len(queues))
	for i, q := range queues {
		var err error
		if offsets[i], err = t.c.Find(ctx, q, place); err != nil {
			return err
		}
	}
	var pulls sync.WaitGroup
	for i, q := range queues {
		pulls.Go(func() { t.queue(ctx, q, offsets[i]) })
	}
	pulls.Wait()
	return t.err
}

// queue pulls one queue until ctx ends.
func (t *tail) queue(ctx context.Context, q admin.Queue, offset int64) {
	for ctx.Err() == nil {
		p, err := t.c.Pull(ctx, q, offset, 32, t.tag, tailHold)
		switch e, refused := errors.AsType[*admin.Error](err); {
		case ctx.Err() != nil:
			return
		case err == nil:
			offset = p.Next
			t.print(p.Messages)
		case refused && e.Code != protocol.RespSystemBusy:
			t.fail(err)
			return
		default: // it is away, or busy: perhaps not for long
			t.mu.Lock()
			done(t.cmd, "queue %d of %s: %v", q.ID, q.Broker, err)
			t.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(tailPause):
			}
		}
	}
}

func (t *tail) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = cmp.Or(t.err, err)
	t.stop()
}

// print prints messages of one queue, each as one line.
func (t *tail) print(messages []admin.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range messages {
		if !t.endless && t.left == 0 {
			return
		}
		if err := t.line(&messages[i]); err != nil {
			t.err = cmp.Or(t.err, err)
			t.stop()
			return
		}
		if t.left--; t.left == 0 && !t.endless {
			t.stop()
		}
	}
}

func (t *tail) line(m *admin.Message) error {
	w := t.cmd.OutOrStdout()
	if t.output == formatJSON {
		b, err := json.Marshal(shownMessage{*m})
		if err != nil {
			return err
		}
		_, err = w.Write(append(b, '\n'))
		return err
	}
	tag := ""
	if m.Tag != "" {
		tag = " " + colour(w, text.FgCyan, m.Tag)
	}
	_, err := fmt.Fprintf(w, "%s %s/%d@%d%s %s\n",
		colour(w, text.Faint, time.UnixMilli(m.Stored).Format("15:04:05.000")), m.Broker, m.Queue.ID, m.Offset, tag, bodyText(m, 4000))
	return err
}
