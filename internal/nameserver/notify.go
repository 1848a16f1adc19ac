package nameserver

import (
	"context"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
)

const (
	maxNotices    = 1024 // notices that wait; further ones are dropped: brokers find out by themselves, only later
	noticeTimeout = 3 * time.Second
)

// A notice tells the replicas of a broker that the smallest id among them has changed.
type notice struct {
	broker  string
	minID   int64
	minAddr string
	offline string // address of the replica that is gone
	ha      string // replication address of the one that came
	to      []string
}

// notice makes the notice for the replicas as they are now: all of them when one is gone or only one is there, else all but the new one.
func (b *broker) notice(offline, ha string) *notice {
	least := b.min()
	n := &notice{broker: b.name, minID: least.id, minAddr: least.addr, offline: offline, ha: ha}
	for _, m := range b.members {
		if m.local == nil && (offline != "" || len(b.members) == 1 || m != least) {
			n.to = append(n.to, m.addr)
		}
	}
	return n
}

// notify has a notice sent, when it is one and the settings want it.
func (s *Server) notify(n *notice) {
	if n == nil || len(n.to) == 0 {
		return
	}
	s.mu.RLock()
	wanted := s.settings.NotifyMinBrokerIDChanged
	s.mu.RUnlock()
	if !wanted {
		return
	}
	select {
	case s.notices <- n:
	default:
		s.warned.Do(func() { s.log.Warn("notice to brokers dropped: too many wait", "broker", n.broker) })
	}
}

// sendNotices sends what notify was given until ctx ends. Brokers take notices on their own port.
func (s *Server) sendNotices(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-s.notices:
			for _, addr := range n.to {
				if err := n.send(ctx, addr); err != nil && ctx.Err() == nil {
					s.warned.Do(func() { s.log.Warn("notice to broker not sent", "broker", n.broker, "address", addr, "error", err) })
				}
			}
		}
	}
}

func (n *notice) send(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	c, err := remoting.Dial(ctx, addr, remoting.ClientOptions{Timeout: noticeTimeout})
	if err != nil {
		return err
	}
	defer c.Close()
	cmd := &protocol.Command{Code: protocol.ReqNotifyMinBrokerIdChange, Version: protocol.ServerVersion}
	(&protocol.NotifyMinBrokerIdChangeRequest{
		MinBrokerId: n.minID, HasMinBrokerId: true, BrokerName: n.broker, MinBrokerAddr: n.minAddr,
		OfflineBrokerAddr: n.offline, HaBrokerAddr: n.ha,
	}).Encode(&cmd.Ext)
	_, err = c.Call(ctx, cmd) // RocketMQ sends it one-way; with an answer it is known to have arrived
	return err
}
