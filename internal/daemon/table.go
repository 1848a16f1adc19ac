package daemon

import "time"

// A Setting is one row of Table.
type Setting struct {
	Name       string
	Group      string   // heading in the documentation
	Default    string   // as a user would write it
	Unit       string   // of a bare number, or the values allowed; "" when the help says it all
	Help       string   // one or two sentences
	RocketMQ   []string // keys of broker.conf or namesrv.conf that set it
	Reloadable bool     // a running server takes a new value on SIGHUP

	binding
}

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// Table lists every setting, in the order of the documentation.
var Table = []Setting{
	{
		Name: "data", Group: "Place and names", Default: "./data", RocketMQ: []string{"storePathRootDir"},
		Help:    "Folder of everything the server keeps. One process at a time uses it.",
		binding: text(func(s *Settings) *string { return &s.Data }),
	}, {
		Name: "ready-file", Group: "Place and names",
		Help:    "File written, atomically, once sends are accepted: JSON with `pid` and the address of each listener. Removed at stop.",
		binding: optionalText(func(s *Settings) *string { return &s.ReadyFile }),
	}, {
		Name: "cluster", Group: "Place and names", Default: "DefaultCluster", RocketMQ: []string{"brokerClusterName"},
		Help:    "Name that clients and tools see as cluster.",
		binding: name(func(s *Settings) *string { return &s.Cluster }),
	}, {
		Name: "shard", Group: "Place and names", Default: "broker-a", RocketMQ: []string{"brokerName"},
		Help:    "Name that clients see as brokerName.",
		binding: name(func(s *Settings) *string { return &s.Shard }),
	},

	{
		Name: "bind", Group: "Listeners", Default: "127.0.0.1", RocketMQ: []string{"bindAddress"},
		Help:    "Address of all listeners. Anything but loopback is refused unless `allow-anonymous` is on, since clients are not authenticated.",
		binding: address(func(s *Settings) *string { return &s.Bind }),
	}, {
		Name: "allow-anonymous", Group: "Listeners", Default: "false",
		Help:    "Whoever reaches the ports may send, consume and administrate. Needed for any `bind` but loopback.",
		binding: toggle(func(s *Settings) *bool { return &s.AllowAnonymous }),
	}, {
		Name: "nameserver-port", Group: "Listeners", Default: "9876", Unit: portUnit, RocketMQ: []string{"listenPort (namesrv.conf)"},
		Help:    "Port of the name server.",
		binding: port(func(s *Settings) *int { return &s.NameserverPort }),
	}, {
		Name: "broker-port", Group: "Listeners", Default: "10911", Unit: portUnit, RocketMQ: []string{"listenPort"},
		Help:    "Port of the broker, which is the one that routes name.",
		binding: port(func(s *Settings) *int { return &s.BrokerPort }),
	}, {
		Name: "vip-port", Group: "Listeners", Default: auto, Unit: portUnit,
		Help:    "Port for clients that use the \"VIP channel\": they compute it, so `auto` is the broker's port − 2, or any free one beside a free broker port.",
		binding: vipPort(),
	}, {
		Name: "grpc-port", Group: "Listeners", Default: "8081", Unit: portUnit,
		Help:    "Port for v5 (gRPC) clients.",
		binding: port(func(s *Settings) *int { return &s.GRPCPort }),
	}, {
		Name: "http-port", Group: "Listeners", Default: "8080", Unit: portUnit,
		Help:    "Port for HTTP: `/metrics`, `/healthz`, `/readyz`.",
		binding: port(func(s *Settings) *int { return &s.HTTPPort }),
	}, {
		Name: "advertise", Group: "Listeners", Unit: "`listener=host[:port],…` or `host`", RocketMQ: []string{"brokerIP1"},
		Help: "Addresses told to clients instead of the one by which they reached us: for NAT and containers. " +
			"Listeners: nameserver, broker, vip, grpc, http; a host alone stands for all of them.",
		binding: advertise(func(s *Settings) *Advertise { return &s.Advertise }),
	}, {
		Name: "nameservers", Group: "Listeners", Unit: "`host:port;…`", RocketMQ: []string{"namesrvAddr"},
		Help:    "Other name servers to register with, Apache's or ours.",
		binding: addresses(func(s *Settings) *[]string { return &s.Nameservers }),
	},

	{
		Name: "durability", Group: "Log", Default: "sync", Unit: "`sync` or `async`", RocketMQ: []string{"flushDiskType"},
		Help:    "What an acknowledgement means. `sync`: the message is on the disk. `async`: it is in the page cache, and on the disk within `sync-interval`.",
		binding: choice(func(s *Settings) *Durability { return &s.Durability }, DurabilitySync, DurabilityAsync),
	}, {
		Name: "sync-interval", Group: "Log", Default: "200ms", RocketMQ: []string{"flushIntervalCommitLog"},
		Help:    "With `async`, the longest time until an acknowledged message is on the disk.",
		binding: duration(func(s *Settings) *time.Duration { return &s.SyncInterval }, time.Millisecond, time.Minute),
	}, {
		Name: "segment-bytes", Group: "Log", Default: "1GiB", Unit: "bytes", RocketMQ: []string{"mappedFileSizeCommitLog"},
		Help:    "Size of the log's files. Retention works on whole files.",
		binding: size(func(s *Settings) *int64 { return &s.SegmentBytes }, mib, 64*gib),
	}, {
		Name: "ring-bytes", Group: "Log", Default: "64MiB", Unit: "bytes",
		Help:    "Memory for the newest part of the log. Must be a multiple of 64 KiB.",
		binding: size(func(s *Settings) *int64 { return &s.RingBytes }, mib, 16*gib),
	}, {
		Name: "checkpoint-bytes", Group: "Log", Default: "64MiB", Unit: "bytes",
		Help:    "Log after which the views write a checkpoint. Bounds the time to recover.",
		binding: size(func(s *Settings) *int64 { return &s.CheckpointBytes }, mib, 64*gib),
	}, {
		Name: "checkpoint-interval", Group: "Log", Default: "1m",
		Help:    "Time after which the views write a checkpoint if the log has grown at all.",
		binding: duration(func(s *Settings) *time.Duration { return &s.CheckpointInterval }, time.Second, 24*time.Hour),
	},

	{
		Name: "retention-time", Group: "Retention", Default: "72h", Reloadable: true, RocketMQ: []string{"fileReservedTime"},
		Help:    "Age at which a segment of the log is dropped, at any hour of the day.",
		binding: duration(func(s *Settings) *time.Duration { return &s.RetentionTime }, time.Minute, 20*365*24*time.Hour),
	}, {
		Name: "retention-bytes", Group: "Retention", Default: "0", Unit: "bytes, 0 = no limit", Reloadable: true,
		Help:    "Size of a shard's log above which its oldest segments are dropped.",
		binding: size(func(s *Settings) *int64 { return &s.RetentionBytes }, 0, 1<<60),
	}, {
		Name: "disk-max-use", Group: "Retention", Default: "85", Unit: "percent, 100 = never", Reloadable: true,
		RocketMQ: []string{"diskSpaceCleanForciblyRatio", "cleanFileForciblyEnable"},
		Help:     "Use of the disk above which the oldest segments are dropped before their time, so that sends can go on.",
		binding:  integer(func(s *Settings) *int { return &s.DiskMaxUse }, 10, 100),
	}, {
		Name: "disk-stop-use", Group: "Retention", Default: "90", Unit: "percent", Reloadable: true,
		RocketMQ: []string{"diskSpaceWarningLevelRatio"},
		Help:     "Use of the disk above which sends are refused. Reads go on, and sends resume by themselves.",
		binding:  integer(func(s *Settings) *int { return &s.DiskStopUse }, 10, 100),
	},

	{
		Name: "auto-create-topics", Group: "Topics, groups, messages", Default: "true", Reloadable: true,
		RocketMQ: []string{"autoCreateTopicEnable"},
		Help:     "A send to an unknown topic creates it, as `TBW102` describes.",
		binding:  toggle(func(s *Settings) *bool { return &s.AutoCreateTopics }),
	}, {
		Name: "auto-create-groups", Group: "Topics, groups, messages", Default: "true", Reloadable: true,
		RocketMQ: []string{"autoCreateSubscriptionGroup"},
		Help:     "The first use of an unknown consumer group creates it.",
		binding:  toggle(func(s *Settings) *bool { return &s.AutoCreateGroups }),
	}, {
		Name: "default-topic-queues", Group: "Topics, groups, messages", Default: "8", RocketMQ: []string{"defaultTopicQueueNums"},
		Help:    "Queues of `TBW102`, and so the most that an automatically created topic gets.",
		binding: integer(func(s *Settings) *int { return &s.DefaultTopicQueues }, 1, 65536),
	}, {
		Name: "max-message-bytes", Group: "Topics, groups, messages", Default: "4MiB", Unit: "bytes", Reloadable: true,
		RocketMQ: []string{"maxMessageSize"},
		Help:     "Largest body of a message, and of a batch.",
		binding:  intSize(func(s *Settings) *int { return &s.MaxMessageBytes }, kib, 15*mib),
	}, {
		Name: "message-delay-levels", Group: "Topics, groups, messages",
		Default: "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h", Unit: "numbers with s, m, h or d",
		RocketMQ: []string{"messageDelayLevel"},
		Help:     "Delays of the levels 1, 2, 3, …; retries use them from level 3 on.",
		binding:  delayLevels(func(s *Settings) *DelayLevels { return &s.DelayLevels }),
	}, {
		Name: "broker-permission", Group: "Topics, groups, messages", Default: "6", Unit: "4 = read, 2 = write, 6 = both, 0 = none",
		Reloadable: true, RocketMQ: []string{"brokerPermission"},
		Help:    "What clients may do here. 4 drains a server: routes tell producers to go elsewhere.",
		binding: permission(func(s *Settings) *int { return &s.BrokerPermission }),
	}, {
		Name: "store-replies", Group: "Topics, groups, messages", Default: "true", Reloadable: true,
		RocketMQ: []string{"storeReplyMessageEnable"},
		Help:     "Replies to requests are stored in the topic `<cluster>_REPLY_TOPIC`, besides giving them to the client that asked.",
		binding:  toggle(func(s *Settings) *bool { return &s.StoreReplies }),
	},

	{
		Name: "transaction-timeout", Group: "Transactions", Default: "6s", Reloadable: true, RocketMQ: []string{"transactionTimeOut"},
		Help:    "Age at which the producer of an undecided half message is asked for the first time, unless the message names an age of its own.",
		binding: duration(func(s *Settings) *time.Duration { return &s.TransactionTimeout }, 0, 24*time.Hour),
	}, {
		Name: "transaction-check-interval", Group: "Transactions", Default: "30s", Reloadable: true, RocketMQ: []string{"transactionCheckInterval"},
		Help:    "Time until it is asked again. It doubles with each time, up to 16 times this.",
		binding: duration(func(s *Settings) *time.Duration { return &s.TransactionCheckInterval }, 100*time.Millisecond, 24*time.Hour),
	}, {
		Name: "transaction-check-max", Group: "Transactions", Default: "15", Reloadable: true, RocketMQ: []string{"transactionCheckMax"},
		Help:    "So often it is asked; then the message goes to `TRANS_CHECK_MAX_TIME_TOPIC`.",
		binding: integer(func(s *Settings) *int { return &s.TransactionCheckMax }, 1, 1000),
	}, {
		Name: "reject-transactions", Group: "Transactions", Default: "false", Reloadable: true, RocketMQ: []string{"rejectTransactionMessage"},
		Help:    "Half messages are refused. Those that are there can be decided.",
		binding: toggle(func(s *Settings) *bool { return &s.RejectTransactions }),
	},

	{
		Name: "max-connections", Group: "Limits", Default: "50000", Reloadable: true,
		Help:    "Connections of all ports together; further ones are closed at once.",
		binding: integer(func(s *Settings) *int { return &s.MaxConnections }, 1, 10_000_000),
	}, {
		Name: "idle-timeout", Group: "Limits", Default: "2m", RocketMQ: []string{"serverChannelMaxIdleTimeSeconds"},
		Help:    "Silence after which a connection is closed.",
		binding: duration(func(s *Settings) *time.Duration { return &s.IdleTimeout }, time.Second, 24*time.Hour),
	}, {
		Name: "max-waiters", Group: "Limits", Default: "262144", Reloadable: true,
		Help:    "Pulls that wait for messages at the same time; further ones are answered at once.",
		binding: integer(func(s *Settings) *int { return &s.MaxWaiters }, 1, 100_000_000),
	}, {
		Name: "max-replies", Group: "Limits", Default: "10000", Reloadable: true, RocketMQ: []string{"replyThreadPoolQueueCapacity"},
		Help:    "Replies on their way to the clients that asked; further ones are refused as busy.",
		binding: integer(func(s *Settings) *int { return &s.MaxReplies }, 1, 1_000_000),
	}, {
		Name: "max-pull-bytes", Group: "Limits", Default: "1MiB", Unit: "bytes", Reloadable: true,
		RocketMQ: []string{"maxTransferBytesOnMessageInMemory"},
		Help:     "Bytes of messages in the answer to a pull; the first message is given whatever its size.",
		binding:  intSize(func(s *Settings) *int { return &s.MaxPullBytes }, kib, 15*mib),
	}, {
		Name: "max-pull-messages", Group: "Limits", Default: "1024", Reloadable: true,
		RocketMQ: []string{"maxTransferCountOnMessageInMemory"},
		Help:     "Messages in the answer to a pull, whatever the client asks for.",
		binding:  integer(func(s *Settings) *int { return &s.MaxPullMessages }, 1, 1<<20),
	}, {
		Name: "cold-read-bytes-per-second", Group: "Limits", Default: "128MiB", Unit: "bytes, 0 = no limit", Reloadable: true,
		Help:    "Budget of all reads that must come from the disk, so that a consumer far behind does not slow down sends.",
		binding: size(func(s *Settings) *int64 { return &s.ColdReadBytesPerSecond }, 0, 1<<40),
	},

	{
		Name: "log-level", Group: "Operation", Default: "info", Unit: "`debug`, `info`, `warn` or `error`", Reloadable: true,
		Help:    "Least level of the lines that are logged.",
		binding: level(),
	}, {
		Name: "metrics-max-lags", Group: "Operation", Default: "1000", Reloadable: true,
		Help: "Pairs of consumer group and topic whose lag is among the metrics: those that are furthest behind. " +
			"How many are left out is a metric too.",
		binding: integer(func(s *Settings) *int { return &s.MetricsMaxLags }, 0, 1_000_000),
	}, {
		Name: "profiling", Group: "Operation", Default: "false", Reloadable: true,
		Help:    "Profiles at `/debug/pprof`, for clients on the same machine only. They show what is in memory.",
		binding: toggle(func(s *Settings) *bool { return &s.Profiling }),
	},
}

// byName finds rows of Table.
var byName = func() map[string]*Setting {
	m := make(map[string]*Setting, len(Table))
	for i := range Table {
		m[Table[i].Name] = &Table[i]
	}
	return m
}()

// Lookup returns the row of a setting.
func Lookup(name string) (Setting, bool) {
	if s, ok := byName[name]; ok {
		return *s, true
	}
	return Setting{}, false
}

// Value returns a setting of s as a user would write it.
func (t Setting) Value(s Settings) string { return t.get(&s) }

// Kind names the kind of a setting's values: "text", "bytes", "duration" and so on.
func (t Setting) Kind() string { return t.kind }

// Defaults returns the settings of a server that nobody configured.
func Defaults() Settings {
	var s Settings
	for _, t := range Table {
		if err := t.set(&s, t.Default); err != nil {
			panic("default of " + t.Name + ": " + err.Error()) // a mistake in Table, found by every test
		}
	}
	s.derive()
	return s
}
