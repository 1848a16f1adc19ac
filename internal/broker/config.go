package broker

import (
	"net/netip"
	"time"
)

// Config is what an operator can set, also while the broker runs.
type Config struct {
	Cluster string
	Name    string // of the broker: the shard's name
	Region  string // property MSG_REGION
	TraceOn bool

	MaxMessageBytes  int
	AutoCreateTopics bool
	AutoCreateGroups bool
	DefaultQueues    int32 // of TBW102, so of topics made by a send
	Permission       int32 // bits 2 WRITE, 4 READ
	DelayLevels      []time.Duration
	MaxTimer         time.Duration // how far ahead a message may be timed

	TransactionTimeout  time.Duration // until a producer is asked about a half message that names no immunity
	TransactionInterval time.Duration // until it is asked again; it doubles, up to 16 times this
	TransactionChecks   int           // so often it is asked
	RejectTransactions  bool          // half messages are refused

	MaxPullBytes    int           // of one answer; at least one message is returned
	MaxPullMessages int           // of one answer, whatever the client asks for
	MaxScan         int           // index entries looked at by one pull that filters
	MaxScanBytes    int           // of records and their properties looked at by one pull that filters; one record is in any case
	MaxWaiters      int           // waiting pulls
	MaxReplies      int           // of consumers on their way to who asked
	StoreReplies    bool          // in their topic, besides giving them to who asked
	LockLease       time.Duration // of a queue lock
	ClientExpiry    time.Duration // of a client without heartbeat

	ColdReads       int   // pulls that read the disk at a time
	ColdBytesPerSec int64 // budget of reads that are not in memory; 0 = none
	RetentionTime   time.Duration
	RetentionBytes  int64                                     // 0 = none
	DiskMaxUse      float64                                   // share of the disk above which the oldest segments go
	DiskStopUse     float64                                   // share of the disk above which sends are refused
	RetentionPeriod time.Duration                             // between two looks at the disk and the age of the log
	StoreHost       func(local netip.AddrPort) netip.AddrPort // address that clients are told, for one by which a client came
}

// Defaults of a broker as RocketMQ's clients expect them.
func Defaults() Config {
	return Config{
		Cluster: "DefaultCluster", Name: "broker-a", Region: "DefaultRegion", TraceOn: true,
		MaxMessageBytes: 4 << 20, AutoCreateTopics: true, AutoCreateGroups: true, DefaultQueues: 8, Permission: 6,
		DelayLevels: DefaultDelayLevels(), MaxTimer: 40 * 24 * time.Hour,
		TransactionTimeout: 6 * time.Second, TransactionInterval: 30 * time.Second, TransactionChecks: 15,
		MaxPullBytes: 256 << 10, MaxPullMessages: 4096, MaxScan: 800, MaxScanBytes: 4 << 20, MaxWaiters: 100_000, MaxReplies: 10_000, StoreReplies: true,
		LockLease: time.Minute, ClientExpiry: 2 * time.Minute,
		ColdReads: 4, RetentionTime: 72 * time.Hour, DiskMaxUse: 0.85, DiskStopUse: 0.9, RetentionPeriod: time.Second,
		StoreHost: func(local netip.AddrPort) netip.AddrPort { return local },
	}
}

// DefaultDelayLevels are RocketMQ's 18 levels.
func DefaultDelayLevels() []time.Duration {
	d := []time.Duration{time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second}
	for m := 1; m <= 10; m++ {
		d = append(d, time.Duration(m)*time.Minute)
	}
	return append(d, 20*time.Minute, 30*time.Minute, time.Hour, 2*time.Hour)
}
