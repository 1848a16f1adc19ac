package remoting

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// replayConn is a connection of which the beginning was read before. It gives that once more.
type replayConn struct {
	net.Conn
	prefix []byte // not read again yet
	once   sync.Once
	closed func()
}

// Read reads the prefix first.
func (c *replayConn) Read(b []byte) (int, error) {
	if len(c.prefix) > 0 {
		n := copy(b, c.prefix)
		c.prefix = c.prefix[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// Close closes the connection, and takes it off the count of open ones.
func (c *replayConn) Close() error {
	c.once.Do(c.closed)
	return c.Conn.Close()
}

// CloseWrite closes our side of the connection, if it has sides.
func (c *replayConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// secureConn is a replayConn that is encrypted: what http.Server and others look for is this method.
type secureConn struct {
	*replayConn
	tls *tls.Conn
}

// ConnectionState says what was agreed on with the peer.
func (c secureConn) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }

// handshake makes a TLS connection of c and drives it.
func (srv *Server) handshake(c *replayConn, l *listener) {
	ctx, cancel := context.WithTimeout(srv.running, handshakeTime)
	defer cancel()
	secure := tls.Server(c, srv.opts.TLS)
	if err := secure.HandshakeContext(ctx); err != nil {
		srv.warn(&srv.throttles.handshake, "closing connection: TLS handshake", "listener", l.name,
			"remote", c.RemoteAddr(), "error", err)
		srv.counters.closed[reasonIndex(ErrBroken)].Add(1)
		_ = c.Close()
		l.left(srv)
		return
	}
	srv.serveRoutine(secure, nil, l, true)
}
