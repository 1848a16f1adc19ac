// Package bench loads servers of the classic protocol and measures them: any that is compatible with RocketMQ.
//
// # What it does
//
//   - [Produce] sends over some connections: in a closed loop (a message is sent when one is answered, with a window of requests
//     under way), or by a fixed schedule, where latency counts from the moment a message was due, so that a server that stalls is
//     charged for all that should have been sent meanwhile (no coordinated omission).
//   - [Consume] pulls queues and checks each message: checksums, queue, offsets, and the numbers in the bodies, which show what was
//     lost, doubled or reordered.
//   - [E2E] does both and measures from when a message was due until a consumer had it.
//
// # How it is fast
//
// It shares the machine with what it measures, so it must cost little. Frames are copies of a template with a few digits patched
// (template.go); of an answer two numbers are read (reply.go), and one in a thousand is decoded. One goroutine for each connection
// reads what is there, then sends as much as was answered, in one write; it never waits for the socket to take bytes. The clock is
// read once for a bunch of answers, and nothing is allocated for a message.
//
// # What it does not
//
// It finds no brokers and makes no topics: a [Target] says where the queues are (package admin knows). It takes no part in
// rebalancing, and drives neither transactions nor timers. It prints nothing.
//
// # Goroutines
//
// One for each connection; a second one where there is a schedule, or while a socket does not take what is to be sent; one for the
// progress. All have ended when a function returns.
//
// # Files
//
//	run.go                  what all runs share: target, measured window, progress
//	produce.go, producer.go a load of sends and one of its connections; schedule.go sends by the clock
//	consume.go, consumer.go a load of pulls and one of its connections; checks.go, sequence.go look at the messages
//	e2e.go                  both together
//	payload.go, template.go, reply.go  bodies, frames that are sent, answers
//	link.go, write_*.go     a connection that never blocks its owner
//	latency.go, clock.go, sleep_*.go   times
package bench
