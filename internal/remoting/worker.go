package remoting

import "github.com/metaqio/metaq/internal/protocol"

// Worker serves the requests that one driver reads. Every driver has a worker of its own (Options.NewWorker), and none
// of its methods ever runs at the same time as another one of the same worker.
//
// A pass is Begin, any number of Serve, Flush. Sessions are closed between Flush and the next Begin. A panic in Begin or
// Flush concerns all sessions and ends the process.
type Worker interface {
	// Begin begins a pass. It comes before the functions given to Run and before the first Serve of the pass.
	Begin()
	// Serve takes one request. c, and everything it refers to, is valid until Serve returns. The answer, if the request
	// wants one, is appended to s.Out in this call, in Flush, or later (Post, Run). A panic closes s and nothing else.
	Serve(s *Session, c *protocol.Command)
	// Flush ends the pass: every connection that was ready has been read, and nothing is written before it returns. It
	// may append to Out of any session of the same driver, after Touched.
	Flush()
	// Closed says that the session is over: no Serve for it follows. It is called once, for every session of which Serve
	// has seen a request; s.CloseReason tells why. What it appends to s.Out is still sent if the connection allows.
	Closed(s *Session)
}

// Driver reads and writes connections and calls a Worker: an event loop for many, or a goroutine for one.
type Driver interface {
	// Wake makes a pass (Begin, Flush) soon, even if nothing is read. Any goroutine may call it; many calls may make one pass.
	Wake()
}
