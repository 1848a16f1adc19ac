package nameserver

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/metaqio/metaq/internal/protocol"
)

// Conn is the connection a request came by. It is compared and used as a key, so it must be a pointer; *remoting.Session is one.
type Conn interface {
	// Remote is the peer's address.
	Remote() netip.AddrPort
	// Local is the address by which the peer reached us.
	Local() netip.AddrPort
	// Listener is the name of the listener that accepted the connection.
	Listener() string
}

// Options are what a Server is made of. Zero values take the defaults that are named here.
type Options struct {
	// FS and Dir are where the KV configuration is kept; the folder is made. Without FS it lives in memory only.
	FS  vfs.FS
	Dir string
	// Now is the clock: default time.Now.
	Now func() time.Time
	// Log gets what an operator should know. Default: nothing is logged.
	Log *slog.Logger
	// Settings are those of RocketMQ's namesrv.conf that clients notice: default DefaultSettings. Settings that an administrator
	// changed at run time are in the file and win.
	Settings *Settings
	// Limits bound the table. Zero values take the defaults.
	Limits Limits
	// BrokerExpiry is the silence after which a broker that named no time of its own is forgotten: default 120 s.
	BrokerExpiry time.Duration
}

// Limits bound what peers can make a Server keep. Who would exceed one is refused with the limit's name.
type Limits struct {
	// MaxBrokers is the number of broker addresses: default 10,000.
	MaxBrokers int
	// MaxTopicEntries is the number of topics, each counted once for every broker that has it: default 500,000.
	MaxTopicEntries int
	// MaxMappedQueues is the number of logical queues of static topics, each counted once for every broker: default 1,000,000.
	MaxMappedQueues int
	// MaxNameBytes is the length of names of brokers, clusters, topics, namespaces and keys, and of addresses: default 255.
	MaxNameBytes int
	// MaxFilterServers is the number of filter servers of one broker: default 64.
	MaxFilterServers int
	// MaxKVBytes is the size of all KV configuration, keys and values: default 4 MiB.
	MaxKVBytes int
	// MaxBodyBytes is the longest answer: default 15 MiB, which leaves room for the header in RocketMQ's 16 MiB frame.
	MaxBodyBytes int
}

// The longest and shortest time that a broker may name for its own expiry.
const (
	minBrokerExpiry     = time.Second
	maxBrokerExpiry     = 24 * time.Hour
	defaultBrokerExpiry = 120 * time.Second
	scanPeriod          = 5 * time.Second
)

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func (o *Options) defaults() {
	orDefault(&o.Log, slog.New(slog.DiscardHandler))
	orDefault(&o.BrokerExpiry, defaultBrokerExpiry)
	if o.Settings == nil {
		d := DefaultSettings()
		o.Settings = &d
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &o.Limits
	orDefault(&l.MaxBrokers, 10_000)
	orDefault(&l.MaxTopicEntries, 500_000)
	orDefault(&l.MaxMappedQueues, 1_000_000)
	orDefault(&l.MaxNameBytes, 255)
	orDefault(&l.MaxFilterServers, 64)
	orDefault(&l.MaxKVBytes, 4<<20)
	orDefault(&l.MaxBodyBytes, 15<<20)
}

// Local is the broker of this process.
type Local struct {
	Cluster  string
	Name     string
	BrokerID int64  // 0: the master, to which clients send
	Zone     string // name of its zone, may be empty
	// Address is what a client that asks over c is told as the broker's address, host:port, an IPv6 host in brackets. Empty hides
	// the broker from that client. Any goroutine; quick.
	Address func(c Conn) string
	// HAAddress is the same for replication. nil: none.
	HAAddress func(c Conn) string
	// Topics gives all topics as they are to be shown, with permissions as the broker's own permission allows, and the version of
	// that list. SetLocal, LocalChanged and the Registrar call it, and no request does.
	Topics func() ([]protocol.TopicConfig, protocol.DataVersion)
}
