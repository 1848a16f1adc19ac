package main

import (
	"net"
	"net/netip"
	"strconv"

	"github.com/metaqio/metaq/internal/daemon"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/nameserver"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/internal/remotingdoor"
)

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
	n.broker.OnTopics(n.topicsChanged)
	n.names.SetLocal(local)
	return nil
}

// topicsChanged tells the name servers of topics that the broker has made, changed or deleted.
func (n *server) topicsChanged(names []string) {
	for _, name := range names {
		n.names.LocalTopicChanged(name, n.topic)
	}
	if n.registrar != nil {
		n.registrar.Changed()
	}
}

// allTopicsChanged tells the name servers that topics are to be shown differently.
func (n *server) allTopicsChanged() {
	n.names.LocalChanged()
	if n.registrar != nil {
		n.registrar.Changed()
	}
}

// topic is a topic of the broker as name servers show it; nil if there is none.
func (n *server) topic(name string) *protocol.TopicConfig {
	t, ok := n.broker.Topic(name)
	if !ok {
		return nil
	}
	return n.shown(&t)
}

// topics is topic for all of them, with the table's version.
func (n *server) topics() (shown []protocol.TopicConfig, version protocol.DataVersion) {
	list, counter, changed := n.broker.Topics()
	for i := range list {
		shown = append(shown, *n.shown(&list[i]))
	}
	return shown, protocol.DataVersion{Counter: counter, Timestamp: changed}
}

func (n *server) shown(t *entry.Topic) *protocol.TopicConfig {
	c := remotingdoor.TopicConfig(t)
	c.Perm &= n.broker.Config().Permission | 1
	return &c
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
