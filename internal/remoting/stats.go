package remoting

import "sync/atomic"

// Stats are counts since the server was made, except where they say otherwise.
type Stats struct {
	Listeners []ListenerStats
	BytesIn   int64 // classic connections only, as all below; after decryption
	BytesOut  int64
	FramesIn  int64
	FramesOut int64
	Passes    int64            // of all drivers
	Partial   int64            // bytes of buffers of unfinished frames, now
	Pending   int64            // bytes of answers that peers have not taken at once, now
	Closed    map[string]int64 // sessions by the reason of their end, as a short label
}

// ListenerStats are the counts of one listener, and its connections of all protocols.
type ListenerStats struct {
	Name     string
	Addr     string
	Open     int64 // now
	Accepted int64
	Refused  int64 // because of MaxConns
}

// counters are shared by all drivers of a server, which add to them once a pass.
type counters struct {
	bytesIn, bytesOut, framesIn, framesOut, passes atomic.Int64

	closed [len(reasons) + 1]atomic.Int64
}

// passCount is what one pass has to add to the counters.
type passCount struct {
	bytesIn, bytesOut, framesIn, framesOut int64
}

func (p *passCount) flush(c *counters) {
	c.passes.Add(1)
	if *p == (passCount{}) {
		return
	}
	c.bytesIn.Add(p.bytesIn)
	c.bytesOut.Add(p.bytesOut)
	c.framesIn.Add(p.framesIn)
	c.framesOut.Add(p.framesOut)
	*p = passCount{}
}

// Stats returns the counts of now. Any goroutine may call it.
func (srv *Server) Stats() Stats {
	c := srv.counters
	st := Stats{
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(),
		FramesIn: c.framesIn.Load(), FramesOut: c.framesOut.Load(),
		Passes: c.passes.Load(), Partial: srv.partial.Load(), Pending: srv.out.Load(),
		Closed: make(map[string]int64),
	}
	for i := range c.closed {
		label := otherReason
		if i < len(reasons) {
			label = reasons[i].label
		}
		if n := c.closed[i].Load(); n > 0 {
			st.Closed[label] = n
		}
	}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	for _, l := range srv.listeners {
		st.Listeners = append(st.Listeners, ListenerStats{
			Name: l.name, Addr: l.ln.Addr().String(),
			Open: l.open.Load(), Accepted: l.accepted.Load(), Refused: l.refused.Load(),
		})
	}
	return st
}
