package httpdoor

import (
	"encoding/binary"
	"io"
	"net"
	"time"
)

// What a refused HTTP/2 client gets.
const (
	http2Settings = 4   // type of the frame that a server begins with
	http2GoAway   = 7   // type of the frame that ends a connection
	http11Needed  = 0xd // HTTP_1_1_REQUIRED, RFC 9113 §7

	http2Refusal = "HTTP/2 and gRPC are not served by this version of metaq: use a client of the classic (remoting) protocol; " +
		"/metrics, /healthz and /readyz are served by HTTP/1.1"

	refuseTime = 5 * time.Second
	refuseMax  = 64 << 10 // bytes of the client that are read before the connection is closed anyway
)

// RefuseHTTP2 ends a connection that begins with HTTP/2, as gRPC clients' do, in a way that shows them the reason.
func (d *Door) RefuseHTTP2(c net.Conn) {
	defer c.Close()
	d.log.Warn("HTTP/2 connection refused: gRPC is not served by this version", "remote", c.RemoteAddr().String())
	c.SetDeadline(time.Now().Add(refuseTime))
	if _, err := c.Write(appendHTTP2Refusal(nil)); err != nil {
		return
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	// Closing while something is unread would reset the connection, and take the reason away from the client.
	_, _ = io.Copy(io.Discard, io.LimitReader(c, refuseMax))
}

// appendHTTP2Refusal appends the server's empty SETTINGS, which must come first, and a GOAWAY with the reason.
func appendHTTP2Refusal(dst []byte) []byte {
	dst = append(dst, 0, 0, 0, http2Settings, 0, 0, 0, 0, 0)
	n := 8 + len(http2Refusal)
	dst = append(dst, byte(n>>16), byte(n>>8), byte(n), http2GoAway, 0, 0, 0, 0, 0)
	dst = append(dst, 0, 0, 0, 0) // no stream was processed: it is safe to try elsewhere
	dst = binary.BigEndian.AppendUint32(dst, http11Needed)
	return append(dst, http2Refusal...)
}
