// Package httpdoor serves what a node says over HTTP/1: metrics, health and readiness, a page that names them, and
// profiles when a setting allows that. It decides nothing about messages.
//
// Every port of the server speaks HTTP: the classic protocol's server recognises it by the first bytes and gives such
// connections to [Door.ServeConn], which puts them before the http.Server of [Door.Run]. HTTP/2, by which v5 clients
// come, is told politely that it is not served ([Door.RefuseHTTP2]).
//
//	/           what there is
//	/metrics    Prometheus text or OpenMetrics
//	/healthz    200 while the process lives and its shard has not failed, else 503 with the reason
//	/readyz     200 while sends are accepted, else 503 with the reason
//	/transactions  transactions that nobody has decided yet; group, after (a position) and limit choose
//	/debug/pprof/…  profiles, for clients on the same machine, with the setting profiling
//
// Errors are JSON: {"error":"not-found","message":"…"}.
//
// Metrics are counted elsewhere, in plain atomics (package stats and its users). families.go has the one table of them:
// name, help, unit and how to read each; the collector reads all at once for a scrape, and docs/metrics.md is generated
// from the same table.
//
// Goroutines: those of http.Server, one a connection, none when nobody asks.
//
// Files: door.go (life), listener.go (connections from elsewhere), http2.go, routes.go, transactions.go and answer.go (what is served),
// collector.go, families.go and reference.go (metrics).
package httpdoor
