package remoting

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

func TestSniff(t *testing.T) {
	for in, want := range map[string]protocolKind{
		"":                       kindUnknown,
		"\x00":                   kindClassic,
		"\x01\x00":               kindClassic,
		"\xff\xff\xff\xff":       kindClassic,
		"\x16\x03\x01":           kindTLS,
		"\x16":                   kindTLS,
		"G":                      kindUnknown,
		"GET":                    kindUnknown,
		"GET ":                   kindHTTP,
		"GET / HTTP/1.1\r\n":     kindHTTP,
		"GOT /":                  kindOther,
		"P":                      kindUnknown,
		"POST /":                 kindHTTP,
		"PUT /":                  kindHTTP,
		"PATCH /":                kindHTTP,
		"PR":                     kindUnknown,
		"PRI * HTTP/2.0\r\n":     kindHTTP2,
		"PRI * HTTP/2.0\r\n\r\n": kindHTTP2,
		"PRIVATE":                kindOther,
		"PROXY TCP4 1.2.3.4":     kindOther,
		"DELETE /":               kindHTTP,
		"OPTIONS *":              kindHTTP,
		"HEAD /":                 kindHTTP,
		"CONNECT a:1":            kindHTTP,
		"TRACE /":                kindHTTP,
		"SSH-2.0-x":              kindOther,
		"get /":                  kindClassic, // and malformed
	} {
		require.Equal(t, want, sniff([]byte(in)), "%q", in)
	}
}

// chanListener is a listener that gives the connections of a channel.
type chanListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *chanListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *chanListener) Close() error {
	close(l.closed)
	return nil
}

func (l *chanListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestHTTPIsHandedOver(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		l := &chanListener{conns: make(chan net.Conn, 10), closed: make(chan struct{})}
		web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, body)
		})}
		served := make(chan error, 1)
		go func() { served <- web.Serve(l) }()
		ts := start(t, d, Options{HTTP: func(c net.Conn) { l.conns <- c }})
		for _, cut := range []int{1, 2, 5, 100} {
			conn := ts.dial()
			body := strings.Repeat("x", 100_000)
			req := fmt.Sprintf("POST /path HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
			_, err := io.WriteString(conn, req[:cut])
			require.NoError(t, err)
			_, err = io.WriteString(conn, req[cut:])
			require.NoError(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, "POST /path "+body, string(got))
			conn.Close()
		}
		eventually(t, func() bool { return ts.srv.Stats().Listeners[0].Open == 0 }, "no connection is left")
		require.NoError(t, web.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
		require.Empty(t, ts.closed)
	})
}

func TestHTTP2IsHandedOver(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		got := make(chan string, 1)
		ts := start(t, d, Options{HTTP2: func(c net.Conn) {
			defer c.Close()
			b := make([]byte, 24)
			io.ReadFull(c, b)
			got <- string(b) + c.RemoteAddr().Network()
		}})
		const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
		_, err := io.WriteString(ts.dial(), preface)
		require.NoError(t, err)
		require.Equal(t, preface+"tcp", wait(t, got))
	})
}

func TestProtocolsThatAreNotServed(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		log := &lines{}
		ts := start(t, d, Options{Log: log.logger()})
		for range 3 {
			for _, hello := range []string{"GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\n", "SSH-2.0-OpenSSH\r\n"} {
				conn := ts.dial()
				_, err := io.WriteString(conn, hello)
				require.NoError(t, err)
				closedBy(t, conn)
				conn.Close()
			}
		}
		require.Equal(t, 1, log.count("protocol is not served here"))
		eventually(t, func() bool { return ts.srv.Stats().Closed["not-served"] == 9 }, "counted")
		require.Empty(t, ts.closed, "the worker has seen none of them")
	})
}

func TestTLSWithoutTLS(t *testing.T) {
	for _, d := range driverCases[:3] {
		t.Run(d.name, func(t *testing.T) {
			log := &lines{}
			ts := start(t, d, Options{Log: log.logger()})
			conn := tls.Client(ts.dial(), testTLS().client)
			require.Error(t, conn.Handshake())
			require.Equal(t, 1, log.count("TLS"))
		})
	}
}

func TestBrokenHandshake(t *testing.T) {
	d := driverCases[3]
	log := &lines{}
	ts := start(t, d, Options{Log: log.logger()})
	conn, err := net.Dial("tcp", ts.addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte{tlsHandshake, 3, 1, 0, 5, 'h', 'e', 'l', 'l', 'o'})
	require.NoError(t, err)
	eventually(t, func() bool { return log.count("TLS handshake") == 1 }, "logged")
	eventually(t, func() bool { return ts.srv.Stats().Listeners[0].Open == 0 }, "closed")
	// Encrypted and plain connections live side by side.
	plain := *ts
	plain.d = driverCases[0]
	for _, c := range []*Client{ts.client(), plain.client()} {
		_, err := c.Call(context.Background(), &protocol.Command{Code: codeEcho})
		require.NoError(t, err)
	}
}
