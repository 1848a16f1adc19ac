package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
	"github.com/metaqio/metaq/internal/daemon"
	"github.com/metaqio/metaq/message"
)

// sendFlags say what is sent.
type sendFlags struct {
	topic, tag, body, file string
	keys, properties       []string
	count, batch           int
	queue                  int32
	quiet                  bool
	bodyGiven              bool
}

func newMessageSend() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "send",
		Short: "Send messages",
		Long: "Sends messages: one with the body given by --body or --file, or one for each line of standard input.\n" +
			"They go to the queues of the topic in turn. A topic that does not exist is made by the first message, if the server does so.",
		Example: "  metaq message send --topic orders --body 'hello' --tag new --key 4711 --property customer=7\n" +
			"  metaq message send --topic orders --file order.json\n" +
			"  seq 1000 | metaq message send --topic orders --batch 100",
		Args: arguments(cobra.NoArgs),
	}
	server, output := addRemoteFlags(cmd), outputFlag(cmd)
	f := &sendFlags{}
	flags := cmd.Flags()
	flags.StringVarP(&f.topic, "topic", "t", "", "`TOPIC`")
	flags.StringVar(&f.tag, "tag", "", "tag, by which consumers filter")
	flags.StringArrayVarP(&f.keys, "key", "k", nil, "key, by which messages are found; may be given more than once")
	flags.StringArrayVarP(&f.properties, "property", "p", nil, "`NAME=VALUE`; may be given more than once")
	flags.StringVarP(&f.body, "body", "b", "", "`TEXT` of the body")
	flags.StringVarP(&f.file, "file", "f", "", "`FILE` that is the body")
	flags.IntVarP(&f.count, "count", "c", 1, "how often each message is sent")
	flags.IntVar(&f.batch, "batch", 1, "messages that are sent together")
	flags.Int32VarP(&f.queue, "queue", "q", -1, "only to the queue of that number; -1: to all in turn")
	flags.BoolVar(&f.quiet, "quiet", false, "do not print where each message went, only how many were sent")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f.bodyGiven = flags.Changed("body")
		if err := f.check(); err != nil {
			return err
		}
		next, err := f.bodies(cmd)
		if err != nil {
			return err
		}
		return server.run(cmd, func(ctx context.Context, c *admin.Client) error {
			sent, n, err := f.send(ctx, c, next)
			if f.quiet {
				done(cmd, "%d messages sent", n)
				return err
			}
			if n == 0 && err != nil {
				return err
			}
			g := grid{Header: []any{"BROKER", "QUEUE", "OFFSET", "ID", "STATUS"}}
			for _, s := range sent {
				g.add(s.Broker, s.Queue.ID, s.Offset, s.ID, s.Status)
			}
			return errors.Join(printResult(cmd, *output, sent, g), err)
		})
	}
	return cmd
}

func (f *sendFlags) check() error {
	switch {
	case f.topic == "":
		return usagef("--topic is needed")
	case f.bodyGiven && f.file != "":
		return usagef("--body and --file exclude each other")
	case f.count < 1:
		return usagef("--count must be at least 1")
	case f.batch < 1 || f.batch > message.MaxBatch:
		return usagef("--batch must be 1 to %d", message.MaxBatch)
	}
	if err := message.ValidTopic(f.topic); err != nil {
		return &usageError{err}
	}
	for _, p := range f.properties {
		name, value, ok := strings.Cut(p, "=")
		if !ok || !message.ValidProperty(name, value) {
			return usagef("property %q: it is NAME=VALUE, neither empty", p)
		}
	}
	return nil
}

// bodies gives a function that gives one body after the other, then io.EOF.
func (f *sendFlags) bodies(cmd *cobra.Command) (func() ([]byte, error), error) {
	var one []byte
	switch {
	case f.bodyGiven:
		one = []byte(f.body)
	case f.file != "":
		b, err := os.ReadFile(f.file)
		if err != nil {
			return nil, err
		}
		one = b
	default:
		if in, ok := cmd.InOrStdin().(*os.File); ok && daemon.IsTerminal(in) {
			done(cmd, "each line that you type is a message; Ctrl-D ends")
		}
		lines := bufio.NewReader(cmd.InOrStdin())
		return f.repeated(func() ([]byte, error) { return nextLine(lines) }), nil
	}
	given := false
	return f.repeated(func() ([]byte, error) {
		if given {
			return nil, io.EOF
		}
		given = true
		return one, nil
	}), nil
}

// nextLine gives the next line that is not empty, without its end.
func nextLine(r *bufio.Reader) ([]byte, error) {
	for {
		line, err := r.ReadBytes('\n')
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// repeated gives each body as often as --count says.
func (f *sendFlags) repeated(next func() ([]byte, error)) func() ([]byte, error) {
	var body []byte
	left := 0
	return func() ([]byte, error) {
		if left == 0 {
			b, err := next()
			if err != nil {
				return nil, err
			}
			body, left = b, f.count
		}
		left--
		return body, nil
	}
}

// message makes a message of a body.
func (f *sendFlags) message(body []byte) admin.Outgoing {
	m := admin.Outgoing{Tag: f.tag, Keys: strings.Join(f.keys, " "), Body: body}
	for _, p := range f.properties {
		name, value, _ := strings.Cut(p, "=")
		m.Properties = append(m.Properties, [2]string{name, value})
	}
	return m
}

// send sends all bodies, and tells where they went (unless that is not wanted) and how many there were. What was sent before an error
// is returned with it.
func (f *sendFlags) send(ctx context.Context, c *admin.Client, next func() ([]byte, error)) (sent []admin.Sent, n int, err error) {
	queues, err := f.queues(ctx, c)
	if err != nil {
		return nil, 0, err
	}
	sent = []admin.Sent{}
	for turn := 0; ; turn++ {
		batch, err := f.gather(next)
		if err != nil || len(batch) == 0 {
			return sent, n, err
		}
		s, err := c.Send(ctx, queues[turn%len(queues)], batch...)
		if err != nil {
			return sent, n, fmt.Errorf("after %d messages: %w", n, err)
		}
		n += len(s)
		if !f.quiet {
			sent = append(sent, s...)
		}
	}
}

// gather takes a batch; it is empty at the end.
func (f *sendFlags) gather(next func() ([]byte, error)) (batch []admin.Outgoing, err error) {
	for len(batch) < f.batch {
		body, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read messages: %w", err)
		}
		batch = append(batch, f.message(body))
	}
	return batch, nil
}

// queues gives the queues to send to.
func (f *sendFlags) queues(ctx context.Context, c *admin.Client) ([]admin.Queue, error) {
	r, _, err := c.SendRoute(ctx, f.topic)
	if err != nil {
		return nil, err
	}
	queues := r.WriteQueues()
	if f.queue >= 0 {
		queues = onlyQueue(queues, f.queue)
	}
	if len(queues) == 0 {
		return nil, fmt.Errorf("topic %s has no such queue that may be written", f.topic)
	}
	return queues, nil
}

// onlyQueue gives the queues of a number.
func onlyQueue(queues []admin.Queue, id int32) (list []admin.Queue) {
	for _, q := range queues {
		if q.ID == id {
			list = append(list, q)
		}
	}
	return list
}
