package daemon

import (
	"log/slog"
	"time"
)

// Durability says what an acknowledgement of a send means.
type Durability string

// The two durabilities.
const (
	DurabilitySync  Durability = "sync"  // on the disk
	DurabilityAsync Durability = "async" // in the page cache; on the disk within Settings.SyncInterval
)

// Off is the value of a port that is not opened.
const Off = -1

// Settings is the configuration of a server, read and checked. It is a plain value: copies are independent, except that maps and
// slices in it must not be changed. The meaning, unit and default of each field stand in Table.
type Settings struct {
	// Where and who.
	Data      string
	ReadyFile string
	Cluster   string
	Shard     string

	// Listeners. A port is 1 to 65535, 0 for any free one, or Off.
	Bind           string // an IP address
	AllowAnonymous bool
	NameserverPort int
	BrokerPort     int
	VIPPort        int
	GRPCPort       int
	HTTPPort       int
	Advertise      Advertise
	Nameservers    []string // host:port of other name servers

	// The log.
	Durability         Durability
	SyncInterval       time.Duration
	SegmentBytes       int64
	RingBytes          int64
	CheckpointBytes    int64
	CheckpointInterval time.Duration

	// Retention.
	RetentionTime  time.Duration
	RetentionBytes int64 // 0 = no limit
	DiskMaxUse     int   // percent
	DiskStopUse    int   // percent

	// Topics, groups, messages.
	AutoCreateTopics   bool
	AutoCreateGroups   bool
	DefaultTopicQueues int
	MaxMessageBytes    int
	DelayLevels        DelayLevels
	BrokerPermission   int // bits: 4 read, 2 write
	StoreReplies       bool

	// Transactions.
	TransactionTimeout       time.Duration
	TransactionCheckInterval time.Duration
	TransactionCheckMax      int
	RejectTransactions       bool

	// Limits.
	MaxConnections         int
	IdleTimeout            time.Duration
	MaxWaiters             int
	MaxReplies             int
	MaxPullBytes           int
	MaxPullMessages        int
	ColdReadBytesPerSecond int64 // 0 = no limit

	// Operation.
	LogLevel       slog.Level
	MetricsMaxLags int
	Profiling      bool

	vipAuto bool // VIPPort follows BrokerPort
}

// Port returns the port of a listener by its name, Off for a name that does not exist.
func (s Settings) Port(listener string) int {
	switch listener {
	case ListenerNameserver:
		return s.NameserverPort
	case ListenerBroker:
		return s.BrokerPort
	case ListenerVIP:
		return s.VIPPort
	case ListenerGRPC:
		return s.GRPCPort
	case ListenerHTTP:
		return s.HTTPPort
	}
	return Off
}

// derive fills what follows from other settings.
func (s *Settings) derive() {
	if !s.vipAuto {
		return
	}
	switch {
	case s.BrokerPort <= 0:
		s.VIPPort = s.BrokerPort // any free port, or off
	case s.BrokerPort <= 2:
		s.VIPPort = Off // no port number is two below
	default:
		s.VIPPort = s.BrokerPort - 2
	}
}
