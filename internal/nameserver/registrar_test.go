package nameserver

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
)

// A served is a name server behind a listener, whose connections a remoting.Server drives.
type served struct {
	*Server
	mu   sync.Mutex
	seen chan int32 // codes of the requests, after they were answered
	answ func(cmd *protocol.Command) *protocol.Command
}

func (s *served) Begin() {}
func (s *served) Flush() {}

func (s *served) Serve(session *remoting.Session, cmd *protocol.Command) {
	s.mu.Lock()
	special := s.answ
	s.mu.Unlock()
	var r *protocol.Command
	if special != nil {
		r = special(cmd)
	}
	if r == nil {
		r = s.Server.Serve(session, cmd)
	}
	session.Out = r.Append(session.Out)
	s.seen <- cmd.Code
}

func (s *served) Closed(session *remoting.Session) { s.Server.Closed(session) }

// serve has a name server listen until the test ends, or stop is called.
func serve(t *testing.T, ln net.Listener) (s *served, stop func()) {
	t.Helper()
	s = &served{Server: newServer(t, Options{}), seen: make(chan int32, 1000)}
	srv, err := remoting.New(remoting.Options{NewWorker: func(remoting.Driver) remoting.Worker { return s }, NoLoop: true})
	require.NoError(t, err)
	srv.Listen("nameserver", ln)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(ctx) // ends with ctx
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return s, stop
}

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	return ln
}

// await waits for a request.
func await(t *testing.T, s *served, code int32) {
	t.Helper()
	for {
		select {
		case got := <-s.seen:
			if got == code {
				return
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no request %d", code)
		}
	}
}

func registrar(t *testing.T, h *here, o RegistrarOptions) *Registrar {
	t.Helper()
	o.Broker = h.local()
	if o.AddressOf == nil {
		o.AddressOf = func(local netip.AddrPort) string { return netip.AddrPortFrom(local.Addr(), 10911).String() }
	}
	r, err := NewRegistrar(o)
	require.NoError(t, err)
	return r
}

func TestTwoNameserversOneRegistrar(t *testing.T) {
	lnA, lnB := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
	b, stopB := serve(t, lnB)
	a, _ := serve(t, lnA)
	success(t, kvCall(a.Server, protocol.ReqPutKvConfig, "ORDER_TOPIC_CONFIG", "T", "local:4"))

	h := &here{}
	h.set(topicWith("T", 6, 4), topicWith("TBW102", 7, 8))
	orders := make(chan string, 10)
	r := registrar(t, h, RegistrarOptions{
		Nameservers: []string{lnA.Addr().String(), lnB.Addr().String(), lnA.Addr().String()},
		Ordered:     func(ns string, order map[string]string) { orders <- fmt.Sprint(ns, order) },
	})
	require.Len(t, r.peers, 2)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	c := connAt("127.0.0.1")
	for _, s := range []*served{a, b} {
		await(t, s, protocol.ReqRegisterBroker)
		require.Equal(t, map[int64]string{0: "127.0.0.1:10911"}, routeOf(t, s.Server, c, "T").BrokerDatas[0].BrokerAddrs)
		require.EqualValues(t, 7, routeOf(t, s.Server, c, "TBW102").QueueDatas[0].Perm)
	}
	require.Equal(t, lnA.Addr().String()+"map[T:local:4]", <-orders)

	// A change reaches both.
	h.set(topicWith("T", 6, 8), topicWith("New", 6, 1))
	r.Changed()
	for _, s := range []*served{a, b} {
		await(t, s, protocol.ReqRegisterBroker)
		require.EqualValues(t, 8, routeOf(t, s.Server, c, "T").QueueDatas[0].ReadQueueNums)
		require.NotNil(t, routeOf(t, s.Server, c, "New"))
	}

	// One goes down and comes back without its table.
	stopB()
	b, _ = serve(t, listen(t, lnB.Addr().String()))
	await(t, b, protocol.ReqRegisterBroker)
	require.NotNil(t, routeOf(t, b.Server, c, "New"))

	cancel()
	require.NoError(t, <-done)
	for _, s := range []*served{a, b} {
		await(t, s, protocol.ReqUnregisterBroker)
		require.Nil(t, routeOf(t, s.Server, c, "T"))
	}
}

func TestRegistrarSkipsItsOwnProcess(t *testing.T) {
	ln := listen(t, "127.0.0.1:0")
	s, _ := serve(t, ln)
	h := &here{}
	h.set(topicWith("T", 6, 4), topicWith("U", 6, 4))
	s.SetLocal(h.local())
	refused := make(chan int32, 1)
	s.answ = func(cmd *protocol.Command) *protocol.Command {
		if cmd.Code == protocol.ReqRegisterBroker {
			r := s.Server.Serve(connAt("127.0.0.1"), cmd)
			refused <- r.Code
			return r
		}
		return nil
	}
	r := registrar(t, h, RegistrarOptions{Nameservers: []string{ln.Addr().String()}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	require.EqualValues(t, protocol.RespSuccess, <-refused)
	cancel()
	require.NoError(t, <-done)
	require.NotNil(t, routeOf(t, s.Server, connAt("127.0.0.1"), "T"), "unregistering at the end does not remove it either")
	require.Equal(t, 1, s.table.members)
}

// pipeConn is an end of a net.Pipe with an address.
type pipeConn struct{ net.Conn }

func (pipeConn) LocalAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:5555"))
}
func (pipeConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.2:9876"))
}

// TestRegistrarKeepsTime has a registrar talk to a scripted name server for some minutes.
func TestRegistrarKeepsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var log []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, what)
		}
		take := func() []string {
			mu.Lock()
			defer mu.Unlock()
			defer func() { log = nil }()
			return log
		}
		var up atomic.Bool
		h := &here{}
		h.set(topicWith("T", 6, 4), topicWith("U", 6, 4))
		r := registrar(t, h, RegistrarOptions{Nameservers: []string{"ns:9876"}})
		r.dial = func(ctx context.Context, addr string) (*remoting.Client, error) {
			return remoting.Dial(ctx, addr, remoting.ClientOptions{Dial: func(context.Context, string, string) (net.Conn, error) {
				if !up.Load() {
					note("dial")
					return nil, net.ErrClosed
				}
				ours, theirs := net.Pipe()
				go answer(t, theirs, note)
				return pipeConn{ours}, nil
			}})
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		pass(8 * time.Second) // tries at 0, 1, 3 and 7 s, more or less
		synctest.Wait()
		require.InDelta(t, 4, len(take()), 1)
		up.Store(true)
		pass(15 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"103"}, take(), "it got through")
		pass(5 * time.Second)
		r.Changed()
		r.Changed()
		pass(70 * time.Second)
		cancel()
		require.NoError(t, <-done)
		counts := map[string]int{}
		for _, what := range take() {
			counts[what]++
		}
		require.Equal(t, map[string]int{"103": 1 + 2, "104": 1}, counts) // changed, 30 and 60 s later
	})
}

// answer is a name server that agrees to everything.
func answer(t *testing.T, c net.Conn, note func(string)) {
	defer c.Close()
	buf := make([]byte, 0, 1<<20)
	for {
		n, err := c.Read(buf[len(buf):cap(buf)])
		if err != nil {
			return
		}
		buf = buf[:len(buf)+n]
		size, err := protocol.FrameSize(buf, cap(buf))
		if err != nil || size == 0 || size > len(buf) {
			continue
		}
		var cmd protocol.Command
		if cmd.Decode(buf[:size]) != nil {
			return
		}
		note(fmt.Sprint(cmd.Code))
		if _, err := c.Write(cmd.Reply(protocol.RespSuccess, "").Append(nil)); err != nil {
			return
		}
		buf = append(buf[:0], buf[size:]...)
	}
}

func TestRegistrarOptions(t *testing.T) {
	_, err := NewRegistrar(RegistrarOptions{})
	require.ErrorContains(t, err, "AddressOf and Broker.Topics must be set")
	h := &here{}
	address := func(netip.AddrPort) string { return "a:1" }
	_, err = NewRegistrar(RegistrarOptions{Broker: h.local(), AddressOf: address, Nameservers: []string{"host"}})
	require.ErrorContains(t, err, `name server "host"`)
	r, err := NewRegistrar(RegistrarOptions{Broker: h.local(), AddressOf: address, Period: time.Second})
	require.NoError(t, err)
	require.Equal(t, minPeriod, r.opts.Period)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, r.Run(ctx))
}

func TestMinBrokerIDNotices(t *testing.T) {
	settings := DefaultSettings()
	settings.NotifyMinBrokerIDChanged = true
	s := newServer(t, Options{Settings: &settings})
	got := make(chan protocol.NotifyMinBrokerIdChangeRequest, 10)
	replica := func() (string, *fakeConn) {
		ln := listen(t, "127.0.0.1:0")
		broker, _ := serve(t, ln)
		broker.answ = func(cmd *protocol.Command) *protocol.Command {
			var h protocol.NotifyMinBrokerIdChangeRequest
			if cmd.Code != protocol.ReqNotifyMinBrokerIdChange || h.Decode(&cmd.Ext) != nil {
				return cmd.Reply(protocol.RespSystemError, "unexpected")
			}
			got <- h
			return cmd.Reply(protocol.RespSuccess, "")
		}
		return ln.Addr().String(), connAt("127.0.0.1")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	slave, slaveConn := replica()
	master, masterConn := replica()
	success(t, node{name: "a", id: 1, addr: slave}.register(s, slaveConn, topicsOf("T", "U")))
	success(t, node{name: "a", addr: master}.register(s, masterConn, topicsOf("T", "U")))
	require.Equal(t, protocol.NotifyMinBrokerIdChangeRequest{
		MinBrokerId: 0, HasMinBrokerId: true, BrokerName: "a", MinBrokerAddr: master, HaBrokerAddr: "ha-" + master,
	}, <-got, "the slave is told")
	s.Closed(masterConn)
	require.Equal(t, protocol.NotifyMinBrokerIdChangeRequest{
		MinBrokerId: 1, HasMinBrokerId: true, BrokerName: "a", MinBrokerAddr: slave, OfflineBrokerAddr: master,
	}, <-got)
	cancel()
	require.NoError(t, <-done)
	require.Empty(t, got)
}
