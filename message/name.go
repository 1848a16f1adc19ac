package message

import "strings"

// Limits of names, in bytes.
const (
	MaxTopic     = 127 // ordinary topics
	MaxLongTopic = 255 // topics that begin with RetryPrefix or DLQPrefix
	MaxGroup     = 120
)

// Prefixes that give names a meaning.
const (
	RetryPrefix       = "%RETRY%"      // messages that a group has to consume again
	DLQPrefix         = "%DLQ%"        // messages that a group could not consume
	SystemTopicPrefix = "rmq_sys_"     // topics of the broker itself
	SystemGroupPrefix = "CID_RMQ_SYS_" // groups of the broker itself
	replyTopicSuffix  = "_REPLY_TOPIC" // replies of the request-reply pattern
)

// Topics with a meaning of their own.
const (
	TopicAutoCreate       = "TBW102" // the template of topics made by the first send
	TopicSchedule         = "SCHEDULE_TOPIC_XXXX"
	TopicTimer            = "rmq_sys_wheel_timer"
	TopicHalf             = "RMQ_SYS_TRANS_HALF_TOPIC"
	TopicHalfOp           = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
	TopicTrace            = "RMQ_SYS_TRACE_TOPIC"
	TopicTransactionStale = "TRANS_CHECK_MAX_TIME_TOPIC"
	TopicSelfTest         = "SELF_TEST_TOPIC"
	TopicOffsetMoved      = "OFFSET_MOVED_EVENT"
	TopicBenchmark        = "BenchmarkTest"
	topicCheckpoint       = "CHECKPOINT_TOPIC"
	topicRocksHalf        = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"
	topicRocksHalfOp      = "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"
)

// nameByte marks the bytes that a topic or group name may have.
var nameByte = func() (t [256]bool) {
	for _, c := range []byte("%|_-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		t[c] = true
	}
	return t
}()

// ValidTopic checks a topic name: 1 to 127 of % | _ - letters and digits; retry
// and dead-letter topics may have 255. The error is a [*NameError].
func ValidTopic(name string) error {
	limit := MaxTopic
	if strings.HasPrefix(name, RetryPrefix) || strings.HasPrefix(name, DLQPrefix) {
		limit = MaxLongTopic
	}
	return validName("topic", name, limit)
}

// ValidGroup checks the name of a producer or consumer group: 1 to 120 characters
// of the alphabet of topics. The error is a [*NameError].
func ValidGroup(name string) error { return validName("group", name, MaxGroup) }

func validName(kind, name string, limit int) error {
	if strings.TrimSpace(name) == "" {
		return &NameError{Kind: kind, Name: name, Why: "is blank"}
	}
	if len(name) > limit {
		return &NameError{Kind: kind, Name: name, Why: "is too long", Limit: limit}
	}
	for i := range len(name) {
		if !nameByte[name[i]] {
			return &NameError{Kind: kind, Name: name, Why: "has a character other than % | _ - letters and digits"}
		}
	}
	return nil
}

// RetryTopic is the topic from which a group consumes messages again.
func RetryTopic(group string) string { return RetryPrefix + group }

// DLQTopic is the topic of the messages that a group gave up.
func DLQTopic(group string) string { return DLQPrefix + group }

// ReplyTopic is the topic to which replies of a cluster are sent.
func ReplyTopic(cluster string) string { return cluster + replyTopicSuffix }

// PopRetryTopic is the retry topic of a group that pops a topic, in the naming
// that is the default of RocketMQ (version 1).
func PopRetryTopic(group, topic string) string { return RetryPrefix + group + "_" + topic }

// PopRetryTopicV2 is the same in the unambiguous naming (version 2).
func PopRetryTopicV2(group, topic string) string { return RetryPrefix + group + "+" + topic }

// IsRetryTopic tells whether a topic holds messages to be consumed again.
func IsRetryTopic(topic string) bool { return strings.HasPrefix(topic, RetryPrefix) }

// IsDLQTopic tells whether a topic holds dead letters.
func IsDLQTopic(topic string) bool { return strings.HasPrefix(topic, DLQPrefix) }

// GroupOfRetryTopic gives what follows the prefix of a retry topic: the group, or
// for the retry topic of a pop consumer the group joined with the topic.
func GroupOfRetryTopic(topic string) (group string, ok bool) {
	return strings.CutPrefix(topic, RetryPrefix)
}

// IsSystemTopic tells whether a topic belongs to the broker by its name alone. The
// topics named after a cluster or a broker cannot be told from the name.
func IsSystemTopic(topic string) bool {
	switch topic {
	case TopicAutoCreate, TopicSchedule, TopicBenchmark, TopicHalf, TopicTrace, TopicHalfOp, TopicTransactionStale,
		TopicSelfTest, TopicOffsetMoved, topicCheckpoint, topicRocksHalf, topicRocksHalfOp:
		return true
	}
	return strings.HasPrefix(topic, SystemTopicPrefix)
}

// SendForbidden tells whether clients may not send to a topic.
func SendForbidden(topic string) bool {
	switch topic {
	case TopicSchedule, TopicHalf, TopicHalfOp, TopicTransactionStale, TopicSelfTest, TopicOffsetMoved:
		return true
	}
	return false
}

// IsSystemGroup tells whether a group belongs to the broker itself.
func IsSystemGroup(group string) bool { return strings.HasPrefix(group, SystemGroupPrefix) }

// IsPredefinedGroup tells whether a group is one of those that clients and tools
// use for themselves; they are not listed as users' groups.
func IsPredefinedGroup(group string) bool {
	switch group {
	case "DEFAULT_CONSUMER", "DEFAULT_PRODUCER", "TOOLS_CONSUMER", "SCHEDULE_CONSUMER", "FILTERSRV_CONSUMER",
		"__MONITOR_CONSUMER", "CLIENT_INNER_PRODUCER", "SELF_TEST_P_GROUP", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY",
		"CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", "CID_ONSAPI_PULL", "CID_RMQ_SYS_TRANS":
		return true
	}
	return false
}
