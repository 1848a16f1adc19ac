package nameserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/time/rate"

	"github.com/metaqio/metaq/internal/protocol"
)

// A Server answers the requests that clients, tools and brokers send to a name server. All methods may be called by any goroutine.
type Server struct {
	fs      vfs.FS
	dir     string
	now     func() time.Time
	log     *slog.Logger
	limits  Limits
	expiry  time.Duration
	started time.Time
	notices chan *notice
	warned  rate.Sometimes // lines that brokers can cause at any rate

	fileMu sync.Mutex // held by who changes kv, settings and changed; guards the file

	localMu sync.Mutex // held while the local broker's topics are taken over, so that none is overwritten by an older one; before mu

	mu       sync.RWMutex // guards the following
	table    table
	kv       kvConfig
	settings Settings
	changed  map[string]string // settings that differ from Options.Settings, as they are in the file
	local    *localBroker
}

// New makes a Server and reads its file. The error is about the file: it wraps ErrFile when its content is wrong.
func New(o Options) (*Server, error) {
	o.defaults()
	s := &Server{
		fs: o.FS, dir: o.Dir, now: o.Now, log: o.Log, limits: o.Limits, expiry: o.BrokerExpiry, started: o.Now(),
		notices: make(chan *notice, maxNotices), warned: rate.Sometimes{First: 10, Interval: 10 * time.Second},
		table: newTable(), settings: *o.Settings,
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	return s, nil
}

// A handler answers the requests of one code.
type handler struct {
	serve  func(s *Server, c Conn, cmd *protocol.Command) *protocol.Command
	blocks bool // it waits for the disk
}

var handlers = map[int32]handler{
	protocol.ReqGetRouteinfoByTopic:           {serve: (*Server).getRoute},
	protocol.ReqRegisterBroker:                {serve: (*Server).registerBroker},
	protocol.ReqUnregisterBroker:              {serve: (*Server).unregisterBroker},
	protocol.ReqQueryDataVersion:              {serve: (*Server).queryDataVersion},
	protocol.ReqBrokerHeartbeat:               {serve: (*Server).brokerHeartbeat},
	protocol.ReqGetBrokerMemberGroup:          {serve: (*Server).memberGroup},
	protocol.ReqRegisterTopicInNamesrv:        {serve: (*Server).registerTopic},
	protocol.ReqGetBrokerClusterInfo:          {serve: (*Server).clusterInfo},
	protocol.ReqGetAllTopicListFromNameserver: {serve: (*Server).allTopics},
	protocol.ReqGetTopicsByCluster:            {serve: (*Server).topicsOfCluster},
	protocol.ReqGetSystemTopicListFromNs:      {serve: (*Server).systemTopics},
	protocol.ReqGetUnitTopicList:              {serve: (*Server).unitTopics},
	protocol.ReqGetHasUnitSubTopicList:        {serve: (*Server).unitSubTopics},
	protocol.ReqGetHasUnitSubUnunitTopicList:  {serve: (*Server).unitSubOnlyTopics},
	protocol.ReqDeleteTopicInNamesrv:          {serve: (*Server).deleteTopic},
	protocol.ReqWipeWritePermOfBroker:         {serve: (*Server).wipeWrite},
	protocol.ReqAddWritePermOfBroker:          {serve: (*Server).addWrite},
	protocol.ReqPutKvConfig:                   {serve: (*Server).putKV, blocks: true},
	protocol.ReqGetKvConfig:                   {serve: (*Server).getKV},
	protocol.ReqDeleteKvConfig:                {serve: (*Server).deleteKV, blocks: true},
	protocol.ReqGetKvlistByNamespace:          {serve: (*Server).listKV},
	protocol.ReqUpdateNamesrvConfig:           {serve: (*Server).updateConfig, blocks: true},
	protocol.ReqGetNamesrvConfig:              {serve: (*Server).getConfig},
}

// Codes are the request codes that Serve answers, in order.
func (s *Server) Codes() []int32 { return slices.Sorted(maps.Keys(handlers)) }

// Blocks says whether Serve waits for the disk for a request of that code. For all others it is quick.
func (s *Server) Blocks(code int32) bool { return handlers[code].blocks }

// Serve answers a request that came by c. cmd, and all it refers to, is needed until it returns; the answer refers to none of it. The
// body of the answer must not be changed. One-way requests have no answer: nil. A request of another code than Codes names is refused.
//
// Requests that one connection sent in some order should be served in that order.
func (s *Server) Serve(c Conn, cmd *protocol.Command) *protocol.Command {
	r := s.serve(c, cmd)
	if cmd.IsOneway() {
		return nil
	}
	return r
}

func (s *Server) serve(c Conn, cmd *protocol.Command) *protocol.Command {
	h, ok := handlers[cmd.Code]
	if !ok {
		return cmd.Reply(protocol.RespRequestCodeNotSupported, " request type "+strconv.Itoa(int(cmd.Code))+" not supported")
	}
	return h.serve(s, c, cmd)
}

// Closed says that a connection has ended. Brokers that registered by it are removed at once.
func (s *Server) Closed(c Conn) {
	s.mu.RLock()
	_, broker := s.table.conns[c]
	s.mu.RUnlock()
	if !broker {
		return
	}
	s.mu.Lock()
	gone := s.table.closed(c)
	s.mu.Unlock()
	s.farewell(gone, "its connection ended")
}

// SetLocal makes l the broker of this process, in place of the one before, and asks it for its topics. It may be called again, for instance
// with another id.
func (s *Server) SetLocal(l Local) {
	b := &localBroker{Local: &l, shapes: map[string]shape{}}
	s.mu.Lock()
	s.table.setLocal(s.local, b)
	s.local = b
	s.mu.Unlock()
	s.LocalChanged()
}

// LocalChanged says that any of the local broker's topics may have changed: it is asked for all of them. For single topics there is
// LocalTopicChanged, whose cost does not grow with the others.
func (s *Server) LocalChanged() {
	s.localMu.Lock()
	defer s.localMu.Unlock()
	s.mu.RLock()
	l := s.local
	s.mu.RUnlock()
	if l == nil {
		return
	}
	list, _ := l.Topics()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.local == l {
		s.table.setLocalTopics(l, list)
	}
}

// LocalTopicChanged says that the local broker has made, changed or deleted a topic. It asks topic, which returns nil if there is no such
// topic (any more), after all that was asked before is in the table: so what is newest stays.
func (s *Server) LocalTopicChanged(name string, topic func(name string) *protocol.TopicConfig) {
	s.localMu.Lock()
	defer s.localMu.Unlock()
	c := topic(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.local != nil {
		s.table.setLocalTopic(s.local, name, c)
	}
}

// Run removes brokers that have been silent for too long and sends notices, until ctx ends. It returns nil.
func (s *Server) Run(ctx context.Context) error {
	var notifier sync.WaitGroup
	defer notifier.Wait()
	notifier.Go(func() { s.sendNotices(ctx) })
	for {
		s.mu.RLock()
		period := s.settings.ScanNotActiveBrokerInterval
		s.mu.RUnlock()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(period):
		}
		s.mu.Lock()
		gone := s.table.expire(s.now())
		s.mu.Unlock()
		s.farewell(gone, "it was silent for too long")
	}
}

// farewell logs who is gone and notifies who remains.
func (s *Server) farewell(gone []departure, why string) {
	for _, d := range gone {
		s.log.Info("broker removed", "why", why, "broker", d.broker, "id", d.id, "address", d.addr)
		s.notify(d.min)
	}
}

// warmingUp says whether routes are refused because the server has just started.
func (s *Server) warmingUp() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.settings.NeedWaitForService && s.now().Sub(s.started) < s.settings.WaitForService
}

// withBody is a successful answer with a body, unless that would not fit into a frame.
func (s *Server) withBody(cmd *protocol.Command, body []byte) *protocol.Command {
	if len(body) > s.limits.MaxBodyBytes {
		return cmd.Reply(protocol.RespSystemError, fmt.Sprintf("the answer has %d bytes, more than MaxBodyBytes (%d)", len(body), s.limits.MaxBodyBytes))
	}
	r := cmd.Reply(protocol.RespSuccess, "")
	r.Body = body
	return r
}

// invalid refuses a request whose header or body is wrong.
func invalid(cmd *protocol.Command, err error) *protocol.Command {
	return cmd.Reply(protocol.RespSystemError, err.Error())
}

// errName is what is wrong about a name.
var (
	errNameMissing   = errors.New("is missing")
	errNameTooLong   = errors.New("is longer than MaxNameBytes")
	errNameCharacter = errors.New("has a character that names do not have")
)

// checkNames checks names of things: pairs of what it is and its name.
func (s *Server) checkNames(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if err := s.checkName(pairs[i+1]); err != nil {
			return fmt.Errorf("%s %.64q %w", pairs[i], pairs[i+1], err)
		}
	}
	return nil
}

func (s *Server) checkName(name string) error {
	if name == "" {
		return errNameMissing
	}
	if len(name) > s.limits.MaxNameBytes {
		return errNameTooLong
	}
	for _, r := range name {
		if r <= ' ' || r == 0x7F || r == '"' || r == '\\' || r == '\uFFFD' {
			return errNameCharacter
		}
	}
	return nil
}
