// The command go runs the official Go client for classic RocketMQ through
// scenarios against a server, which METAQ_NS names.
//
//	go run . [-suite NAME] [-only a,b,…]
//
// A scenario is a function on a [rig]: names of its own, clients that end with
// it, bounded waits and checks that end it. The [suite] runs the shared ones
// side by side and those that restart the server afterwards, one at a time.
// The client's timers (heartbeats and routes every 30 seconds, rebalance every
// 20) are constants, so some scenarios take that long.
package main
