// Package eventloop is the only place that knows raw descriptors: readiness of many connections in one thread, and
// reads and writes that never block and never tell the Go scheduler. It knows bytes, not frames; who calls it decides
// what a pass over the ready connections is (package remoting does).
//
// # What it does
//
//   - [Poll] is an epoll set, level-triggered, with one eventfd through which any goroutine can end a blocking wait.
//     It is asked without blocking first ([Poll.Ready]) and blocks only when nothing was ready ([Poll.Block]): a
//     blocking call hands the processor away, and a busy server hardly ever needs it.
//   - [Socket] is one connected stream socket in a Poll. Its reads and writes are raw system calls on a non-blocking
//     descriptor: about 0.2 µs less each than through the runtime, and the thread keeps its processor.
//   - [Detach] takes the descriptor out of a net.Conn, so that accepting stays ordinary code; [Socket.Conn] gives it
//     back as a net.Conn, for a connection that turns out to speak something else.
//
// # What it does not
//
// It has no buffers, no timers, no goroutines, and no portable twin: elsewhere a goroutine drives each connection.
// Nothing but [Poll.Wake] may be called by two goroutines at once.
//
// # Files
//
//   - poll_linux.go: the epoll set.
//   - socket_linux.go: reading, writing, closing, and the way out of and back into package net.
package eventloop
