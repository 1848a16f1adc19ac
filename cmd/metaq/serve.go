package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/metaqio/metaq/internal/daemon"
)

// runServer opens what the settings ask for, serves until ctx ends, and closes everything again in reverse.
func runServer(ctx context.Context, s daemon.Settings, _ *daemon.Reload, log *slog.Logger) (err error) {
	listeners, err := daemon.Listen(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, listeners.Close()) }()
	data, err := daemon.OpenData(s.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	log.Info("metaq", startAttrs(data, listeners)...)

	removeReady, err := daemon.WriteReady(s.ReadyFile, listeners.Addresses())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeReady()) }()
	log.Info("ready")
	<-ctx.Done()
	return nil
}

// startAttrs are the attributes of the first line: where the data is and who listens where.
func startAttrs(data *daemon.DataDir, listeners daemon.ListenerSet) []any {
	attrs := []any{"version", version, "data", data.Path, "node", data.Node.ID}
	for _, ln := range listeners {
		attrs = append(attrs, ln.Name, ln.Addr().String())
	}
	return attrs
}
