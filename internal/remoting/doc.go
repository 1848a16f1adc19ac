// Package remoting carries the classic protocol: frames, sessions, a server and a client. It knows what a command is,
// not what any command means.
//
// # Server
//
// A [Server] accepts connections of any number of named listeners, tells their protocols apart by the first bytes, and
// has the classic ones driven. A driver reads bytes, makes commands of them, gives them to its [Worker], and writes the
// answers that the worker appends to [Session].Out. There are two kinds:
//
//   - an event loop (Linux): one thread for many connections. A pass reads every ready connection once into one buffer
//     and serves the frames in place, calls Worker.Flush once, and then writes once to each connection that has answers.
//     An idle connection keeps neither stack nor buffer.
//   - a goroutine for each connection: for TLS, for other systems, and for Options.NoLoop.
//
// Both call the same code in the same order, and the same tests run over both. A connection goes to a loop as soon as it
// is accepted, and is recognised there: a silent one costs nothing but a [Session]. TLS, HTTP/1 and HTTP/2 leave the
// loop again as ordinary connections, with what was read of them read once more.
//
// Any goroutine can send to a session ([Session.Post], [Session.Notify], [Session.Request]), run something on its driver
// ([Session.Run]) or close it. That travels through the driver's mailbox, which wakes the driver once for many pieces.
//
// # Protection
//
// Every limit is a field of [Options]: frames, connections, idle time, the speed at which an unfinished frame must grow,
// bytes buffered for unfinished frames, bytes of answers that a peer does not take. A peer with too many of the latter
// is not read until it has taken half; then it is closed. Lines in the log that peers can cause are throttled.
//
// # Client
//
// [Client] is one connection: calls that wait, calls that call back, one-way requests, and the server's own requests.
// Calls made together leave in one write. It does not reconnect.
//
// # Goroutines
//
// One for each listener, one (locked to a thread) for each loop, one for each connection outside of the loops with one
// more while something is written or posted. Of a client: one that reads, one more while something is written.
//
// # Files
//
//   - worker.go, options.go, errors.go, stats.go: what a user of the server sees besides session.go and server.go.
//   - core.go, input.go, sniff.go: what all drivers do, without I/O. mailbox.go, buffers.go, calls.go, throttle.go: its parts.
//   - loop_linux.go (with loop_other.go), routine.go: the two drivers. replay.go: connections that leave.
//   - client.go, client_read.go, client_calls.go: the client.
package remoting
