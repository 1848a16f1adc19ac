package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
	"github.com/metaqio/metaq/internal/commitlog"
	"github.com/metaqio/metaq/message"
)

// showFlags say what of a log is shown.
type showFlags struct {
	topic string
	from  int64
	limit int
}

func newLogShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show DIR",
		Short: "Print frames, and the records and commands in them",
		Long: "Prints the frames of the logs below DIR (a data folder, that of a shard, or a log), and what is in them: records and commands.\n" +
			"With --output json each frame is one line. What is damaged is passed over: see `metaq log verify`. A server may run.",
		Example: "  metaq log show ./data --limit 20\n  metaq log show ./data --topic orders --from 1048576 --output json",
		Args:    arguments(cobra.ExactArgs(1)),
	}
	output := outputFlag(cmd)
	f := &showFlags{}
	cmd.Flags().StringVarP(&f.topic, "topic", "t", "", "only what concerns that `TOPIC`")
	cmd.Flags().Int64Var(&f.from, "from", 0, "`POSITION` to begin with")
	cmd.Flags().IntVarP(&f.limit, "limit", "l", 0, "end after so many records and commands (a frame without counts as one); 0: never")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.from < 0 || f.limit < 0 {
			return usagef("--from and --limit must not be negative")
		}
		dirs, err := logDirs(args[0])
		if err != nil {
			return err
		}
		w := bufio.NewWriter(cmd.OutOrStdout())
		left := f.limit
		for _, dir := range dirs {
			if err := f.show(w, *output, dir, &left); errors.Is(err, errEnough) {
				break
			} else if err != nil {
				return errors.Join(w.Flush(), err)
			}
		}
		return w.Flush()
	}
	return cmd
}

// errEnough ends a walk.
var errEnough = errors.New("enough")

// show prints a log. left counts down to the end.
func (f *showFlags) show(w io.Writer, output format, dir string, left *int) error {
	return commitlog.Walk(dir, nil, message.Position(f.from), func(_ string, frame commitlog.Frame) error {
		s := f.frame(frame, *left)
		if f.topic != "" && len(s.Items) == 0 {
			return nil
		}
		if err := s.print(w, output); err != nil {
			return err
		}
		if *left -= max(1, len(s.Items)); *left <= 0 && f.limit > 0 {
			return errEnough
		}
		return nil
	})
}

// frame makes a frame printable, with at most so many items if there is a limit.
func (f *showFlags) frame(frame commitlog.Frame, most int) *shownFrame {
	s := &shownFrame{
		Position: int64(frame.Position), Kind: frameKind(frame.Kind), Index: frame.Index, Term: frame.Term, Time: frame.Time,
		Size: frame.Size, Group: int64(frame.Group), Async: frame.Flags&commitlog.FlagAsync != 0,
	}
	rest, err := readFrame(frame, func(item logItem) error {
		if f.topic != "" && item.topic != f.topic {
			return nil
		}
		if f.limit > 0 && len(s.Items) == most {
			return errEnough
		}
		s.Items = append(s.Items, item.shown())
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		s.Damage = err.Error()
	}
	s.Unread = rest
	return s
}

// shownFrame is a frame as it is printed.
type shownFrame struct {
	Position int64       `json:"position"`
	Kind     string      `json:"kind"`
	Index    uint64      `json:"index"`
	Term     uint64      `json:"term"`
	Time     int64       `json:"time"` // ms since 1970
	Size     int         `json:"size"`
	Group    int64       `json:"group"` // bytes from the start of its write group
	Async    bool        `json:"async,omitempty"`
	Items    []shownItem `json:"items,omitempty"`
	Unread   int         `json:"unread,omitempty"` // bytes of raft's own entries, which are not taken apart
	Damage   string      `json:"damage,omitempty"` // why the rest of the frame could not be read
}

// shownItem is a record or a command.
type shownItem struct {
	Record  *shownMessage `json:"record,omitempty"`
	Command string        `json:"command,omitempty"` // its kind
	Fields  any           `json:"fields,omitempty"`  // of the command
}

func (s *shownFrame) print(w io.Writer, output format) error {
	if output == formatJSON {
		b, err := json.Marshal(s)
		if err != nil {
			return err
		}
		_, err = w.Write(append(b, '\n'))
		return err
	}
	durability := ""
	if s.Async {
		durability = " async"
	}
	if _, err := fmt.Fprintf(w, "%d %s index %d term %d %s %d bytes%s\n",
		s.Position, s.Kind, s.Index, s.Term, time.UnixMilli(s.Time).Format("2006-01-02 15:04:05.000"), s.Size, durability); err != nil {
		return err
	}
	for _, item := range s.Items {
		if err := item.print(w); err != nil {
			return err
		}
	}
	if s.Damage != "" {
		_, err := fmt.Fprintf(w, "  unreadable: %s\n", s.Damage)
		return err
	}
	return nil
}

func (i *shownItem) print(w io.Writer) error {
	if i.Record == nil {
		fields, err := json.Marshal(i.Fields)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "  %s %s\n", i.Command, fields)
		return err
	}
	m := &i.Record.Message
	tag := ""
	if m.Tag != "" {
		tag = " tag " + m.Tag
	}
	_, err := fmt.Fprintf(w, "  record %d %s/%d@%d%s %d bytes: %s\n", m.Position, m.Topic, m.Queue.ID, m.Offset, tag, len(m.Body), bodyText(m, 60))
	return err
}

// shown makes an item printable.
func (i logItem) shown() shownItem {
	if i.record == nil {
		return shownItem{Command: i.command.Kind().String(), Fields: i.command}
	}
	return shownItem{Record: &shownMessage{admin.ToMessage("", i.record)}}
}
