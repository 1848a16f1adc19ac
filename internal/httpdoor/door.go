package httpdoor

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/remoting"
)

// Limits of a connection. Whoever asks for metrics is near and asks for little; slower ones hold a connection for nothing.
const (
	headerTime  = 5 * time.Second  // until the request's header is there
	requestTime = 30 * time.Second // until all of the request is there
	answerTime  = 30 * time.Second // until the answer is taken; profiles get their own duration on top
	idleTime    = 2 * time.Minute  // between requests
	maxHeader   = 16 << 10
	endTime     = 2 * time.Second // for requests under way when the server stops
)

// Options say what a door tells about.
type Options struct {
	Broker *broker.Broker
	// Connections counts the connections of all ports.
	Connections func() remoting.Stats
	// Version is that of the program.
	Version string
	// Started is when the process began.
	Started time.Time
	// Address is where HTTP is served by convention, named in errors; empty when that port is off.
	Address string
	Config  Config
	Log     *slog.Logger
}

// Config is what may change while a door serves.
type Config struct {
	MaxLags   int  // pairs of group and topic in /metrics
	Profiling bool // /debug/pprof is served
}

// Door serves HTTP.
type Door struct {
	opts   Options
	log    *slog.Logger
	conf   atomic.Pointer[Config]
	conns  *connListener
	server *http.Server
}

// New makes a door. Connections are served once Run runs.
func New(o Options) *Door {
	d := &Door{opts: o, log: o.Log, conns: newConnListener(o.Address)}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.Configure(o.Config)
	d.server = &http.Server{
		Handler: d.routes(), ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       slog.NewLogLogger(d.log.Handler(), slog.LevelDebug), // broken requests of strangers: of no interest to an operator
	}
	return d
}

// Configure puts a configuration into force.
func (d *Door) Configure(c Config) { d.conf.Store(&c) }

// ServeConn serves a connection that begins with an HTTP/1 request. It is closed in the end, at once when Run has ended.
// It returns when the connection is taken.
func (d *Door) ServeConn(c net.Conn) { d.conns.put(c) }

// Run serves connections until ctx ends; requests under way get a moment to finish. It is called once.
func (d *Door) Run(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- d.server.Serve(d.conns) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if d.server.Shutdown(stop) != nil {
		_ = d.server.Close() // who has not taken its answer by now does not get it
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
