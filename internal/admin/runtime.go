package admin

import (
	"context"
	"slices"
	"strings"

	"github.com/metaqio/metaq/internal/protocol"
)

// Runtime asks a broker how it is: rates, totals, positions, by RocketMQ's names.
func (c *Client) Runtime(ctx context.Context, addr string) (map[string]string, error) {
	var t protocol.KVTable
	if err := c.callInto(ctx, addr, protocol.ReqGetBrokerRuntimeInfo, noHeader{}, &t); err != nil {
		return nil, err
	}
	return t.Table, nil
}

// Config asks a broker for its settings, by RocketMQ's names.
func (c *Client) Config(ctx context.Context, addr string) (map[string]string, error) {
	answer, err := c.call(ctx, addr, protocol.ReqGetBrokerConfig, noHeader{}, nil)
	if err != nil {
		return nil, err
	}
	return parseProperties(string(answer.Body)), nil
}

// SetConfig changes settings of a broker.
func (c *Client) SetConfig(ctx context.Context, addr string, settings map[string]string) error {
	var lines []string
	for k, v := range settings {
		lines = append(lines, escapeProperty(k)+"="+escapeProperty(v)+"\n")
	}
	slices.Sort(lines)
	_, err := c.call(ctx, addr, protocol.ReqUpdateBrokerConfig, noHeader{}, []byte(strings.Join(lines, "")))
	return err
}

// parseProperties reads what brokers write: one key=value a line, with the backslashes of Java's properties.
func parseProperties(text string) map[string]string {
	settings := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		k, v, ok := strings.Cut(line, "=")
		if k = strings.TrimSpace(k); ok && k != "" && k[0] != '#' && k[0] != '!' {
			settings[k] = unescapeProperty(strings.TrimLeft(v, " \t"))
		}
	}
	return settings
}

func unescapeProperty(v string) string {
	if !strings.Contains(v, `\`) {
		return v
	}
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		c := v[i]
		if c == '\\' && i+1 < len(v) {
			i++
			if c = v[i]; c == 'n' {
				c = '\n'
			} else if c == 't' {
				c = '\t'
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

var propertyEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "=", `\=`, "#", `\#`, "!", `\!`)

func escapeProperty(v string) string { return propertyEscapes.Replace(v) }
