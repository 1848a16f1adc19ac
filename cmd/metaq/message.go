package main

import (
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

func newMessage() *cobra.Command {
	cmd := parent(&cobra.Command{
		Use:     "message",
		GroupID: groupAdmin,
		Short:   "Send, get and follow messages",
		Example: "  metaq message send --topic orders --body hello\n  metaq message get --topic orders\n  metaq message tail --topic orders",
	})
	cmd.AddCommand(newMessageSend(), newMessageGet(), newMessageTail())
	return cmd
}

// shownMessage is a message as JSON: its body is text, or base64 if it is no UTF-8.
type shownMessage struct{ admin.Message }

// MarshalJSON implements json.Marshaler.
func (m shownMessage) MarshalJSON() ([]byte, error) {
	type plain admin.Message
	out := struct {
		plain
		Body       *string `json:"body,omitempty"`
		BodyBase64 string  `json:"body_base64,omitempty"`
	}{plain: plain(m.Message)}
	if utf8.Valid(m.Body) {
		text := string(m.Body)
		out.Body = &text
	} else {
		out.BodyBase64 = base64.StdEncoding.EncodeToString(m.Body)
	}
	return json.Marshal(out)
}

func shown(messages []admin.Message) []shownMessage {
	list := make([]shownMessage, 0, len(messages))
	for _, m := range messages {
		list = append(list, shownMessage{m})
	}
	return list
}

// bodyText shows a body in a line of a table.
func bodyText(m *admin.Message, limit int) string {
	switch {
	case m.Packed != "":
		return "(compressed: " + m.Packed + ")"
	case !utf8.Valid(m.Body):
		return "(binary)"
	}
	text := []rune(string(m.Body))
	cut := len(text) > limit
	if cut {
		text = text[:limit]
	}
	for i, r := range text {
		if r < ' ' || r == 0x7F {
			text[i] = ' ' // a terminal must not take it for a command
		}
	}
	if cut {
		return string(text) + "…"
	}
	return string(text)
}

// messageGrid has a row for each message.
func messageGrid(messages []admin.Message) grid {
	g := grid{Header: []any{"BROKER", "QUEUE", "OFFSET", "STORED", "TAG", "KEYS", "SIZE", "BODY"}}
	for i := range messages {
		m := &messages[i]
		g.add(m.Broker, m.Queue.ID, m.Offset, moment(m.Stored), m.Tag, m.Keys, len(m.Body), bodyText(m, 60))
	}
	return g
}
