package httpdoor

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/commitlog"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/internal/stats"
)

// kind is what a metric is.
type kind byte

const (
	counter kind = iota
	gauge
	histogramOfSeconds
)

func (k kind) String() string { return [...]string{"counter", "gauge", "histogram"}[k] }

func (k kind) value() prometheus.ValueType {
	if k == counter {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}

// family is a metric: what it is called, what it says, and how it is read: by value, by each for one with labels, or by times.
type family struct {
	heading string // in the documentation
	name    string
	help    string // one sentence
	kind    kind
	shard   bool // it is about a shard, and carries its name
	labels  []string

	value func(s *sample) float64
	each  func(s *sample, emit func(v float64, labels ...string))
	times func(s *sample) stats.Snapshot
}

// The headings.
const (
	aboutMessages    = "Sends and pulls"
	aboutTimers      = "Delayed messages and retries"
	aboutTxns        = "Transactions"
	aboutLog         = "Log, views and disk"
	aboutGroups      = "Topics, groups and clients"
	aboutConnections = "Connections"
	aboutProcess     = "Process"
)

// families are all metrics, in the order of the documentation.
var families = concat(messageFamilies(), timerFamilies(), transactionFamilies(), logFamilies(), groupFamilies(), connectionFamilies(), processFamilies())

func concat(lists ...[]family) (all []family) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// count is a counter that a broker keeps.
func count(heading, name, help string, of func(*broker.Stats) *stats.Counter) family {
	return family{heading: heading, name: name, help: help, kind: counter, shard: true, value: func(s *sample) float64 {
		return float64(of(&s.broker.Stats).Load())
	}}
}

// shardCount is a counter that a shard keeps.
func shardCount(name, help string, of func(*shard.Stats) *stats.Counter) family {
	return family{heading: aboutLog, name: name, help: help, kind: counter, shard: true, value: func(s *sample) float64 {
		return float64(of(&s.broker.Shard().Stats).Load())
	}}
}

// duration is a histogram that a shard keeps.
func duration(name, help string, of func(*shard.Stats) *stats.Histogram) family {
	return family{heading: aboutLog, name: name, help: help, kind: histogramOfSeconds, shard: true, times: func(s *sample) stats.Snapshot {
		return of(&s.broker.Shard().Stats).Snapshot()
	}}
}

// now is something that a shard or broker has at the moment.
func now(heading, name, help string, value func(s *sample) float64) family {
	return family{heading: heading, name: name, help: help, kind: gauge, shard: true, value: value}
}

// position is a place in the log.
func position(name, help string, of func(sh *shard.Shard, l *commitlog.Log) float64) family {
	return now(aboutLog, name, help, func(s *sample) float64 { return of(s.broker.Shard(), s.broker.Shard().Log()) })
}

func messageFamilies() []family {
	return []family{
		count(aboutMessages, "metaq_sent_messages_total", "Messages accepted from producers.",
			func(s *broker.Stats) *stats.Counter { return &s.Sends }),
		count(aboutMessages, "metaq_sent_bytes_total", "Bytes of accepted messages as they are stored.",
			func(s *broker.Stats) *stats.Counter { return &s.SendBytes }),
		count(aboutMessages, "metaq_refused_sends_total", "Sends that were refused or failed, for any reason.",
			func(s *broker.Stats) *stats.Counter { return &s.Refused }),
		{
			heading: aboutMessages, name: "metaq_refused_requests_total", kind: counter, shard: true, labels: []string{"reason"},
			help: "Requests of all kinds that were refused or failed, by reason; no-offset is the normal answer to a new consumer group.",
			each: func(s *sample, emit func(float64, ...string)) {
				for r := range broker.Reasons {
					emit(float64(s.broker.Stats.RefusedFor[r].Load()), broker.Reason(r).String())
				}
			},
		},
		now(aboutMessages, "metaq_sends_accepted", "1 while sends are accepted, 0 while they are refused: disk full, failed or not leading.",
			func(s *sample) float64 { return oneIf(s.broker.Ready() == nil) }),
		count(aboutMessages, "metaq_pulls_total", "Pulls asked for.", func(s *broker.Stats) *stats.Counter { return &s.Pulls }),
		count(aboutMessages, "metaq_empty_pulls_total", "Pulls answered without a message.",
			func(s *broker.Stats) *stats.Counter { return &s.EmptyPulls }),
		count(aboutMessages, "metaq_cold_pulls_total", "Pulls that had to read the disk, within the budget cold-read-bytes-per-second.",
			func(s *broker.Stats) *stats.Counter { return &s.ColdPulls }),
		count(aboutMessages, "metaq_pulled_messages_total", "Messages given to consumers.",
			func(s *broker.Stats) *stats.Counter { return &s.Pulled }),
		count(aboutMessages, "metaq_pulled_bytes_total", "Bytes of messages given to consumers.",
			func(s *broker.Stats) *stats.Counter { return &s.PulledBytes }),
		{
			heading: aboutMessages, name: "metaq_pull_duration_seconds", kind: histogramOfSeconds, shard: true,
			help:  "Time from reading a pull to its answer; pulls that wait for a message (long polling) are not in it.",
			times: func(s *sample) stats.Snapshot { return s.broker.Stats.PullTime.Snapshot() },
		},
		now(aboutMessages, "metaq_waiting_pulls", "Pulls that wait for a message.",
			func(s *sample) float64 { return float64(s.gauges.Waiting) }),
		now(aboutMessages, "metaq_waiting_pulls_limit", "Pulls that may wait at the same time (max-waiters).",
			func(s *sample) float64 { return float64(s.gauges.WaitingLimit) }),
		count(aboutMessages, "metaq_replies_total", "Replies of consumers given to the clients that asked.",
			func(s *broker.Stats) *stats.Counter { return &s.Replies }),
		now(aboutMessages, "metaq_waiting_replies", "Replies that were not yet confirmed by the clients that asked.",
			func(s *sample) float64 { return float64(s.gauges.Replies) }),
		now(aboutMessages, "metaq_waiting_replies_limit", "Replies that may be on their way at the same time (max-replies).",
			func(s *sample) float64 { return float64(s.gauges.ReplyLimit) }),
		now(aboutMessages, "metaq_pool_running", "Requests that may block (cold reads, administration) being served.",
			func(s *sample) float64 { return float64(s.gauges.PoolRunning) }),
		now(aboutMessages, "metaq_pool_waiting", "Requests that may block and wait for a goroutine.",
			func(s *sample) float64 { return float64(s.gauges.PoolWaiting) }),
		now(aboutMessages, "metaq_pool_waiting_limit", "Requests that may wait for a goroutine; further ones are refused as busy.",
			func(s *sample) float64 { return float64(s.gauges.PoolCapacity) }),
	}
}

func timerFamilies() []family {
	return []family{
		now(aboutTimers, "metaq_timers_pending", "Messages that wait for their time.",
			func(s *sample) float64 { return float64(s.gauges.Timers) }),
		count(aboutTimers, "metaq_timers_delivered_total", "Delayed messages delivered to their topics.",
			func(s *broker.Stats) *stats.Counter { return &s.Delivered }),
		{
			heading: aboutTimers, name: "metaq_timer_lateness_seconds", kind: histogramOfSeconds, shard: true,
			help:  "How much later than asked for delayed messages were delivered.",
			times: func(s *sample) stats.Snapshot { return s.broker.Stats.Late.Snapshot() },
		},
		now(aboutTimers, "metaq_timer_overdue_seconds", "How long the first message that waits for its time is overdue, 0 when none is.",
			func(s *sample) float64 { return s.gauges.TimerOverdue.Seconds() }),
		count(aboutTimers, "metaq_sent_back_messages_total", "Messages that consumers sent back to be consumed again.",
			func(s *broker.Stats) *stats.Counter { return &s.SendBacks }),
		count(aboutTimers, "metaq_dead_letters_total", "Messages that consumers sent back for the last time: they went to a dead-letter topic.",
			func(s *broker.Stats) *stats.Counter { return &s.DeadLetters }),
	}
}

func transactionFamilies() []family {
	return []family{
		now(aboutTxns, "metaq_transactions_open", "Half messages that nobody has decided yet.",
			func(s *sample) float64 { return float64(s.gauges.Transactions) }),
		now(aboutTxns, "metaq_transaction_oldest_age_seconds", "Age of the oldest half message that nobody has decided yet, 0 when there is none.",
			func(s *sample) float64 { return s.gauges.TransactionAge.Seconds() }),
		count(aboutTxns, "metaq_transaction_checks_total", "Times that a producer was asked what became of its transaction.",
			func(s *broker.Stats) *stats.Counter { return &s.Checks }),
		{
			heading: aboutTxns, name: "metaq_transactions_ended_total", kind: counter, shard: true, labels: []string{"outcome"},
			help: "Transactions that ended, by outcome; given-up ones went to TRANS_CHECK_MAX_TIME_TOPIC, resumed ones came back from there.",
			each: func(s *sample, emit func(float64, ...string)) {
				for outcome, d := range map[string]entry.Decision{
					"committed": entry.Commit, "rolled-back": entry.Rollback, "given-up": entry.GiveUp, "resumed": entry.Resume,
				} {
					emit(float64(s.broker.Stats.Ended[d].Load()), outcome)
				}
			},
		},
	}
}

func logFamilies() []family {
	type S = shard.Stats
	return []family{
		duration("metaq_append_duration_seconds", "Time to lay out, write, sync, commit and fold one group of batches.",
			func(s *S) *stats.Histogram { return &s.Append }),
		duration("metaq_sync_duration_seconds", "Time of one sync of the log.", func(s *S) *stats.Histogram { return &s.Sync }),
		duration("metaq_fold_duration_seconds", "Time to fold one committed entry into the views.", func(s *S) *stats.Histogram { return &s.Fold }),
		duration("metaq_checkpoint_duration_seconds", "Time to write one checkpoint of the views.", func(s *S) *stats.Histogram { return &s.Checkpoint }),
		shardCount("metaq_log_entries_total", "Entries committed and folded.", func(s *S) *stats.Counter { return &s.Entries }),
		shardCount("metaq_log_records_total", "Message records committed and folded.", func(s *S) *stats.Counter { return &s.Messages }),
		shardCount("metaq_log_record_bytes_total", "Bytes of message records committed and folded.", func(s *S) *stats.Counter { return &s.Bytes }),
		shardCount("metaq_log_void_records_total", "Message records that count for nothing, because their topic was deleted meanwhile.",
			func(s *S) *stats.Counter { return &s.Dropped }),
		position("metaq_log_start_position_bytes", "First position that the log still has.",
			func(_ *shard.Shard, l *commitlog.Log) float64 { return float64(l.Start()) }),
		position("metaq_log_tail_position_bytes", "End of the log.",
			func(_ *shard.Shard, l *commitlog.Log) float64 { return float64(l.Tail()) }),
		position("metaq_log_written_position_bytes", "End of what was given to the operating system.",
			func(_ *shard.Shard, l *commitlog.Log) float64 { return float64(l.Written()) }),
		position("metaq_log_synced_position_bytes", "End of what is known to be on the disk.",
			func(_ *shard.Shard, l *commitlog.Log) float64 { return float64(l.Synced()) }),
		position("metaq_log_applied_position_bytes", "End of what is folded into the views, and so visible to consumers.",
			func(sh *shard.Shard, _ *commitlog.Log) float64 { return float64(sh.Applied()) }),
		position("metaq_log_checkpointed_position_bytes", "End of what the views have on the disk: a restart folds from here.",
			func(sh *shard.Shard, _ *commitlog.Log) float64 { return float64(sh.Checkpointed()) }),
		position("metaq_log_ring_bytes", "Size of the memory that holds the newest part of the log (ring-bytes).",
			func(_ *shard.Shard, l *commitlog.Log) float64 { return float64(l.RingBytes()) }),
		now(aboutLog, "metaq_log_segments", "Segments of the log.", func(s *sample) float64 { return float64(len(s.segments)) }),
		now(aboutLog, "metaq_log_segment_bytes", "Bytes of all segments of the log.", func(s *sample) (n float64) {
			for _, seg := range s.segments {
				n += float64(seg.Size)
			}
			return n
		}),
		now(aboutLog, "metaq_log_oldest_segment_timestamp_seconds", "When the newest message of the oldest segment was stored, 0 when that is not known.",
			func(s *sample) float64 {
				if len(s.segments) == 0 {
					return 0
				}
				return unix(s.segments[0].LastTime)
			}),
		now(aboutLog, "metaq_disk_size_bytes", "Size of the disk under the shard, 0 when that is not known.",
			func(s *sample) float64 { return float64(s.diskTotal) }),
		now(aboutLog, "metaq_disk_free_bytes", "What is free of the disk under the shard.",
			func(s *sample) float64 { return float64(s.diskFree) }),
		now(aboutLog, "metaq_disk_use_ratio", "Share of the disk that is in use: above disk-max-use old segments go, above disk-stop-use sends are refused.",
			func(s *sample) float64 {
				if s.diskTotal == 0 {
					return 0
				}
				return 1 - float64(s.diskFree)/float64(s.diskTotal)
			}),
		now(aboutLog, "metaq_shard_leads", "1 while this node leads the shard.", func(s *sample) float64 { return oneIf(s.broker.Shard().Leads()) }),
		now(aboutLog, "metaq_shard_failed", "1 when the shard has failed; the process is about to end.",
			func(s *sample) float64 { return oneIf(s.broker.Shard().Failure() != nil) }),
	}
}

func groupFamilies() []family {
	number := func(name, help string, of func(g *broker.Gauges) int) family {
		return now(aboutGroups, name, help, func(s *sample) float64 { return float64(of(&s.gauges)) })
	}
	return []family{
		number("metaq_topics", "Topics, the broker's own included.", func(g *broker.Gauges) int { return g.Topics }),
		number("metaq_queues", "Queues of all topics.", func(g *broker.Gauges) int { return g.Queues }),
		number("metaq_groups", "Consumer groups, the broker's own included.", func(g *broker.Gauges) int { return g.Groups }),
		{
			heading: aboutGroups, name: "metaq_group_lag_messages", kind: gauge, shard: true, labels: []string{"group", "topic"},
			help: "Messages of a topic that a consumer group has not consumed yet, for the pairs that are furthest behind (metrics-max-lags).",
			each: func(s *sample, emit func(float64, ...string)) {
				for _, l := range s.lags {
					emit(float64(l.Messages), l.Group, l.Topic)
				}
			},
		},
		now(aboutGroups, "metaq_group_lags_left_out", "Pairs of consumer group and topic that metaq_group_lag_messages leaves out.",
			func(s *sample) float64 { return float64(s.lagsLeft) }),
		now(aboutGroups, "metaq_group_lags_limit", "Pairs of consumer group and topic that metaq_group_lag_messages may have (metrics-max-lags).",
			func(s *sample) float64 { return float64(s.door.conf.Load().MaxLags) }),
		{
			heading: aboutGroups, name: "metaq_group_members", kind: gauge, shard: true, labels: []string{"group"},
			help: "Connected members of the consumer groups that metaq_group_lag_messages has.",
			each: func(s *sample, emit func(float64, ...string)) {
				for i, l := range s.lags { // in the order of groups
					if i == 0 || s.lags[i-1].Group != l.Group {
						emit(float64(l.Members), l.Group)
					}
				}
			},
		},
		number("metaq_clients", "Clients that have sent a heartbeat and are connected.", func(g *broker.Gauges) int { return g.Clients }),
		number("metaq_consumers", "Memberships of connected clients in consumer groups.", func(g *broker.Gauges) int { return g.Consumers }),
		number("metaq_consumer_groups_online", "Consumer groups with connected members.", func(g *broker.Gauges) int { return g.ConsumerGroups }),
		number("metaq_producer_groups_online", "Producer groups with connected members.", func(g *broker.Gauges) int { return g.ProducerGroups }),
	}
}

func connectionFamilies() []family {
	listener := func(name, help string, k kind, of func(l *remoting.ListenerStats) int64) family {
		return family{
			heading: aboutConnections, name: name, help: help, kind: k, labels: []string{"listener"},
			each: func(s *sample, emit func(float64, ...string)) {
				for i := range s.conns.Listeners {
					emit(float64(of(&s.conns.Listeners[i])), s.conns.Listeners[i].Name)
				}
			},
		}
	}
	total := func(name, help string, k kind, of func(c *remoting.Stats) int64) family {
		return family{heading: aboutConnections, name: name, help: help, kind: k, value: func(s *sample) float64 { return float64(of(&s.conns)) }}
	}
	return []family{
		listener("metaq_connections", "Open connections of all protocols.", gauge, func(l *remoting.ListenerStats) int64 { return l.Open }),
		listener("metaq_connections_accepted_total", "Connections accepted.", counter, func(l *remoting.ListenerStats) int64 { return l.Accepted }),
		listener("metaq_connections_refused_total", "Connections closed at once because there were too many (max-connections).", counter,
			func(l *remoting.ListenerStats) int64 { return l.Refused }),
		{
			heading: aboutConnections, name: "metaq_connections_closed_total", kind: counter, labels: []string{"reason"},
			help: "Classic connections that have ended, by reason.",
			each: func(s *sample, emit func(float64, ...string)) {
				for reason, n := range s.conns.Closed {
					emit(float64(n), reason)
				}
			},
		},
		total("metaq_frames_received_total", "Frames received from classic clients.", counter, func(c *remoting.Stats) int64 { return c.FramesIn }),
		total("metaq_frames_sent_total", "Frames sent to classic clients.", counter, func(c *remoting.Stats) int64 { return c.FramesOut }),
		total("metaq_network_received_bytes_total", "Bytes received from classic clients.", counter, func(c *remoting.Stats) int64 { return c.BytesIn }),
		total("metaq_network_sent_bytes_total", "Bytes sent to classic clients.", counter, func(c *remoting.Stats) int64 { return c.BytesOut }),
		total("metaq_passes_total", "Passes of all drivers of connections: frames divided by passes are the batches that load makes.", counter,
			func(c *remoting.Stats) int64 { return c.Passes }),
		total("metaq_unfinished_frames_bytes", "Bytes buffered of frames whose end has not come yet.", gauge,
			func(c *remoting.Stats) int64 { return c.Partial }),
		total("metaq_pending_answers_bytes", "Bytes of answers that clients have not taken yet.", gauge,
			func(c *remoting.Stats) int64 { return c.Pending }),
	}
}

func processFamilies() []family {
	return []family{
		{
			heading: aboutProcess, name: "metaq_build_info", kind: gauge, labels: []string{"version", "go_version"},
			help: "Always 1; the labels say which program runs.",
			each: func(s *sample, emit func(float64, ...string)) { emit(1, s.door.opts.Version, runtime.Version()) },
		},
		{
			heading: aboutProcess, name: "metaq_start_timestamp_seconds", kind: gauge, help: "When the server began.",
			value: func(s *sample) float64 { return unix(s.door.opts.Started.UnixMilli()) },
		},
	}
}
