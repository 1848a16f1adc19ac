package remotingdoor

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
)

// NameServer is the name server of the same process.
type NameServer interface {
	// Codes are the requests that it serves.
	Codes() []int32
	// Blocks says whether a request may need the disk.
	Blocks(code int32) bool
	// Serve answers a request; c is valid only meanwhile.
	Serve(s *remoting.Session, c *protocol.Command) *protocol.Command
	// Closed says that a connection has ended.
	Closed(s *remoting.Session)
}

// Options say what a door serves.
type Options struct {
	Broker     *broker.Broker
	NameServer NameServer // may be nil
	// StoreHost is the broker's address as the client of a connection can reach it.
	StoreHost func(s *remoting.Session) netip.AddrPort
	// Settings are the broker's settings by their RocketMQ names (GET_BROKER_CONFIG).
	Settings func() map[string]string
	// Set changes settings by their RocketMQ names, all or none (UPDATE_BROKER_CONFIG).
	Set func(ctx context.Context, changes map[string]string, actor string) error
	// Started is when the process began.
	Started time.Time
	Log     *slog.Logger
}

// Door serves the classic protocol.
type Door struct {
	opts   Options
	b      *broker.Broker
	table  map[int32]handler
	ctx    context.Context // ends with the door
	cancel context.CancelFunc
}

// coldTime bounds a cold request, as RocketMQ's fast failure does for administration (×2: clients wait 5 s).
const coldTime = 10 * time.Second

// New makes a door.
func New(o Options) *Door {
	d := &Door{opts: o, b: o.Broker}
	if d.opts.Log == nil {
		d.opts.Log = slog.New(slog.DiscardHandler)
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.table = d.handlers()
	return d
}

// Close ends what cold requests are still doing.
func (d *Door) Close() { d.cancel() }

// handler serves one request code, in one of the two ways.
type handler struct {
	hot  func(w *worker, s *remoting.Session, c *protocol.Command)
	cold func(ctx context.Context, r *request) *protocol.Command
}

// request is a cold request: a copy of what came, and whom to answer.
type request struct {
	*protocol.Command
	d *Door
	s *remoting.Session
	// client is the connection's client, if it has sent a heartbeat.
	client *broker.Client
	at     time.Time // when it came
}

// actor names who asked, for entries of administrators.
func (r *request) actor() string { return actorOf(r.client, r.s) }

func actorOf(client *broker.Client, s *remoting.Session) string {
	if client != nil {
		return client.ID + " at " + s.Remote().String()
	}
	return s.Remote().String()
}

// ok is the answer of a request that succeeded.
func (r *request) ok() *protocol.Command { return r.Reply(protocol.RespSuccess, "") }

// fail is the answer of a request that did not.
func (r *request) fail(err error) *protocol.Command { return r.Reply(r.d.outcome(err)) }

// json is a successful answer with a body.
func (r *request) json(body []byte) *protocol.Command {
	a := r.ok()
	a.Body = body
	return a
}
