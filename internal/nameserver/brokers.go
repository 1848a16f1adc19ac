package nameserver

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
)

// newestVersion stands for a version that the binary header could not hold.
const newestVersion = 612

// registerBroker answers 103.
func (s *Server) registerBroker(c Conn, cmd *protocol.Command) *protocol.Command {
	a := arrival{conn: c, now: s.now(), expiry: s.expiry}
	if err := a.header.Decode(&cmd.Ext); err != nil {
		return invalid(cmd, err)
	}
	if crc := a.header.BodyCrc32; crc != 0 && crc != protocol.BodyCRC(cmd.Body) {
		return cmd.Reply(protocol.RespSystemError,
			fmt.Sprintf("crc32 not match: bodyCrc32 is %d, that of the body is %d", crc, protocol.BodyCRC(cmd.Body)))
	}
	if s.isSelf(&a.header, &cmd.Ext) {
		return s.registered(c, cmd, accepted{})
	}
	if err := s.prepare(&a, cmd); err != nil {
		return cmd.Reply(protocol.RespSystemError, "register broker failed: "+err.Error())
	}
	s.mu.Lock()
	a.replace = s.settings.DeleteTopicWithBrokerRegistration
	known := s.table.brokers[a.header.BrokerName] != nil
	done, err := s.table.register(&a, &s.limits)
	s.mu.Unlock()
	switch h := &a.header; {
	case err != nil:
		s.warned.Do(func() { s.log.Warn("registration refused", "why", err, "address", h.BrokerAddr, "by", c.Remote()) })
		return cmd.Reply(protocol.RespSystemError, err.Error())
	case done.ignored:
		s.warned.Do(func() {
			s.log.Warn("registration ignored: another replica with this id has a newer state", "broker", h.BrokerName,
				"id", h.BrokerId, "address", h.BrokerAddr, "by", c.Remote())
		})
	case !known:
		s.log.Info("broker registered", "broker", h.BrokerName, "id", h.BrokerId, "address", h.BrokerAddr, "cluster", h.ClusterName)
	}
	s.notify(done.min)
	return s.registered(c, cmd, done)
}

// isSelf says whether it is the broker of this process that registers, because it was told to register with all name servers of a cluster.
func (s *Server) isSelf(h *protocol.RegisterBrokerRequest, ext *protocol.Ext) bool {
	from, ok := ext.Get(processField)
	if !ok || string(from) != process {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.local != nil && s.local.Name == h.BrokerName && s.local.BrokerID == h.BrokerId
}

// registered is the answer to a registration.
func (s *Server) registered(c Conn, cmd *protocol.Command, done accepted) *protocol.Command {
	r := cmd.Reply(protocol.RespSuccess, "")
	if done.master != nil {
		(&protocol.RegisterBrokerResponse{MasterAddr: done.master.address(c), HaServerAddr: done.master.haAddress(c)}).Encode(&r.Ext)
	}
	s.mu.RLock()
	order := s.settings.ReturnOrderTopicConfigToBroker
	s.mu.RUnlock()
	if order {
		r.Body = s.kvTable(orderNamespace)
	}
	return r
}

// prepare reads and checks a registration as far as that goes without the table.
func (s *Server) prepare(a *arrival, cmd *protocol.Command) (err error) {
	h := &a.header
	if err := s.checkNames("brokerName", h.BrokerName, "clusterName", h.ClusterName); err != nil {
		return err
	}
	if h.BrokerId < 0 {
		return fmt.Errorf("brokerId is %d", h.BrokerId)
	}
	if h.BrokerAddr, err = s.checkAddr(h.BrokerAddr); err != nil {
		return fmt.Errorf("brokerAddr %w", err)
	}
	if h.ZoneName != "" {
		if err := s.checkNames("zone name", h.ZoneName); err != nil {
			return err
		}
	}
	if len(h.HaServerAddr) > s.limits.MaxNameBytes {
		return fmt.Errorf("haServerAddr %w", errNameTooLong)
	}
	if h.HasHeartbeatTimeoutMillis {
		a.expiry = min(max(time.Duration(h.HeartbeatTimeoutMillis)*time.Millisecond, minBrokerExpiry), maxBrokerExpiry)
	}
	if a.body, err = parseRegistration(cmd); err != nil {
		return err
	}
	return s.checkBody(a.body)
}

func parseRegistration(cmd *protocol.Command) (*protocol.RegisterBrokerBody, error) {
	if len(cmd.Body) == 0 {
		return &protocol.RegisterBrokerBody{}, nil // RocketMQ takes it as a broker without topics
	}
	version := cmd.Version
	if version < 0 {
		version = newestVersion
	}
	return protocol.ParseRegisterBroker(cmd.Body, version, 0)
}

// checkBody checks names. A topic's name is the one that it is listed under.
func (s *Server) checkBody(body *protocol.RegisterBrokerBody) error {
	if n := len(body.FilterServerList); n > s.limits.MaxFilterServers {
		return fmt.Errorf("%d filter servers exceed MaxFilterServers (%d)", n, s.limits.MaxFilterServers)
	}
	for _, name := range body.FilterServerList {
		if err := s.checkNames("filter server", name); err != nil {
			return err
		}
	}
	for name := range body.TopicConfigSerializeWrapper.TopicConfigTable {
		if err := s.checkNames("topic", name); err != nil {
			return err
		}
	}
	return nil
}

// checkAddr checks an address, host:port, and puts an IPv6 host into brackets, which RocketMQ's broker leaves away.
func (s *Server) checkAddr(addr string) (string, error) {
	if err := s.checkName(addr); err != nil {
		return "", fmt.Errorf("%.64q %w", addr, err)
	}
	if strings.ContainsAny(addr, ",;{}'") { // clients in Go split the list of addresses at commas
		return "", fmt.Errorf("%.64q %w", addr, errNameCharacter)
	}
	if i := strings.LastIndexByte(addr, ':'); i > 0 && addr[0] != '[' && strings.IndexByte(addr, ':') != i {
		if ip, err := netip.ParseAddr(addr[:i]); err == nil {
			addr = "[" + ip.String() + "]" + addr[i:]
		}
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || port == "" {
		return "", fmt.Errorf("%.64q is not host:port", addr)
	}
	return addr, nil
}

// unregisterBroker answers 104. Who is not there is unregistered.
func (s *Server) unregisterBroker(_ Conn, cmd *protocol.Command) *protocol.Command {
	var h protocol.UnregisterBrokerRequest
	if err := h.Decode(&cmd.Ext); err != nil {
		return invalid(cmd, err)
	}
	addr, err := s.checkAddr(h.BrokerAddr)
	if err != nil {
		return invalid(cmd, fmt.Errorf("brokerAddr %w", err))
	}
	s.mu.Lock()
	gone := s.table.unregister(h.BrokerName, addr)
	s.mu.Unlock()
	s.farewell(gone, "it unregistered")
	return cmd.Reply(protocol.RespSuccess, "")
}

// queryDataVersion answers 322: whether a broker need register again. It counts as a sign of life.
func (s *Server) queryDataVersion(_ Conn, cmd *protocol.Command) *protocol.Command {
	var h protocol.QueryDataVersionRequest
	if err := h.Decode(&cmd.Ext); err != nil {
		return invalid(cmd, err)
	}
	var asked protocol.DataVersion
	if err := protocol.ParseJSON(cmd.Body, &asked); err != nil {
		return invalid(cmd, err)
	}
	addr, err := s.checkAddr(h.BrokerAddr)
	if err != nil {
		return invalid(cmd, fmt.Errorf("brokerAddr %w", err))
	}
	s.mu.Lock()
	m := s.table.touch(h.BrokerName, addr, s.now())
	var known *protocol.DataVersion
	if m != nil {
		v := m.last.version
		known = &v
	}
	s.mu.Unlock()
	r := cmd.Reply(protocol.RespSuccess, "")
	(&protocol.QueryDataVersionResponse{Changed: known == nil || *known != asked}).Encode(&r.Ext)
	if known != nil {
		r.Body = protocol.AppendJSON(nil, known)
	}
	return r
}

// brokerHeartbeat answers 904: a sign of life. That of an unknown broker changes nothing.
func (s *Server) brokerHeartbeat(_ Conn, cmd *protocol.Command) *protocol.Command {
	var h protocol.BrokerHeartbeatRequest
	if err := h.Decode(&cmd.Ext); err != nil {
		return invalid(cmd, err)
	}
	if addr, err := s.checkAddr(h.BrokerAddr); err == nil {
		s.mu.Lock()
		s.table.touch(h.BrokerName, addr, s.now())
		s.mu.Unlock()
	}
	return cmd.Reply(protocol.RespSuccess, "")
}

// registerTopic answers 217: queues of one topic, on brokers that are registered.
func (s *Server) registerTopic(c Conn, cmd *protocol.Command) *protocol.Command {
	var h protocol.RegisterTopicRequest
	if err := h.Decode(&cmd.Ext); err != nil {
		return invalid(cmd, err)
	}
	if err := s.checkNames("topic", h.Topic); err != nil {
		return invalid(cmd, err)
	}
	var route protocol.TopicRouteData
	if len(cmd.Body) > 0 {
		if err := protocol.ParseJSON(cmd.Body, &route); err != nil {
			return invalid(cmd, err)
		}
	}
	s.mu.Lock()
	err := s.table.registerTopic(h.Topic, route.QueueDatas, &s.limits)
	s.mu.Unlock()
	if err != nil {
		s.warned.Do(func() { s.log.Warn("registration of a topic refused", "why", err, "topic", h.Topic, "by", c.Remote()) })
		return cmd.Reply(protocol.RespSystemError, err.Error())
	}
	return cmd.Reply(protocol.RespSuccess, "")
}

var errLocal = errors.New("is the broker of this process, which knows its topics itself")

// registerTopic gives a topic queues, on all of the brokers named or on none.
func (t *table) registerTopic(topic string, list []protocol.QueueData, limits *Limits) error {
	fresh := 0
	for i := range list {
		b := t.brokers[list[i].BrokerName]
		if b == nil {
			return fmt.Errorf("register topic failed: broker %.64q is not registered", list[i].BrokerName)
		}
		if b.isLocal() {
			return fmt.Errorf("register topic failed: %s %w", b.name, errLocal)
		}
		if t.find(topic, b.name) == nil {
			fresh++
		}
	}
	if fresh > 0 && t.entries+fresh > limits.MaxTopicEntries {
		return fmt.Errorf("register topic failed: MaxTopicEntries (%d) is reached", limits.MaxTopicEntries)
	}
	for i := range list {
		q := &list[i]
		t.put(topic, queues{
			broker: t.brokers[q.BrokerName],
			shape:  shape{read: q.ReadQueueNums, write: q.WriteQueueNums, perm: q.Perm, sysFlag: q.TopicSysFlag},
		})
	}
	return nil
}

// deleteTopic answers 216. Topics of the broker of this process go when the broker deletes them; until then they are there.
func (s *Server) deleteTopic(c Conn, cmd *protocol.Command) *protocol.Command {
	var h protocol.DeleteTopicInNamesrvRequest
	if err := h.Decode(&cmd.Ext); err != nil {
		return invalid(cmd, err)
	}
	s.mu.Lock()
	n := s.table.deleteTopic(h.Topic, h.ClusterName, s.local)
	s.mu.Unlock()
	s.log.Info("topic removed from routes", "topic", h.Topic, "cluster", h.ClusterName, "brokers", n, "by", c.Remote())
	return cmd.Reply(protocol.RespSuccess, "")
}

// deleteTopic removes a topic from all brokers, or from those of a cluster, except what the local one has.
func (t *table) deleteTopic(topic, cluster string, local *localBroker) (n int) {
	e := t.topics[topic]
	if e == nil {
		return 0
	}
	var names []string
	for _, q := range e.queues {
		if local != nil && q.broker.name == local.Name {
			if _, has := local.shapes[topic]; has {
				continue
			}
		}
		if cluster == "" || q.broker.cluster == cluster {
			names = append(names, q.broker.name)
		}
	}
	for _, name := range names {
		t.remove(topic, name)
	}
	return len(names)
}
