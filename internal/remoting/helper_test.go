package remoting

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/metaqio/metaq/internal/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for something that should happen at once.
const patience = 60 * time.Second

// Request codes of the test worker.
const (
	codeEcho  int32 = 1000 + iota // answered in Serve, with the body
	codeFlush                     // answered in Flush
	codeLater                     // answered by Post from another goroutine, when the test says so
	codePanic                     // panics
	codeBig                       // answered with a body of as many bytes as the remark has, times 1,024
	codeNever                     // not answered
)

// testWorker serves the codes above.
type testWorker struct {
	*testShared
	inPass bool
	flush  []flushAnswer
}

type flushAnswer struct {
	s *Session
	c *protocol.Command
}

// testShared is what the workers of a server share with the test.
type testShared struct {
	t        testing.TB
	later    chan func()                           // posts the answer of a codeLater
	closed   chan *Session                         // sessions given to Closed
	serve    func(s *Session, c *protocol.Command) // instead of the codes above
	onFlush  func(w *testWorker)
	onClosed func(s *Session)
	mu       sync.Mutex
	seen     []*Session
	bodies   [][]byte
}

func (w *testWorker) Begin() {
	require.False(w.t, w.inPass, "Begin in a pass")
	w.inPass = true
}

func (w *testWorker) Serve(s *Session, c *protocol.Command) {
	require.True(w.t, w.inPass, "Serve outside of a pass")
	if s.Attachment == nil {
		s.Attachment = s
		w.mu.Lock()
		w.seen = append(w.seen, s)
		w.mu.Unlock()
	}
	if w.serve != nil {
		w.serve(s, c)
		return
	}
	reply := c.Reply(0, "")
	reply.Body = append([]byte(nil), c.Body...)
	if c.IsOneway() {
		w.mu.Lock()
		w.bodies = append(w.bodies, reply.Body)
		w.mu.Unlock()
		return
	}
	switch c.Code {
	case codeEcho:
		s.Out = reply.Append(s.Out)
	case codeFlush:
		w.flush = append(w.flush, flushAnswer{s, reply})
	case codeLater:
		w.later <- func() { s.Post(reply.Append(nil)) }
	case codePanic:
		s.Out = append(s.Out, "half an answer"...)
		panic("test")
	case codeBig:
		reply.Body = make([]byte, len(c.Remark)<<10)
		s.Out = reply.Append(s.Out)
	}
}

func (w *testWorker) Flush() {
	require.True(w.t, w.inPass, "Flush outside of a pass")
	w.inPass = false
	if w.onFlush != nil {
		w.onFlush(w)
	}
	for _, f := range w.flush {
		f.s.Touched()
		f.s.Out = f.c.Append(f.s.Out)
	}
	w.flush = w.flush[:0]
}

func (w *testWorker) Closed(s *Session) {
	if w.onClosed != nil {
		w.onClosed(s)
	}
	w.closed <- s
}

// driverCase is one way to drive connections.
type driverCase struct {
	name  string
	setup func(*Options)
	tls   bool
}

var driverCases = []driverCase{
	{"loop", func(o *Options) { o.Loops = 1 }, false},
	{"two loops", func(o *Options) { o.Loops = 2 }, false},
	{"goroutines", func(o *Options) { o.NoLoop = true }, false},
	{"tls", func(o *Options) { o.TLS = testTLS().server }, true},
}

// looped says that an event loop drives the connections, which only Linux has.
func (d driverCase) looped() bool { return !d.tls && d.name != "goroutines" }

// overDrivers runs a test once for each way to drive connections that this system has.
func overDrivers(t *testing.T, test func(t *testing.T, d driverCase)) {
	for _, d := range driverCases {
		if d.looped() && runtime.GOOS != "linux" {
			continue
		}
		t.Run(d.name, func(t *testing.T) { test(t, d) })
	}
}

// testServer is a running server with its worker.
type testServer struct {
	*testShared
	srv  *Server
	addr string
	d    driverCase
	done chan error
}

// start starts a server; it is shut down when the test ends.
func start(t testing.TB, d driverCase, o Options, change ...func(*testShared)) *testServer {
	shared := &testShared{t: t, later: make(chan func(), 1<<16), closed: make(chan *Session, 1<<16)}
	for _, f := range change {
		f(shared)
	}
	d.setup(&o)
	if o.NewWorker == nil {
		o.NewWorker = func(Driver) Worker { return &testWorker{testShared: shared} }
	}
	srv, err := New(o)
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv.Listen("broker", ln)
	ts := &testServer{testShared: shared, srv: srv, addr: ln.Addr().String(), d: d, done: make(chan error, 1)}
	go func() { ts.done <- srv.Serve(context.Background()) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		srv.Shutdown(ctx)
		require.NoError(t, <-ts.done)
	})
	return ts
}

// dial makes a bare connection.
func (ts *testServer) dial() net.Conn {
	conn, err := net.Dial("tcp", ts.addr)
	require.NoError(ts.t, err)
	ts.t.Cleanup(func() { conn.Close() })
	require.NoError(ts.t, conn.SetDeadline(time.Now().Add(patience)))
	if ts.d.tls {
		return tls.Client(conn, testTLS().client)
	}
	return conn
}

// client makes a client.
func (ts *testServer) client(change ...func(*ClientOptions)) *Client {
	o := ClientOptions{Timeout: patience}
	if ts.d.tls {
		o.TLS = testTLS().client
	}
	for _, f := range change {
		f(&o)
	}
	c, err := Dial(context.Background(), ts.addr, o)
	require.NoError(ts.t, err)
	ts.t.Cleanup(func() {
		c.Close()
		<-c.Done()
	})
	return c
}

// request is a frame.
func request(code, opaque int32, body []byte) []byte {
	c := protocol.Command{Code: code, Opaque: opaque, Body: body}
	return c.Append(nil)
}

// frameReader reads answers from a bare connection.
type frameReader struct {
	conn net.Conn
	buf  []byte
	used int
}

// next returns the next frame; it is valid until the next call.
func (r *frameReader) next() (*protocol.Command, error) {
	r.buf = append(r.buf[:0], r.buf[r.used:]...)
	r.used = 0
	for {
		n, err := protocol.FrameSize(r.buf, 1<<30)
		if err != nil {
			return nil, err
		}
		if n > 0 && n <= len(r.buf) {
			r.used = n
			var c protocol.Command
			return &c, c.Decode(r.buf[:n])
		}
		at := len(r.buf)
		r.buf = append(r.buf, make([]byte, 64<<10)...)
		n, err = r.conn.Read(r.buf[at:])
		r.buf = r.buf[:at+n]
		if n == 0 && err != nil {
			return nil, err
		}
	}
}

// wait receives from ch.
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

// eventually polls f until it is true.
func eventually(t testing.TB, f func() bool, msg string) {
	t.Helper()
	require.Eventually(t, f, patience, time.Millisecond, msg)
}

type tlsConfigs struct{ server, client *tls.Config }

var testTLS = sync.OnceValue(func() tlsConfigs {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"test"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return tlsConfigs{
		server: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		client: &tls.Config{RootCAs: roots, ServerName: "test"},
	}
})
