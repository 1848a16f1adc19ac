// Package nameserver tells clients where topics are: it is the RocketMQ name server, for our own brokers and Apache's, and the
// registration of our broker with other name servers.
//
// # Server
//
// A Server holds the route table: which broker has which topic with how many queues, and by which addresses a broker is reached. It has no
// ports of its own; whoever reads connections gives it their requests (Serve) and tells it when a connection ends (Closed). Brokers register
// with it and repeat that every 30 s; who stays silent for 120 s, or whose connection ends, is forgotten.
//
// The broker of the same process (SetLocal) does not register. It says what changed (LocalTopicChanged) before it answers who asked for the
// change, so a route is never older than that answer. Its address is the one by which the asking client reached this process,
// found anew for each request.
//
// The KV configuration (order of ordered topics, and what administrators put there) and settings changed by an administrator are the only
// things on the disk: one small file, written anew for each change. The table itself lives in memory; brokers bring it back.
//
// # Registrar
//
// A Registrar registers a local broker with other name servers: at the start, after each change, and every 30 s; and takes it off at the end.
//
// # What it does not do
//
// Name servers do not know each other, so nothing is replicated. There are no clients' sessions, no permissions, and no controller here.
//
// # Order of registrations
//
// Brokers send registrations from several threads, and an older one can overtake a newer one. A topic remembers the data version it came
// with, and one with an older version from the same connection does not replace it. Apache's name server takes what comes last, and serves
// the old settings until the broker's next full registration.
//
// # Goroutines
//
// None but those that call. Server.Run scans for silent brokers and sends notices about changed minimum broker ids; Registrar.Run has one
// goroutine a name server.
//
// # Files
//
//   - server.go: the Server and its codes; options.go: what it is made of.
//   - table.go: brokers and topics; register.go, leave.go: how brokers come and go; local.go: the broker of this process.
//   - brokers.go: what brokers ask, and requests about single topics.
//   - route.go: routes and how they are kept encoded; cluster.go, lists.go: other answers.
//   - kv.go, file.go: the KV configuration and its file (docs/formats/nameserver.md); settings.go: settings that can be changed.
//   - notify.go: notices to brokers.
//   - registrar.go, peer.go: the Registrar.
package nameserver
