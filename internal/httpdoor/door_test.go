package httpdoor

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/internal/stats"
)

func openBroker(t *testing.T, fs vfs.FS) *broker.Broker {
	t.Helper()
	b, _, err := broker.Open(broker.Options{Shard: shard.Options{FS: fs, Dir: "a", SegmentBytes: 1 << 20, RingBytes: 1 << 20}, Config: broker.Defaults()})
	require.NoError(t, err)
	return b
}

func newDoor(b *broker.Broker, c Config) *Door {
	return New(Options{
		Broker: b, Version: "9.9.9", Started: time.Unix(1_700_000_000, 0), Address: "127.0.0.1:8080", Config: c,
		Connections: func() remoting.Stats {
			return remoting.Stats{
				Listeners: []remoting.ListenerStats{{Name: "broker", Open: 3, Accepted: 5, Refused: 1}},
				FramesIn:  7, Closed: map[string]int64{"idle": 2},
			}
		},
	})
}

// ask sends a request to a door without a network.
func ask(d *Door, method, path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	d.server.Handler.ServeHTTP(w, r)
	return w
}

func errorOf(t *testing.T, w *httptest.ResponseRecorder) problem {
	t.Helper()
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	var p problem
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p), w.Body.String())
	require.NotEmpty(t, p.Message)
	return p
}

func TestRoutes(t *testing.T) {
	b := openBroker(t, vfs.NewMem())
	defer b.Close()
	d := newDoor(b, Config{MaxLags: 10})
	for _, path := range []string{"/", "/metrics", "/healthz", "/readyz", "/transactions"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			require.Equal(t, http.StatusOK, ask(d, method, path).Code, "%s %s", method, path)
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch} {
			w := ask(d, method, path)
			require.Equal(t, http.StatusMethodNotAllowed, w.Code, "%s %s", method, path)
			require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
			require.Equal(t, "method-not-allowed", errorOf(t, w).Error)
		}
	}
	for _, path := range []string{"/nothing", "/metrics/", "/api/topics", "/healthz/x"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			w := ask(d, method, path)
			require.Equal(t, http.StatusNotFound, w.Code, path)
			p := errorOf(t, w)
			require.Equal(t, "not-found", p.Error)
			require.Contains(t, p.Message, path)
			require.Contains(t, p.Message, "127.0.0.1:8080")
			require.Contains(t, p.Message, "/metrics")
		}
	}
	index := ask(d, http.MethodGet, "/").Body.String()
	for _, p := range pages {
		require.Contains(t, index, p.Path)
	}
	require.Contains(t, index, "broker-a")
	require.Contains(t, index, "9.9.9")
}

func TestHealthAndReadiness(t *testing.T) {
	fail := errorfs.ErrInjected
	var broken atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind == errorfs.OpFileSyncData {
			return fail
		}
		return nil
	}))
	b := openBroker(t, fs)
	defer b.Close()
	d := newDoor(b, Config{})
	require.JSONEq(t, `{"status":"ok"}`, ask(d, http.MethodGet, "/healthz").Body.String())
	require.JSONEq(t, `{"status":"ok"}`, ask(d, http.MethodGet, "/readyz").Body.String())

	broken.Store(true)
	require.Error(t, b.PutTopic(t.Context(), entry.Topic{Name: "T", ReadQueues: 1, WriteQueues: 1, Perm: 6}, "test"))
	for _, path := range []string{"/healthz", "/readyz"} {
		w := ask(d, http.MethodGet, path)
		require.Equal(t, http.StatusServiceUnavailable, w.Code, path)
		var s state
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &s))
		require.Equal(t, "unavailable", s.Status)
		require.Contains(t, s.Reason, ".log", "the file is named: %s", s.Reason)
	}
	text := ask(d, http.MethodGet, "/metrics").Body.String()
	require.Contains(t, text, `metaq_shard_failed{shard="broker-a"} 1`)
	require.Contains(t, text, `metaq_sends_accepted{shard="broker-a"} 0`)
}

func TestMetrics(t *testing.T) {
	b := openBroker(t, vfs.NewMem())
	defer b.Close()
	require.NoError(t, b.PutTopic(t.Context(), entry.Topic{Name: "T", ReadQueues: 2, WriteQueues: 2, Perm: 6}, "test"))
	for range 3 {
		_, _, err := b.ColdSend(t.Context(), &broker.SendRequest{Topic: []byte("T"), Body: []byte("x"), MaxReconsume: -1})
		require.NoError(t, err)
	}
	for _, g := range []string{"G", "H"} {
		require.NoError(t, b.EnsureGroups(t.Context(), []string{g}))
		require.NoError(t, b.ResetOffset(t.Context(), g, "T", []entry.QueueAt{{Queue: 0, Offset: 1}}, false, "test"))
	}
	b.Stats.Sends.Add(3)
	b.Stats.RefusedFor[broker.Busy].Add(2)
	b.Stats.PullTime.ObserveN(3*time.Microsecond, 4)
	d := newDoor(b, Config{MaxLags: 1})
	w := ask(d, http.MethodGet, "/metrics")
	require.Equal(t, http.StatusOK, w.Code)
	text := w.Body.String()
	for _, line := range []string{
		`metaq_sent_messages_total{shard="broker-a"} 3`,
		`metaq_refused_requests_total{reason="busy",shard="broker-a"} 2`,
		`metaq_sends_accepted{shard="broker-a"} 1`,
		`metaq_pull_duration_seconds_bucket{shard="broker-a",le="2e-06"} 0`,
		`metaq_pull_duration_seconds_bucket{shard="broker-a",le="4e-06"} 4`,
		`metaq_pull_duration_seconds_count{shard="broker-a"} 4`,
		`metaq_log_records_total{shard="broker-a"} 3`,
		`metaq_group_lag_messages{group="G",shard="broker-a",topic="T"} 2`,
		`metaq_group_members{group="G",shard="broker-a"} 0`,
		`metaq_group_lags_left_out{shard="broker-a"} 1`,
		`metaq_group_lags_limit{shard="broker-a"} 1`,
		`metaq_log_segments{shard="broker-a"} 1`,
		`metaq_log_ring_bytes{shard="broker-a"} 1.048576e+06`,
		`metaq_connections{listener="broker"} 3`,
		`metaq_connections_closed_total{reason="idle"} 2`,
		`metaq_frames_received_total 7`,
		`metaq_start_timestamp_seconds 1.7e+09`,
		`metaq_shard_leads{shard="broker-a"} 1`,
	} {
		require.Contains(t, text, line+"\n")
	}
	for _, f := range families {
		require.Contains(t, text, "# HELP "+f.name+" ")
		require.Contains(t, text, "# TYPE "+f.name+" "+f.kind.String())
	}
	require.Contains(t, text, "\ngo_goroutines ")
	require.Contains(t, text, "\nprocess_")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)

	d.Configure(Config{MaxLags: 5})
	text = ask(d, http.MethodGet, "/metrics").Body.String()
	require.Contains(t, text, `metaq_group_lag_messages{group="H",shard="broker-a",topic="T"} 2`)

	w = ask(d, http.MethodGet, "/metrics", func(r *http.Request) { r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0") })
	require.Contains(t, w.Header().Get("Content-Type"), "openmetrics")
	require.True(t, strings.HasSuffix(w.Body.String(), "# EOF\n"))
}

func TestHistogramsAreCumulativeSeconds(t *testing.T) {
	var h stats.Histogram
	h.Observe(0)
	h.Observe(3 * time.Millisecond)
	h.Observe(time.Hour)
	m := histogram(prometheus.NewDesc("x", "x", nil, nil), h.Snapshot())
	require.NotNil(t, m)
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(fixed{m}))
	got, err := reg.Gather()
	require.NoError(t, err)
	buckets := got[0].GetMetric()[0].GetHistogram()
	require.EqualValues(t, 3, buckets.GetSampleCount())
	require.InDelta(t, 3600.003, buckets.GetSampleSum(), 1e-9)
	last := buckets.GetBucket()[len(buckets.GetBucket())-1]
	require.EqualValues(t, 2, last.GetCumulativeCount(), "an hour is above every bound")
	require.InDelta(t, 16.777216, last.GetUpperBound(), 1e-9)
}

type fixed struct{ m prometheus.Metric }

func (f fixed) Describe(ch chan<- *prometheus.Desc) { ch <- f.m.Desc() }
func (f fixed) Collect(ch chan<- prometheus.Metric) { ch <- f.m }

func TestProfilesAreOffAndThenOnlyForThisMachine(t *testing.T) {
	b := openBroker(t, vfs.NewMem())
	defer b.Close()
	d := newDoor(b, Config{})
	from := func(remote, host string) func(*http.Request) {
		return func(r *http.Request) { r.RemoteAddr, r.Host = remote, host }
	}
	here := from("127.0.0.1:5000", "127.0.0.1:8080")
	require.Equal(t, http.StatusNotFound, ask(d, http.MethodGet, "/debug/pprof/", here).Code)
	d.Configure(Config{Profiling: true})
	for _, c := range []struct {
		remote, host string
		code         int
	}{
		{"127.0.0.1:5000", "127.0.0.1:8080", http.StatusOK},
		{"127.0.0.1:5000", "localhost:8080", http.StatusOK},
		{"[::1]:5000", "[::1]:8080", http.StatusOK},
		{"[::ffff:127.0.0.1]:5000", "LOCALHOST", http.StatusOK},
		{"10.1.2.3:5000", "127.0.0.1:8080", http.StatusForbidden},
		{"127.0.0.1:5000", "evil.example:8080", http.StatusForbidden},
		{"127.0.0.1:5000", "10.0.0.1", http.StatusForbidden},
		{"nonsense", "localhost", http.StatusForbidden},
	} {
		w := ask(d, http.MethodGet, "/debug/pprof/", from(c.remote, c.host))
		require.Equal(t, c.code, w.Code, "%+v", c)
		if c.code != http.StatusOK {
			require.Equal(t, "forbidden", errorOf(t, w).Error)
		}
	}
	require.Contains(t, ask(d, http.MethodGet, "/debug/pprof/goroutine?debug=1", here).Body.String(), "goroutine profile")
	require.Equal(t, http.StatusOK, ask(d, http.MethodGet, "/debug/pprof/cmdline", here).Code)
}

func TestPanicsAreAnswered(t *testing.T) {
	b := openBroker(t, vfs.NewMem())
	defer b.Close()
	var log strings.Builder
	d := New(Options{Broker: b, Log: slog.New(slog.NewTextHandler(&log, nil)), Connections: func() remoting.Stats { return remoting.Stats{} }})
	w := httptest.NewRecorder()
	d.safely(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oops") })).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/x", nil))
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.Equal(t, "internal", errorOf(t, w).Error)
	require.NotContains(t, w.Body.String(), "oops")
	require.Contains(t, log.String(), "oops")
	require.PanicsWithValue(t, http.ErrAbortHandler, func() {
		d.safely(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/x", nil))
	})
}

// pair is a connection of which the door serves one end.
func pair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	client, err = net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	server, err = ln.Accept()
	require.NoError(t, err)
	require.NoError(t, client.SetDeadline(time.Now().Add(20*time.Second)))
	t.Cleanup(func() { client.Close() })
	return client, server
}

func TestConnectionsOfOthersAreServedUntilTheEnd(t *testing.T) {
	b := openBroker(t, vfs.NewMem())
	defer b.Close()
	d := newDoor(b, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	client, server := pair(t)
	d.ServeConn(server)
	r := bufio.NewReader(client)
	for range 3 { // one connection, several requests
		fmt.Fprintf(client, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		res, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.JSONEq(t, `{"status":"ok"}`, string(body))
	}
	cancel()
	require.NoError(t, <-done)
	_, err := client.Read(make([]byte, 1))
	require.Error(t, err, "idle connections are closed")
	client, server = pair(t)
	d.ServeConn(server)
	_, err = client.Read(make([]byte, 1))
	require.Error(t, err, "later ones at once")
	require.Equal(t, "tcp 127.0.0.1:8080", d.conns.Addr().Network()+" "+d.conns.Addr().String())
}

func TestHTTP2IsRefusedWithTheReason(t *testing.T) {
	b := openBroker(t, vfs.NewMem())
	defer b.Close()
	d := newDoor(b, Config{})
	client, server := pair(t)
	done := make(chan struct{})
	go func() { defer close(done); d.RefuseHTTP2(server) }()
	_, err := io.WriteString(client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	require.NoError(t, err)
	all, err := io.ReadAll(client)
	require.NoError(t, err)
	require.Equal(t, "\x00\x00\x00\x04\x00\x00\x00\x00\x00", string(all[:9]), "an empty SETTINGS frame first")
	away := all[9:]
	n := int(away[0])<<16 | int(away[1])<<8 | int(away[2])
	require.Len(t, away, 9+n)
	require.EqualValues(t, 7, away[3])
	require.EqualValues(t, 13, binary.BigEndian.Uint32(away[13:]), "HTTP_1_1_REQUIRED")
	require.Contains(t, string(away[17:]), "gRPC are not served")
	require.NoError(t, client.Close())
	<-done
}

func TestHTTP2ClientsOfGoSeeTheReason(t *testing.T) {
	b := openBroker(t, vfs.NewMem())
	defer b.Close()
	d := newDoor(b, Config{})
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	c := http.Client{Transport: &http.Transport{
		Protocols: &protocols,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			client, server := pair(t)
			go d.RefuseHTTP2(server)
			return client, nil
		},
	}, Timeout: 20 * time.Second}
	_, err := c.Get("http://x/metrics")
	require.Error(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
}
