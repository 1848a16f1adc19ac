package remoting

import (
	"bytes"
	"fmt"
)

// protocolKind is what the first bytes of a connection say.
type protocolKind uint8

const (
	kindUnknown protocolKind = iota // more bytes are needed
	kindClassic
	kindTLS
	kindHTTP
	kindHTTP2
	kindOther
)

func (k protocolKind) String() string {
	return [...]string{"unknown", "classic", "TLS", "HTTP/1", "HTTP/2", "unknown protocol"}[k]
}

// tlsHandshake is the type of the first record of a TLS connection.
const tlsHandshake = 0x16

var (
	http2Preface = []byte("PRI * HTTP/2.0\r\n")
	httpMethods  = [][]byte{
		[]byte("GET "), []byte("POST "), []byte("PUT "), []byte("HEAD "), []byte("DELETE "), []byte("OPTIONS "),
		[]byte("PATCH "), []byte("CONNECT "), []byte("TRACE "),
	}
)

// sniff tells the protocol of a connection by its first bytes. A frame of the classic protocol begins with the high byte
// of its length, which is far below every letter; what begins with anything else is left to the frame's own checks, so
// that it is counted and logged as malformed.
func sniff(b []byte) protocolKind {
	if len(b) == 0 {
		return kindUnknown
	}
	switch {
	case b[0] == tlsHandshake:
		return kindTLS
	case b[0] < 'A' || b[0] > 'Z':
		return kindClassic
	}
	if n := min(len(b), len(http2Preface)); bytes.Equal(b[:n], http2Preface[:n]) {
		if n == len(http2Preface) {
			return kindHTTP2
		}
		return kindUnknown
	}
	for _, m := range httpMethods {
		if n := min(len(b), len(m)); bytes.Equal(b[:n], m[:n]) {
			if n == len(m) {
				return kindHTTP
			}
			return kindUnknown
		}
	}
	return kindOther
}

// recognise looks at the first bytes of s and reports whether they are of the classic protocol. If they are not, the
// connection goes elsewhere; if it is too early to tell, b is kept.
func (c *core) recognise(s *Session, b []byte) bool {
	switch kind := sniff(b); kind {
	case kindClassic:
		s.known = true
		return true
	case kindUnknown:
		c.keep(s, b, false)
	default:
		if c.srv.serves(kind, c.secure) {
			c.io.handOver(s, kind, b)
			return false
		}
		err := fmt.Errorf("%w: %s", ErrNotServed, kind)
		c.warn(&c.srv.throttles.notServed, "closing connection: its protocol is not served here", s, err)
		c.end(s, err, false)
		c.release(s)
	}
	return false
}
