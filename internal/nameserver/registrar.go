package nameserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
)

// Period of registrations, as RocketMQ bounds its registerNameServerPeriod.
const (
	defaultPeriod = 30 * time.Second
	minPeriod     = 10 * time.Second
	maxPeriod     = 60 * time.Second
)

// maxPlainBody is the size above which a registration is compressed, so that it fits into a frame. It then lacks the sysFlag of topics.
const maxPlainBody = 12 << 20

// processField is an ext field of our registrations by which a name server recognises the broker of its own process: every node of a
// cluster may be given the same list of name servers. RocketMQ ignores it.
const processField = "metaqProcess"

// process names this process.
var process = rand.Text()

// RegistrarOptions are what a Registrar is made of.
type RegistrarOptions struct {
	// Nameservers are addresses, host:port; ours or Apache's.
	Nameservers []string
	// Broker is who registers. Its Address is not used. RocketMQ refuses a broker whose first registration names exactly one topic.
	Broker Local
	// AddressOf makes the address to register of the local address of the connection to the name server, which is how a client beside
	// that name server would reach us; or returns the one that is configured. It must be set.
	AddressOf func(local netip.AddrPort) string
	// Period is the time between registrations when nothing changes: default 30 s, at least 10 s, at most 60 s.
	Period time.Duration
	// Ordered, when set, gets the order configurations that a name server answered with, when they are others than before: topic to
	// "broker:queues;…". It is called by the goroutine of that name server, and must not change the map.
	Ordered func(nameserver string, order map[string]string)
	// Log gets what an operator should know. Default: nothing is logged.
	Log *slog.Logger
}

// A Registrar keeps a local broker registered with name servers of other processes.
type Registrar struct {
	opts  RegistrarOptions
	peers []*peer
	dial  func(ctx context.Context, addr string) (*remoting.Client, error)
}

// NewRegistrar makes a Registrar; Run starts it.
func NewRegistrar(o RegistrarOptions) (*Registrar, error) {
	if o.AddressOf == nil || o.Broker.Topics == nil {
		return nil, errors.New("make registrar: AddressOf and Broker.Topics must be set")
	}
	orDefault(&o.Log, slog.New(slog.DiscardHandler))
	orDefault(&o.Period, defaultPeriod)
	o.Period = min(max(o.Period, minPeriod), maxPeriod)
	r := &Registrar{opts: o, dial: func(ctx context.Context, addr string) (*remoting.Client, error) {
		return remoting.Dial(ctx, addr, remoting.ClientOptions{Timeout: registerTimeout})
	}}
	for i, addr := range o.Nameservers {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return nil, fmt.Errorf("make registrar: name server %q: %w", addr, err)
		}
		if slices.Contains(o.Nameservers[:i], addr) {
			continue
		}
		r.peers = append(r.peers, &peer{r: r, addr: addr, changed: make(chan struct{}, 1)})
	}
	return r, nil
}

// Changed says that the broker's topics have changed. All name servers are told soon; many changes together may be told once. It does not
// wait, and may be called by any goroutine with any lock held.
func (r *Registrar) Changed() {
	for _, p := range r.peers {
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
}

// Run registers with every name server, each by its own connection and in its own time, until ctx ends. Then it unregisters, which takes
// 3 s at most, and returns nil.
func (r *Registrar) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, p := range r.peers {
		all.Go(func() { p.run(ctx) })
	}
	<-ctx.Done()
	all.Wait()
	return nil
}

// registration makes the request that registers the broker under an address.
func (r *Registrar) registration(addr, ha string) *protocol.Command {
	topics, version := r.opts.Broker.Topics()
	wrapper := protocol.TopicConfigWrapper{DataVersion: version, TopicConfigTable: make(map[string]protocol.TopicConfig, len(topics))}
	wrapper.MappingDataVersion = &protocol.DataVersion{}
	for i := range topics {
		wrapper.TopicConfigTable[topics[i].TopicName] = topics[i]
	}
	body := protocol.RegisterBrokerBody{FilterServerList: []string{}, TopicConfigSerializeWrapper: wrapper}
	cmd := &protocol.Command{Code: protocol.ReqRegisterBroker, Version: protocol.ServerVersion}
	cmd.Body = protocol.AppendRegisterBroker(nil, &body, false)
	compressed := len(cmd.Body) > maxPlainBody
	if compressed {
		cmd.Body = protocol.AppendRegisterBroker(nil, &body, true)
	}
	(&protocol.RegisterBrokerRequest{
		BrokerName: r.opts.Broker.Name, ClusterName: r.opts.Broker.Cluster, BrokerId: r.opts.Broker.BrokerID, ZoneName: r.opts.Broker.Zone,
		BrokerAddr: addr, HaServerAddr: ha, HasEnableActingMaster: true, Compressed: compressed,
		BodyCrc32: protocol.BodyCRC(cmd.Body),
	}).Encode(&cmd.Ext)
	cmd.Ext.Set(processField, process)
	return cmd
}

// departure makes the request that takes the broker off.
func (r *Registrar) departure(addr string) *protocol.Command {
	cmd := &protocol.Command{Code: protocol.ReqUnregisterBroker, Version: protocol.ServerVersion}
	(&protocol.UnregisterBrokerRequest{
		BrokerName: r.opts.Broker.Name, ClusterName: r.opts.Broker.Cluster, BrokerId: r.opts.Broker.BrokerID, BrokerAddr: addr,
	}).Encode(&cmd.Ext)
	return cmd
}
