//go:build !linux

package remoting

import "net"

// sessionSocket is what an event loop keeps with a session; there is none here.
type sessionSocket struct{}

// loop is the driver that this system does not have.
type loop struct{ core }

func newLoop(*Server) (*loop, error) { return nil, errNoLoop }

func (*loop) run() {}

// detach never succeeds: a goroutine drives every connection.
func (*Server) detach(net.Conn, *listener) (*Session, error) { return nil, errNoLoop }

func (s *Session) abandon() {}
