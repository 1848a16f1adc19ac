package main

import (
	"net"
	"net/netip"
	"strconv"

	"github.com/metaqio/metaq/internal/daemon"
	"github.com/metaqio/metaq/internal/nameserver"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/internal/remotingdoor"
)

// topicTable is the broker's topics as name servers show them, ready to be handed
// out by requests that hold the broker's views already.
type topicTable struct {
	topics  []protocol.TopicConfig
	version protocol.DataVersion
}

// nameDoor gives the name server the connections of the door.
type nameDoor struct{ *nameserver.Server }

// Serve implements remotingdoor.NameServer.
func (d nameDoor) Serve(s *remoting.Session, c *protocol.Command) *protocol.Command {
	return d.Server.Serve(s, c)
}

// Closed implements remotingdoor.NameServer.
func (d nameDoor) Closed(s *remoting.Session) { d.Server.Closed(s) }

// openNames makes the name server of this node, and the registration with others.
func (n *server) openNames(dir string) (err error) {
	n.names, err = nameserver.New(nameserver.Options{Dir: dir, FS: realDisk, Log: n.log})
	if err != nil {
		return err
	}
	local := nameserver.Local{
		Cluster: n.settings.Cluster, Name: n.settings.Shard, Topics: n.topics,
		Address: func(c nameserver.Conn) string { return n.address(c.Local().Addr()) },
	}
	if len(n.settings.Nameservers) > 0 {
		n.registrar, err = nameserver.NewRegistrar(nameserver.RegistrarOptions{
			Nameservers: n.settings.Nameservers, Broker: local, Log: n.log,
			AddressOf: func(local netip.AddrPort) string { return n.address(local.Addr()) },
		})
		if err != nil {
			return err
		}
	}
	n.refreshTopics()
	n.names.SetLocal(local)
	n.broker.OnTopics(n.refreshTopics)
	return nil
}

// refreshTopics takes the broker's topics down anew and tells the name servers.
func (n *server) refreshTopics() {
	list, counter, changed := n.broker.Topics()
	t := &topicTable{version: protocol.DataVersion{Counter: counter, Timestamp: changed}}
	perm := n.broker.Config().Permission | 1
	for i := range list {
		c := remotingdoor.TopicConfig(&list[i])
		c.Perm &= perm
		t.topics = append(t.topics, c)
	}
	n.topicTable.Store(t)
	if n.names != nil {
		n.names.LocalChanged()
	}
	if n.registrar != nil {
		n.registrar.Changed()
	}
}

func (n *server) topics() ([]protocol.TopicConfig, protocol.DataVersion) {
	t := n.topicTable.Load()
	return t.topics, t.version
}

// address is where a client that reached this node at an address finds the broker:
// what the operator advertises, else that address.
func (n *server) address(reached netip.Addr) string {
	port := n.port(daemon.ListenerBroker)
	if text, ok := n.settings.Advertise.Address(daemon.ListenerBroker, port); ok {
		return text
	}
	return net.JoinHostPort(reached.String(), strconv.Itoa(port))
}
