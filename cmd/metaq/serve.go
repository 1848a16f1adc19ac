package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/daemon"
	"github.com/metaqio/metaq/internal/httpdoor"
	"github.com/metaqio/metaq/internal/nameserver"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/internal/remotingdoor"
	"github.com/metaqio/metaq/internal/shard"
)

// runServer opens what the settings ask for, serves until ctx ends, and closes everything again in reverse.
func runServer(ctx context.Context, s daemon.Settings, reload *daemon.Reload, override func(map[string]string) error, log *slog.Logger) (err error) {
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
	log.Info("metaq starts", startAttrs(data, listeners)...)

	n := &server{settings: s, current: reload.Current, override: override, listeners: listeners, log: log, started: time.Now(), failed: make(chan error, 1)}
	if err := n.open(data.Path); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.broker.Close()) }()
	reload.Subscribe(func(s daemon.Settings) {
		n.broker.Configure(n.config(s))
		n.allTopicsChanged()
		n.http.Configure(httpConfig(s))
	})

	removeReady, err := daemon.WriteReady(s.ReadyFile, listeners.Addresses())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeReady()) }()
	log.Info("ready")
	return n.run(ctx)
}

// server is the parts of a running node.
type server struct {
	settings  daemon.Settings
	current   func() daemon.Settings // those in force
	override  func(map[string]string) error
	listeners daemon.ListenerSet
	log       *slog.Logger
	started   time.Time
	failed    chan error // the shard can't go on

	broker    *broker.Broker
	door      *remotingdoor.Door
	remote    *remoting.Server
	names     *nameserver.Server
	registrar *nameserver.Registrar // nil without other name servers
	http      *httpdoor.Door
}

// realDisk is where everything is kept. A test puts a bad one in its place.
var realDisk = vfs.Default

func (n *server) open(data string) (err error) {
	s := n.settings
	durability := shard.Sync
	if s.Durability == daemon.DurabilityAsync {
		durability = shard.Async
	}
	b, rec, err := broker.Open(broker.Options{
		Shard: shard.Options{
			FS: realDisk, Dir: filepath.Join(data, s.Shard), Durability: durability, SyncInterval: s.SyncInterval, SegmentBytes: s.SegmentBytes,
			RingBytes: int(s.RingBytes), CheckpointBytes: s.CheckpointBytes, CheckpointInterval: s.CheckpointInterval,
			Failed: func(err error) { n.failed <- err },
		},
		Config: n.config(s), Log: n.log,
	})
	if err != nil {
		return fmt.Errorf("open broker: %w", err)
	}
	n.log.Debug("log recovered", "recovery", fmt.Sprintf("%+v", rec))
	n.broker = b
	if err := n.openNames(filepath.Join(data, "nameserver")); err != nil {
		return errors.Join(err, b.Close())
	}
	n.door = remotingdoor.New(remotingdoor.Options{
		Broker: b, NameServer: nameDoor{n.names}, StoreHost: n.storeHost, Settings: func() map[string]string { return n.current().RocketMQ() },
		Set: n.set, Started: n.started, Log: n.log,
	})
	n.openHTTP()
	n.remote, err = remoting.New(remoting.Options{
		NewWorker: n.door.NewWorker, HTTP: n.http.ServeConn, HTTP2: n.http.RefuseHTTP2,
		MaxConns: s.MaxConnections, IdleTimeout: s.IdleTimeout, Log: n.log,
	})
	if err != nil {
		return errors.Join(err, b.Close())
	}
	for _, ln := range n.listeners {
		n.remote.Listen(ln.Name, ln.Listener)
	}
	return nil
}

// run serves until ctx ends or the shard can't go on.
func (n *server) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() { // ends with ctx
		select {
		case err := <-n.failed:
			stop(fmt.Errorf("shard %s has failed: %w", n.settings.Shard, err))
		case <-ctx.Done():
		}
	}()
	var g daemon.Group
	g.Add("broker", n.broker.Run)
	g.Add("name server", n.names.Run)
	if n.registrar != nil {
		g.Add("registration", n.registrar.Run)
	}
	g.Add("http", n.http.Run)
	g.Add("connections", n.serveConnections)
	err := g.Run(ctx)
	n.door.Close()
	if cause := context.Cause(ctx); err == nil && n.broker.Shard().Failure() != nil {
		err = cause
	}
	return err
}

// set changes settings of the running server (UPDATE_BROKER_CONFIG).
func (n *server) set(_ context.Context, changes map[string]string, actor string) error {
	if err := n.override(changes); err != nil {
		return &broker.Error{Reason: broker.InvalidParameter, Text: err.Error()}
	}
	n.log.Info("settings changed over the network", "by", actor, "changes", fmt.Sprint(changes))
	return nil
}

// config is the broker's configuration from the settings.
func (n *server) config(s daemon.Settings) broker.Config {
	c := broker.Defaults()
	c.Cluster, c.Name = s.Cluster, s.Shard
	c.MaxMessageBytes, c.AutoCreateTopics, c.AutoCreateGroups = s.MaxMessageBytes, s.AutoCreateTopics, s.AutoCreateGroups
	c.DefaultQueues, c.Permission, c.DelayLevels = int32(s.DefaultTopicQueues), int32(s.BrokerPermission), s.DelayLevels
	c.MaxPullBytes, c.MaxPullMessages, c.MaxWaiters = s.MaxPullBytes, s.MaxPullMessages, s.MaxWaiters
	c.MaxReplies, c.StoreReplies = s.MaxReplies, s.StoreReplies
	c.ColdBytesPerSec, c.RetentionTime, c.RetentionBytes = s.ColdReadBytesPerSecond, s.RetentionTime, s.RetentionBytes
	c.DiskMaxUse, c.DiskStopUse = float64(s.DiskMaxUse)/100, float64(s.DiskStopUse)/100
	c.TransactionTimeout, c.TransactionInterval = s.TransactionTimeout, s.TransactionCheckInterval
	c.TransactionChecks, c.RejectTransactions = s.TransactionCheckMax, s.RejectTransactions
	return c
}

// storeHost is the broker's address as the client of a connection can reach it: what
// the operator advertises, else the address by which the client came.
func (n *server) storeHost(s *remoting.Session) netip.AddrPort {
	port := n.port(daemon.ListenerBroker)
	if text, ok := n.settings.Advertise.Address(daemon.ListenerBroker, port); ok {
		if addr, err := netip.ParseAddrPort(text); err == nil {
			return addr
		}
		if _, p, err := net.SplitHostPort(text); err == nil { // a name: records hold addresses only
			if p, err := strconv.Atoi(p); err == nil {
				port = p
			}
		}
	}
	return netip.AddrPortFrom(s.Local().Addr(), uint16(port))
}

// port is where a listener listens, 0 when it is off.
func (n *server) port(listener string) int {
	for _, ln := range n.listeners {
		if ln.Name == listener {
			return ln.Addr().(*net.TCPAddr).Port
		}
	}
	return 0
}

// startAttrs are the attributes of the first line: where the data is and who listens where.
func startAttrs(data *daemon.DataDir, listeners daemon.ListenerSet) []any {
	attrs := []any{"version", version, "data", data.Path, "node", data.Node.ID}
	for _, ln := range listeners {
		attrs = append(attrs, ln.Name, ln.Addr().String())
	}
	return attrs
}
