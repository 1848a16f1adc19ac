package nameserver

import (
	"strings"
	"sync/atomic"

	"github.com/metaqio/metaq/internal/protocol"
)

// syncMemberTopics begins the names of topics by which replicas of a broker talk: they are never sent to an acting master.
const syncMemberTopics = "rmq_sys_SYNC_BROKER_MEMBER_"

// versionQuotedKeys is the version from which on clients get routes as standard JSON: 4.9.4.
const versionQuotedKeys = 401

// A routeCache keeps a topic's route in the forms in which it was asked for: clients ask for the same thing every 30 s.
type routeCache struct {
	routes atomic.Pointer[[]encodedRoute]
}

// An encodedRoute is an answer's body. It is shared and must not be changed.
type encodedRoute struct {
	generation uint64 // of the table
	form       routeForm
	body       []byte // nil: there is nothing to be shown in this form
}

// A routeForm is what the body depends on besides the table.
type routeForm struct {
	standard bool   // standard JSON, else as RocketMQ's old library writes it
	local    string // address of the broker of this process for the client that asks; empty: not shown
}

// maxForms bounds the forms kept of one route; clients that reach us by more than a few addresses are rare.
const maxForms = 8

func (c *routeCache) get(generation uint64, form routeForm) (body []byte, ok bool) {
	if list := c.routes.Load(); list != nil {
		for i := range *list {
			if e := &(*list)[i]; e.generation == generation && e.form == form {
				return e.body, true
			}
		}
	}
	return nil, false
}

// put keeps a body, and drops what is older than the table. Of two at the same time one may be lost, which costs encoding it again.
func (c *routeCache) put(add encodedRoute) {
	list := []encodedRoute{add}
	if before := c.routes.Load(); before != nil {
		for _, e := range *before {
			if e.generation == add.generation && len(list) < maxForms {
				list = append(list, e)
			}
		}
	}
	c.routes.Store(&list)
}

// route gathers where a topic is. nil: on no broker that the client could be told.
func (t *table) route(name, orderConf, local string, actingMaster bool) *protocol.TopicRouteData {
	e := t.topics[name]
	if e == nil {
		return nil
	}
	r := &protocol.TopicRouteData{
		BrokerDatas: make([]protocol.BrokerData, 0, len(e.queues)), QueueDatas: make([]protocol.QueueData, 0, len(e.queues)),
		FilterServerTable: map[string][]string{}, OrderTopicConf: orderConf,
	}
	actingMaster = actingMaster && !strings.HasPrefix(name, syncMemberTopics)
	for i := range e.queues {
		q := &e.queues[i]
		data := q.broker.data(local)
		if len(data.BrokerAddrs) == 0 {
			continue // clients in Go fail on a broker without an address
		}
		if actingMaster && q.broker.actingMaster && q.perm&permWrite == 0 {
			promote(data.BrokerAddrs)
		}
		r.BrokerDatas = append(r.BrokerDatas, data)
		r.QueueDatas = append(r.QueueDatas, protocol.QueueData{
			BrokerName: q.broker.name, Perm: q.perm, ReadQueueNums: q.read, WriteQueueNums: q.write, TopicSysFlag: q.sysFlag,
		})
		for _, m := range q.broker.members {
			if len(m.filterServers) > 0 {
				r.FilterServerTable[m.addr] = m.filterServers
			}
		}
	}
	if len(r.BrokerDatas) == 0 {
		return nil
	}
	r.TopicQueueMappingByBroker = e.mapping
	return r
}

// data tells a broker's addresses; local is the one of the broker of this process, which is left out when it is empty.
func (b *broker) data(local string) protocol.BrokerData {
	d := protocol.BrokerData{
		BrokerAddrs: make(map[int64]string, len(b.members)), BrokerName: b.name, Cluster: b.cluster,
		EnableActingMaster: b.actingMaster, ZoneName: b.zone,
	}
	for _, m := range b.members {
		switch {
		case m.local == nil:
			d.BrokerAddrs[m.id] = m.addr
		case local != "":
			d.BrokerAddrs[m.id] = local
		}
	}
	return d
}

// promote presents the smallest id as master when there is none.
func promote(addrs map[int64]string) {
	if _, has := addrs[masterID]; has {
		return
	}
	least, first := int64(0), true
	for id := range addrs {
		if first || id < least {
			least, first = id, false
		}
	}
	addrs[masterID] = addrs[least]
	delete(addrs, least)
}

// keepZone leaves only brokers of a zone in a route, and those without a master: consumers may read from their slaves.
func keepZone(r *protocol.TopicRouteData, zone string) {
	brokers, queues := r.BrokerDatas[:0], r.QueueDatas[:0]
	for i, b := range r.BrokerDatas { // the queues of a broker have its number
		if _, master := b.BrokerAddrs[masterID]; master && !strings.EqualFold(b.ZoneName, zone) {
			for _, addr := range b.BrokerAddrs {
				delete(r.FilterServerTable, addr)
			}
			continue
		}
		brokers, queues = append(brokers, b), append(queues, r.QueueDatas[i])
	}
	r.BrokerDatas, r.QueueDatas = brokers, queues
}

// getRoute answers 105.
func (s *Server) getRoute(c Conn, cmd *protocol.Command) *protocol.Command {
	var h protocol.GetRouteinfoRequest
	if err := h.Decode(&cmd.Ext); err != nil {
		return invalid(cmd, err)
	}
	if s.warmingUp() {
		return cmd.Reply(protocol.RespSystemError, "name server not ready")
	}
	form := routeForm{standard: h.AcceptStandardJsonOnly || quotedKeys(cmd.Version)}
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := s.table.topics[string(h.Topic)]
	if e == nil {
		return noRoute(cmd, h.Topic)
	}
	if s.local != nil {
		if _, has := e.at(s.local.Name); has {
			form.local = s.local.Address(c)
		}
	}
	if h.ZoneMode && len(strings.TrimSpace(string(h.ZoneName))) > 0 {
		return s.getZoneRoute(cmd, &h, form)
	}
	body, ok := e.cache.get(s.table.generation, form)
	if !ok {
		if r := s.route(string(h.Topic), form.local); r != nil {
			body = appendRoute(r, form.standard)
		}
		e.cache.put(encodedRoute{generation: s.table.generation, form: form, body: body})
	}
	if body == nil {
		return noRoute(cmd, h.Topic)
	}
	return s.withBody(cmd, body)
}

// getZoneRoute is getRoute for a client that stays in its zone. Such routes are written in the old form whatever the version, as RocketMQ
// does, and may be without brokers; but clients that cannot read the old form are not given it.
func (s *Server) getZoneRoute(cmd *protocol.Command, h *protocol.GetRouteinfoRequest, form routeForm) *protocol.Command {
	r := s.route(string(h.Topic), form.local)
	if r == nil {
		return noRoute(cmd, h.Topic)
	}
	keepZone(r, string(h.ZoneName))
	return s.withBody(cmd, appendRoute(r, h.AcceptStandardJsonOnly))
}

// route is table.route with the settings that matter. The caller holds the lock.
func (s *Server) route(topic, local string) *protocol.TopicRouteData {
	order := ""
	if s.settings.OrderMessageEnable {
		order, _ = s.kv.get(orderNamespace, topic)
	}
	return s.table.route(topic, order, local, s.settings.SupportActingMaster)
}

func appendRoute(r *protocol.TopicRouteData, standard bool) []byte {
	if standard {
		return protocol.AppendStandardJSON(nil, r)
	}
	return protocol.AppendJSON(nil, r)
}

// quotedKeys says whether a client of that version reads standard JSON. A negative version is one that the binary header could not hold:
// it counts as the newest.
func quotedKeys(version int32) bool { return version >= versionQuotedKeys || version < 0 }

func noRoute(cmd *protocol.Command, topic []byte) *protocol.Command {
	return cmd.Reply(protocol.RespTopicNotExist, "No topic route info in name server for the topic: "+string(topic)+faq)
}

// faq ends the remark, as tools show it.
const faq = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
