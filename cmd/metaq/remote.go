package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/admin"
)

// serverVariable names the environment variable with the default of --server.
const serverVariable = "METAQ_SERVER"

// remote are the flags of every command that talks to a server.
type remote struct {
	server  string
	timeout time.Duration
}

func addRemoteFlags(cmd *cobra.Command) *remote {
	r := &remote{}
	cmd.Flags().StringVarP(&r.server, "server", "s", cmp.Or(os.Getenv(serverVariable), "127.0.0.1:9876"),
		"`ADDRESS` of a name server or broker, ours or RocketMQ's; several are separated by ;")
	cmd.Flags().DurationVar(&r.timeout, "timeout", 5*time.Second, "for connecting and for each request")
	return r
}

// run connects, and calls fn with a context that ends with the first SIGINT or SIGTERM.
func (r *remote) run(cmd *cobra.Command, fn func(ctx context.Context, c *admin.Client) error) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := admin.Connect(ctx, r.server, admin.Options{Timeout: r.timeout})
	if err != nil {
		return fmt.Errorf("%w; is a server running there? --server says where", err)
	}
	return errors.Join(fn(ctx, c), c.Close())
}

// done says on stderr what a command that prints no data has done.
func done(cmd *cobra.Command, format string, args ...any) {
	fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...)
}

// perms names a permission as flags do.
func permText(perm int32) string {
	switch perm & (admin.PermRead | admin.PermWrite) {
	case admin.PermRead | admin.PermWrite:
		return "rw"
	case admin.PermRead:
		return "r"
	case admin.PermWrite:
		return "w"
	}
	return "-"
}

func parsePerm(text string) (int32, error) {
	switch text {
	case "rw", "wr", "6":
		return admin.PermRead | admin.PermWrite, nil
	case "r", "4":
		return admin.PermRead, nil
	case "w", "2":
		return admin.PermWrite, nil
	case "-", "0":
		return 0, nil
	}
	return 0, usagef("permission %q: it is rw, r, w or -", text)
}

// moment shows a time in ms since 1970, in local time.
func moment(ms int64) string {
	if ms <= 0 {
		return "-"
	}
	return time.UnixMilli(ms).Format("2006-01-02 15:04:05.000")
}

// timeLayouts are how a time may be given; without a zone it is local time.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999", "2006-01-02 15:04:05.999", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly}

// parseMoment reads a time: a date, how long ago (90m, 2h), or milliseconds since 1970.
func parseMoment(text string, now time.Time) (ms int64, err error) {
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t.UnixMilli(), nil
		}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 1e11 {
		return n, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n).UnixMilli(), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d).UnixMilli(), nil
	}
	return 0, usagef("time %q: it is a date like 2026-11-30T12:00, how long ago like 90m, or milliseconds since 1970", text)
}

// parsePlace reads a place in queues: earliest, latest, an offset, or a time.
func parsePlace(text string, now time.Time) (admin.Place, error) {
	switch text {
	case "earliest":
		return admin.Earliest(), nil
	case "latest":
		return admin.Latest(), nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n < 1e11 {
		return admin.AtOffset(n), nil
	}
	ms, err := parseMoment(text, now)
	if err != nil {
		return admin.Place{}, usagef("place %q: it is earliest, latest, an offset, a date like 2026-11-30T12:00, or how long ago like 90m", text)
	}
	return admin.AtTime(ms), nil
}
