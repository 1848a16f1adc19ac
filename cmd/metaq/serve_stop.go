package main

import (
	"context"
	"time"
)

// drainTime is how long requests under way may take when the server stops. It leaves most of daemon.GracePeriod to the
// last sync and checkpoint.
const drainTime = 2 * time.Second

// serveConnections serves all ports until ctx ends; then nothing more is accepted or read, and requests under way are
// answered before their connections are closed.
func (n *server) serveConnections(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- n.remote.Serve(context.WithoutCancel(ctx)) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if err := n.remote.Shutdown(drain); err != nil {
		n.log.Debug("requests were still under way when the server stopped", "limit", drainTime.String())
	}
	return <-ended
}
