package remoting

import (
	"crypto/tls"
	"log/slog"
	"net"
	"runtime"
	"time"
)

// Options are the settings of a Server. Zero values take the defaults that are named here.
type Options struct {
	// NewWorker makes the worker of a driver; it is called once a driver, before anything is read. It must be set.
	NewWorker func(d Driver) Worker
	// Loops is the number of event loops, each a thread: default one for two processors. Linux only.
	Loops int
	// NoLoop lets a goroutine drive each connection, as it is done for TLS and on other systems in any case.
	NoLoop bool

	// TLS, when set, is how connections that begin with a TLS handshake are served; else they are closed.
	TLS *tls.Config
	// HTTP, when set, gets connections that begin with an HTTP/1 method. It owns them, and has a goroutine of its own.
	// Encrypted ones have the method ConnectionState of a tls.Conn.
	HTTP func(net.Conn)
	// HTTP2, when set, gets connections that begin with the HTTP/2 preface. It owns them, and has a goroutine of its own.
	HTTP2 func(net.Conn)

	// MaxFrame is the longest frame in bytes, as protocol.FrameSize measures it. The default is what the protocol's own
	// servers have: 16 MiB and the word that says so.
	MaxFrame int
	// MaxConns is the number of connections at a time over all listeners; further ones are closed at once. Default 100,000.
	MaxConns int
	// IdleTimeout closes a connection on which nothing was read or written for so long: default 120 s.
	IdleTimeout time.Duration
	// PartialTime closes a connection whose unfinished frame grows by less than MinRate over so long: default 30 s.
	PartialTime time.Duration
	// MinRate is the slowest speed at which a frame may arrive, in bytes a second: default 1,024.
	MinRate int
	// MaxPartial bounds the bytes of unfinished frames buffered for all connections together: default 256 MiB. Who has
	// more than 8 KiB of one when it is exceeded is closed; shorter ones are in nobody's way.
	MaxPartial int64
	// MaxOut is how many bytes of answers may wait for a peer before nothing more is read from it: default 4 MiB. At
	// sixteen times as much, which only answers to earlier requests can reach, the connection is closed.
	MaxOut int
	// MaxTotalOut is how many bytes of answers may wait for all peers together: default 512 MiB. While it is exceeded,
	// 64 KiB take the place of MaxOut.
	MaxTotalOut int64
	// MaxOutTime closes a connection that is not read because of MaxOut and takes no byte for so long: default 30 s.
	MaxOutTime time.Duration
	// HalfCloseTime is how long answers that are still owed may come after the peer has closed its side of the
	// connection: default 500 ms. Usually it is simply gone, so it is short.
	HalfCloseTime time.Duration
	// ReadPerPass bounds the bytes read from one connection in a pass, and is the size of a loop's read buffer: default 256 KiB.
	ReadPerPass int
	// PassBytes ends the reading of a pass; connections that are still ready come first in the next one. Default 4 MiB.
	PassBytes int

	// Log gets what an operator should know, throttled. Default: nothing is logged.
	Log *slog.Logger
}

// What waits for how long when a connection ends in order.
const (
	// lingerTime is how long we wait for the peer to close after our last byte. Closing at once could destroy, by a
	// reset, what the peer has not yet taken.
	lingerTime = 2 * time.Second
	// handshakeTime bounds a TLS handshake.
	handshakeTime = 10 * time.Second
)

// What a connection may have pending at most: so many times MaxOut, and so much before it is not read any more while
// all of them together have too much.
const (
	hardOutFactor = 16
	smallOut      = 64 << 10
)

// withDefaults returns o with every zero value replaced.
func (o Options) withDefaults() Options {
	setDefault(&o.Loops, max(1, runtime.GOMAXPROCS(0)/2))
	setDefault(&o.MaxFrame, 16<<20+4)
	setDefault(&o.MaxConns, 100_000)
	setDefault(&o.IdleTimeout, 120*time.Second)
	setDefault(&o.PartialTime, 30*time.Second)
	setDefault(&o.MinRate, 1024)
	setDefault(&o.MaxPartial, 256<<20)
	setDefault(&o.MaxOut, 4<<20)
	setDefault(&o.MaxTotalOut, 512<<20)
	setDefault(&o.MaxOutTime, 30*time.Second)
	setDefault(&o.HalfCloseTime, 500*time.Millisecond)
	setDefault(&o.ReadPerPass, 256<<10)
	setDefault(&o.PassBytes, 4<<20)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T int | int64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}
