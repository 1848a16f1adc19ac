package httpdoor

import (
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const profilePath = "/debug/pprof/"

// scrapes is how many requests for metrics are served at a time; they share what is collected.
const scrapes = 8

// pages are what there is, as / names it.
var pages = []struct{ Path, Help string }{
	{"/metrics", "metrics for Prometheus"},
	{"/healthz", "200 while the process lives and its shard has not failed"},
	{"/readyz", "200 while sends are accepted"},
	{transactionsPath, "transactions that nobody has decided yet, as JSON"},
	{profilePath, "profiles, for clients on this machine, when the setting profiling is on"},
}

func (d *Door) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/{$}", reading(d.index))
	mux.Handle("/metrics", reading(d.metrics().ServeHTTP))
	mux.Handle("/healthz", reading(d.health))
	mux.Handle("/readyz", reading(d.ready))
	mux.Handle(transactionsPath, reading(d.transactions))
	mux.Handle(profilePath, http.HandlerFunc(d.profiles))
	mux.HandleFunc("/", d.unknown)
	return d.safely(mux)
}

// safely answers 500 when a handler panics, and logs it.
func (d *Door) safely(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler:
				panic(p)
			default:
				d.log.Error("serving an HTTP request panicked", "path", r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				fail(w, http.StatusInternalServerError, "internal", "serving the request failed; the server's log says why")
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// reading serves GET and HEAD.
func reading(serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			fail(w, http.StatusMethodNotAllowed, "method-not-allowed", fmt.Sprintf("%s is read with GET or HEAD", r.URL.Path))
			return
		}
		serve(w, r)
	})
}

func (d *Door) health(w http.ResponseWriter, _ *http.Request) {
	writeState(w, d.opts.Broker.Shard().Failure())
}

func (d *Door) ready(w http.ResponseWriter, _ *http.Request) { writeState(w, d.opts.Broker.Ready()) }

func (d *Door) unknown(w http.ResponseWriter, r *http.Request) {
	var paths []string
	for _, p := range pages {
		paths = append(paths, p.Path)
	}
	where := ""
	if d.opts.Address != "" {
		where = ", by convention at " + d.opts.Address
	}
	fail(w, http.StatusNotFound, "not-found",
		fmt.Sprintf("there is no %.100q here; HTTP serves %s on every port%s", r.URL.Path, strings.Join(paths, ", "), where))
}

var indexPage = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>MetaQ {{.Shard}}</title></head>
<body><h1>MetaQ {{.Version}}</h1><p>Shard {{.Shard}} of cluster {{.Cluster}}.</p>
<dl>{{range .Pages}}<dt><a href="{{.Path}}">{{.Path}}</a></dt><dd>{{.Help}}</dd>{{end}}</dl>
</body></html>
`))

func (d *Door) index(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	c := d.opts.Broker.Config()
	err := indexPage.Execute(w, map[string]any{"Version": d.opts.Version, "Shard": c.Name, "Cluster": c.Cluster, "Pages": pages})
	if err != nil {
		d.log.Debug("page not written", "error", err)
	}
}

func (d *Door) metrics() http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		&collector{door: d},
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsGC, collectors.MetricsScheduler)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		ErrorLog: metricsLog{d}, MaxRequestsInFlight: scrapes, CoalesceGather: true, EnableOpenMetrics: true, Timeout: answerTime / 2,
	})
}

// metricsLog takes what goes wrong while metrics are served.
type metricsLog struct{ door *Door }

// Println implements promhttp.Logger.
func (l metricsLog) Println(v ...any) {
	l.door.log.Warn("metrics not served", "error", fmt.Sprint(v...))
}

// profiles serves profiles, which say what is in memory, to whoever could as well ask the process itself.
func (d *Door) profiles(w http.ResponseWriter, r *http.Request) {
	if !d.conf.Load().Profiling {
		fail(w, http.StatusNotFound, "not-found", "profiles are off; the setting profiling turns them on, also while the server runs (SIGHUP)")
		return
	}
	if !local(r) {
		fail(w, http.StatusForbidden, "forbidden", "profiles are only for clients on the same machine, by a loopback address or localhost")
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	switch strings.TrimPrefix(r.URL.Path, profilePath) {
	case "cmdline":
		pprof.Cmdline(w, r)
	case "profile":
		pprof.Profile(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
}

// local says whether a request comes from this machine and was meant for it: a page in a browser can send requests here
// under a name of its own that it has pointed to this machine.
func local(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return false
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	to, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && to.Unmap().IsLoopback()
}
