// Package admin administrates servers of the classic protocol, ours and Apache RocketMQ's, over the network.
//
// # What it does
//
// A [Client] is given one address: a name server, or a broker (each of our ports is both). From there it finds the brokers and asks
// each of them what is asked of it: topics, consumer groups, offsets, messages, statistics, configuration. What the brokers answer is
// put together, and sorted.
//
// An answer that says no is an [*Error]: RocketMQ's name of the code, its number, and the server's remark.
//
// One thing the classic protocol has no word for: the list of open transactions is asked for by HTTP, which our servers
// speak on the same ports.
//
// # What it does not
//
// It keeps nothing but connections, decides nothing, prints nothing, and sends no heartbeats: to the server it is neither a producer
// nor a consumer, and no group is rebalanced because of it. It does not try again.
//
// # Goroutines
//
// Those of its connections (package remoting). All methods may be called by any goroutine.
//
// # Files
//
//	client.go    connections and calls; errors.go
//	cluster.go   brokers and routes
//	topics.go, groups.go, offsets.go, messages.go, transactions.go, runtime.go    what it can do
package admin
