package main

import (
	"fmt"

	"github.com/metaqio/metaq/internal/commitlog"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/message"
)

// logItem is something in a frame: a record or a command.
type logItem struct {
	topic   string // that it concerns; empty for none
	record  *message.Record
	command entry.Command
}

// readFrame calls fn with each record and command of a frame; what they hold is valid until fn returns. For raft's own entries, which
// have neither, it tells their size.
func readFrame(f commitlog.Frame, fn func(logItem) error) (unread int, err error) {
	run := f.Payload
	switch f.Kind {
	case commitlog.KindMessages, commitlog.KindCommands:
	default:
		return len(run), nil
	}
	var r message.Record
	for i := range f.Count {
		n, err := r.Parse(run)
		if err != nil {
			return 0, fmt.Errorf("record %d of %d: %w", i+1, f.Count, err)
		}
		run = run[n:]
		if err := fn(logItem{topic: string(r.Topic), record: &r}); err != nil {
			return 0, fmt.Errorf("record %d of %d: %w", i+1, f.Count, err)
		}
	}
	commands := entry.NewReader(run)
	for raw, ok := commands.Next(); ok; raw, ok = commands.Next() {
		c, err := raw.Parse()
		if err != nil {
			return 0, err
		}
		if err := fn(logItem{topic: topicOf(c), command: c}); err != nil {
			return 0, err
		}
	}
	return 0, commands.Err()
}

// topicOf is the topic that a command concerns.
func topicOf(c entry.Command) string {
	switch c := c.(type) {
	case *entry.PutTopic:
		return c.Topic.Name
	case *entry.DeleteTopic:
		return c.Name
	case *entry.CommitOffsets:
		return c.Topic
	case *entry.ResetOffsets:
		return c.Topic
	}
	return ""
}

// frameKind names a kind of frames.
func frameKind(kind byte) string {
	switch kind {
	case commitlog.KindMessages:
		return "messages"
	case commitlog.KindCommands:
		return "commands"
	case commitlog.KindEmpty:
		return "empty"
	case commitlog.KindConfig:
		return "members"
	case commitlog.KindPad:
		return "pad"
	}
	return fmt.Sprintf("kind %d", kind)
}
