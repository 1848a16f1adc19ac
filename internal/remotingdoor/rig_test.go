package remotingdoor_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/internal/remotingdoor"
	"github.com/metaqio/metaq/internal/shard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for something that should happen at once.
const patience = 20 * time.Second

// storeHost is the address that the broker of a rig tells its clients.
var storeHost = netip.MustParseAddrPort("192.0.2.7:10911")

// rig is a broker in memory behind a server on loopback.
type rig struct {
	t      testing.TB
	fs     *vfs.MemFS
	opts   rigOptions
	b      *broker.Broker
	door   *remotingdoor.Door
	server *remoting.Server
	addr   string
	stop   func() // ends everything; may be called again
}

type rigOptions struct {
	config   func(*broker.Config)
	shard    func(*shard.Options)
	broker   func(*broker.Options)
	noLoop   bool
	settings map[string]string
	set      func(ctx context.Context, changes map[string]string, actor string) error
}

// variant is a way in which a client's frames reach the broker.
type variant struct {
	name     string
	noLoop   bool
	encoding protocol.Encoding
}

var variants = []variant{
	{"event loop, JSON", false, protocol.JSON},
	{"event loop, binary", false, protocol.Binary},
	{"goroutines, JSON", true, protocol.JSON},
	{"goroutines, binary", true, protocol.Binary},
}

// everyWay runs a test over both drivers and with both header encodings.
func everyWay(t *testing.T, o rigOptions, test func(t *testing.T, r *rig, c *client)) {
	t.Helper()
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			o := o
			o.noLoop = v.noLoop
			r := start(t, o)
			c := r.client(t)
			c.encoding = v.encoding
			test(t, r, c)
		})
	}
}

// start opens a broker and serves it.
func start(t testing.TB, o rigOptions) *rig {
	t.Helper()
	r := &rig{t: t, fs: vfs.NewMem(), opts: o}
	r.open()
	t.Cleanup(func() { r.stop() })
	return r
}

// restart closes the broker in order and opens it again on the same disk.
func (r *rig) restart() {
	r.stop()
	r.open()
}

func (r *rig) open() {
	conf := broker.Defaults()
	conf.StoreHost = func(netip.AddrPort) netip.AddrPort { return storeHost }
	if r.opts.config != nil {
		r.opts.config(&conf)
	}
	so := shard.Options{FS: r.fs, Dir: "shard", RingBytes: 4 << 20, SegmentBytes: 4 << 20, SlowSync: time.Hour, Durability: shard.Async}
	if r.opts.shard != nil {
		r.opts.shard(&so)
	}
	bo := broker.Options{Shard: so, Config: conf, Log: slog.New(slog.DiscardHandler)}
	if r.opts.broker != nil {
		r.opts.broker(&bo)
	}
	b, _, err := broker.Open(bo)
	require.NoError(r.t, err)
	r.b = b
	r.door = remotingdoor.New(remotingdoor.Options{
		Broker: b, StoreHost: func(*remoting.Session) netip.AddrPort { return storeHost }, Started: time.Now(),
		Settings: func() map[string]string { return r.opts.settings }, Set: r.opts.set,
	})
	r.server, err = remoting.New(remoting.Options{NewWorker: r.door.NewWorker, Loops: 2, NoLoop: r.opts.noLoop})
	require.NoError(r.t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(r.t, err)
	r.addr = ln.Addr().String()
	r.server.Listen("broker", ln)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = b.Run(ctx) })
	running.Go(func() { _ = r.server.Serve(ctx) })
	r.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		r.door.Close()
		require.NoError(r.t, b.Close())
	})
}

// client is a connection of a classic client.
type client struct {
	*remoting.Client
	t        testing.TB
	encoding protocol.Encoding
	version  int32
	language protocol.Language
	notices  chan string            // of groups whose members changed (code 40)
	checks   chan *protocol.Command // of transactions (code 39)
}

func (r *rig) client(t testing.TB) *client {
	t.Helper()
	c := &client{t: t, version: 513, notices: make(chan string, 1024), checks: make(chan *protocol.Command, 1024)}
	rc, err := remoting.Dial(context.Background(), r.addr, remoting.ClientOptions{
		Timeout: patience,
		OnRequest: func(_ *remoting.Client, cmd *protocol.Command) *protocol.Command {
			switch cmd.Code {
			case protocol.ReqNotifyConsumerIdsChanged:
				group, _ := cmd.Ext.Get("consumerGroup")
				c.notices <- string(group)
			case protocol.ReqCheckTransactionState:
				c.checks <- copyOf(cmd)
			}
			return nil
		},
	})
	require.NoError(t, err)
	c.Client = rc
	t.Cleanup(c.close)
	return c
}

// close ends the connection and waits until its callbacks are over.
func (c *client) close() {
	_ = c.Close()
	<-c.Done()
}

// ext is the fields of a header.
type ext map[string]any

func (c *client) command(code int32, fields ext, body []byte) *protocol.Command {
	cmd := &protocol.Command{Code: code, Version: c.version, Language: c.language, Encoding: c.encoding, Body: body}
	for k, v := range fields {
		cmd.Ext.Set(k, fmt.Sprint(v))
	}
	return cmd
}

// call sends a request and returns the answer.
func (c *client) call(code int32, fields ext, body []byte) *protocol.Command {
	c.t.Helper()
	a, err := c.Call(context.Background(), c.command(code, fields, body))
	require.NoError(c.t, err)
	require.Equal(c.t, c.encoding, a.Encoding, "the answer has the request's encoding")
	require.True(c.t, a.IsResponse())
	require.False(c.t, a.IsOneway())
	return a
}

// ok is call for what must succeed.
func (c *client) ok(code int32, fields ext, body []byte) *protocol.Command {
	c.t.Helper()
	a := c.call(code, fields, body)
	require.Equal(c.t, int32(protocol.RespSuccess), a.Code, a.Remark)
	return a
}

// later sends a request and gives the channel on which its answer comes.
func (c *client) later(code int32, fields ext, body []byte) <-chan *protocol.Command {
	answer := make(chan *protocol.Command, 1)
	c.Go(c.command(code, fields, body), func(a *protocol.Command, err error) {
		if err != nil {
			close(answer)
			return
		}
		answer <- copyOf(a)
	})
	return answer
}

// copyOf is an answer that outlives its callback.
func copyOf(a *protocol.Command) *protocol.Command {
	n := &protocol.Command{}
	if err := n.Decode(append([]byte(nil), a.Append(nil)...)); err != nil {
		panic(err)
	}
	return n
}

func (c *client) oneway(code int32, fields ext, body []byte) {
	c.t.Helper()
	require.NoError(c.t, c.Oneway(c.command(code, fields, body)))
}

// value is a field of an answer, "" when it is not there.
func value(a *protocol.Command, key string) string {
	v, _ := a.Ext.Get(key)
	return string(v)
}

// wait receives from ch, or fails.
func wait[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

// eventually waits until something is so.
func eventually(t testing.TB, is func() bool, what string) {
	t.Helper()
	require.Eventually(t, is, patience, 2*time.Millisecond, what)
}

// configure changes the configuration of the running broker.
func (r *rig) configure(change func(*broker.Config)) {
	c := *r.b.Config()
	change(&c)
	r.b.Configure(c)
}

// settableClock is a clock that stands still until it is set, in ms.
type settableClock struct{ at atomic.Int64 }

func (c *settableClock) now() int64   { return c.at.Load() }
func (c *settableClock) set(ms int64) { c.at.Store(ms) }
