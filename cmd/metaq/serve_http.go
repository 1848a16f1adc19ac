package main

import (
	"time"

	"github.com/metaqio/metaq/internal/daemon"
	"github.com/metaqio/metaq/internal/httpdoor"
	"github.com/metaqio/metaq/internal/remoting"
)

// refusedEvery is how often a line is logged about clients that are turned away.
const refusedEvery = 10 * time.Second

// openHTTP makes the door for HTTP, to which the server of all ports gives the connections that speak it.
func (n *server) openHTTP() {
	address := ""
	for _, ln := range n.listeners {
		if ln.Name == daemon.ListenerHTTP {
			address = ln.Addr().String()
		}
	}
	n.http = httpdoor.New(httpdoor.Options{
		Broker: n.broker, Connections: func() remoting.Stats { return n.remote.Stats() }, Version: version, Started: n.started,
		Address: address, Config: httpConfig(n.settings), Log: daemon.Throttle(n.log, refusedEvery),
	})
}

func httpConfig(s daemon.Settings) httpdoor.Config {
	return httpdoor.Config{MaxLags: s.MetricsMaxLags, Profiling: s.Profiling}
}
