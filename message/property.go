package message

import (
	"bytes"
	"iter"
)

// A properties string is a run of name, 0x01, value, 0x02. The last 0x02 may be
// missing. When a name occurs twice the later one counts, as in Java, which reads
// them into a map. Entries without a name, a value or a 0x01 do not count.
const (
	nameEnd  = 0x01
	valueEnd = 0x02
)

// MaxProperties is the largest size of a properties string, in bytes: its length
// is a signed 16-bit number in a record.
const MaxProperties = 32767

// Names of well-known properties. Users may not set them, except those that say so.
const (
	PropertyKeys                = "KEYS"              // by the user: index keys, separated by a space
	PropertyTags                = "TAGS"              // by the user: the tag
	PropertyWait                = "WAIT"              // "false" = do not wait for flush and replication
	PropertyDelayLevel          = "DELAY"             // delay level 1…18 as text
	PropertyRetryTopic          = "RETRY_TOPIC"       // original topic of a retried message or dead letter
	PropertyRealTopic           = "REAL_TOPIC"        // destination while parked in another topic
	PropertyRealQueueID         = "REAL_QID"          // the queue there
	PropertyHalf                = "TRAN_MSG"          // "true" = half message of a transaction
	PropertyProducerGroup       = "PGROUP"            // group to ask about a transaction
	PropertyUniqueKey           = "UNIQ_KEY"          // unique message id
	PropertyUniqueKeyExtension  = "EXTEND_UNIQ_INFO"  // extension of the unique id
	PropertyMinOffset           = "MIN_OFFSET"        // set by the client when it pulls
	PropertyMaxOffset           = "MAX_OFFSET"        // set by the client when it pulls
	PropertyOriginMessageID     = "ORIGIN_MESSAGE_ID" // offset id of the first attempt
	PropertyReconsumeTime       = "RECONSUME_TIME"    // attempts, when the client itself re-sends
	PropertyMaxReconsumeTimes   = "MAX_RECONSUME_TIMES"
	PropertyConsumeStartTime    = "CONSUME_START_TIME"             // local to the client
	PropertyRegion              = "MSG_REGION"                     // put into every singly sent message by the broker
	PropertyTraceOn             = "TRACE_ON"                       // likewise
	PropertyCluster             = "CLUSTER"                        // likewise; tells repliers where to reply
	PropertyInnerNum            = "INNER_NUM"                      // messages in an inner batch
	PropertyInnerBase           = "INNER_BASE"                     // base offset of an inner batch
	PropertyCheckImmunityTime   = "CHECK_IMMUNITY_TIME_IN_SECONDS" // by the user: no transaction check earlier
	PropertyPreparedQueueOffset = "TRAN_PREPARED_QUEUE_OFFSET"     // first half-queue offset of a half message
	PropertyTransactionID       = "__transactionId__"
	PropertyTransactionChecks   = "TRANSACTION_CHECK_TIMES"
	PropertyInstanceID          = "INSTANCE_ID"
	PropertyCorrelationID       = "CORRELATION_ID"  // request-reply
	PropertyReplyToClient       = "REPLY_TO_CLIENT" // request-reply: client id of the requester
	PropertyTTL                 = "TTL"             // request-reply: ms
	PropertyMessageType         = "MSG_TYPE"        // "reply" for replies
	PropertyArriveTime          = "ARRIVE_TIME"
	PropertyPushReplyTime       = "PUSH_REPLY_TIME"
	PropertyPopReceipt          = "POP_CK" // receipt of a popped message; the broker removes a producer's
	PropertyPopReceiptOffset    = "POP_CK_OFFSET"
	PropertyFirstPopTime        = "1ST_POP_TIME"
	PropertyOriginGroup         = "ORIGIN_GROUP" // of a message revived into a pop retry topic
	PropertyShardingKey         = "__SHARDINGKEY"
	PropertyForwardQueueID      = "PROPERTY_FORWARD_QUEUE_ID"
	PropertyRedirect            = "REDIRECT"
	PropertyMultiDispatch       = "INNER_MULTI_DISPATCH" // by the user: light queues, comma separated
	PropertyMultiQueueOffset    = "INNER_MULTI_QUEUE_OFFSET"
	PropertyTraceContext        = "TRACE_CONTEXT"
	PropertyTimerDelaySec       = "TIMER_DELAY_SEC"  // by the user; first of the three
	PropertyTimerDelayMs        = "TIMER_DELAY_MS"   // by the user; second
	PropertyTimerDeliverMs      = "TIMER_DELIVER_MS" // by the user; last
	PropertyTimerOutMs          = "TIMER_OUT_MS"     // computed delivery time while parked
	PropertyTimerEnqueueMs      = "TIMER_ENQUEUE_MS"
	PropertyTimerDequeueMs      = "TIMER_DEQUEUE_MS"
	PropertyTimerRollTimes      = "TIMER_ROLL_TIMES"
	PropertyTimerDeleteKey      = "TIMER_DEL_UNIQKEY" // topic+uniqueKey of a message to be recalled
	PropertyTimerDelayLevel     = "TIMER_DELAY_LEVEL"
	PropertyBornHost            = "__BORNHOST"
	PropertyBornTimestamp       = "BORN_TIMESTAMP"
	PropertyDLQOriginTopic      = "DLQ_ORIGIN_TOPIC"
	PropertyDLQOriginMessageID  = "DLQ_ORIGIN_MESSAGE_ID"
	PropertyDLQReason           = "DLQ_REASON"   // ours: why a dead letter is one
	PropertyDLQTime             = "DLQ_TIME"     // ours: since when, ms
	PropertyDLQClient           = "DLQ_CLIENT"   // ours: who had it last, id and address as far as known
	PropertyDLQAttempts         = "DLQ_ATTEMPTS" // ours: how often it was consumed in vain
	PropertyLastAttempt         = "LAST_ATTEMPT" // ours: true when a failure makes the message a dead letter
	PropertyCRC32               = "__CRC32#"     // checksum of a record, always the last property
	PropertyTopicSysFlag        = "__RMQ.TRANSIENT.TOPIC_SYS_FLAG"
	PropertyGroupSysFlag        = "__RMQ.TRANSIENT.GROUP_SYS_FLAG"
)

// Property finds a property in a properties string. value aliases props; it is
// never empty when ok.
func Property(props []byte, name string) (value []byte, ok bool) {
	n := len(name)
	if n == 0 {
		return nil, false
	}
	for len(props) > n+1 {
		end := bytes.IndexByte(props, valueEnd)
		entry := props
		if end >= 0 {
			entry, props = props[:end], props[end+1:]
		} else {
			props = nil
		}
		if len(entry) > n+1 && entry[n] == nameEnd && string(entry[:n]) == name {
			value, ok = entry[n+1:], true
		}
	}
	return value, ok
}

// Properties walks the entries of a properties string in order. Names and values
// alias props.
func Properties(props []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for len(props) > 0 {
			entry := props
			if end := bytes.IndexByte(props, valueEnd); end >= 0 {
				entry, props = props[:end], props[end+1:]
			} else {
				props = nil
			}
			sep := bytes.IndexByte(entry, nameEnd)
			if sep <= 0 || sep == len(entry)-1 {
				continue
			}
			if !yield(entry[:sep], entry[sep+1:]) {
				return
			}
		}
	}
}

// AppendProperty appends an entry to a properties string: dst is that string and
// nothing else. If its last entry lacks the closing 0x02 (some clients leave it
// out) it is added first, so that the two are not glued together. An entry without
// a value is not written: readers would not see it. Neither name nor value may
// contain 0x01 or 0x02, see [ValidProperty].
func AppendProperty(dst []byte, name, value string) []byte {
	return AppendPropertyAt(dst, 0, name, value)
}

// AppendPropertyAt is AppendProperty for a properties string that begins at
// dst[start], behind something else.
func AppendPropertyAt(dst []byte, start int, name, value string) []byte {
	if value == "" || name == "" {
		return dst
	}
	if len(dst) > start && dst[len(dst)-1] != valueEnd {
		dst = append(dst, valueEnd)
	}
	dst = append(dst, name...)
	dst = append(dst, nameEnd)
	dst = append(dst, value...)
	return append(dst, valueEnd)
}

// ValidProperty tells whether a name and a value can be an entry: both not empty
// and free of the two separators.
func ValidProperty(name, value string) bool {
	return name != "" && value != "" && !hasSeparator(name) && !hasSeparator(value)
}

func hasSeparator(s string) bool {
	for i := range len(s) {
		if s[i] == nameEnd || s[i] == valueEnd {
			return true
		}
	}
	return false
}

// AppendWithout appends a properties string without the entries of one name, and
// leaves the others as they are.
func AppendWithout(dst, props []byte, name string) []byte {
	for len(props) > 0 {
		entry := props
		if end := bytes.IndexByte(props, valueEnd); end >= 0 {
			entry, props = props[:end+1], props[end+1:]
		} else {
			props = nil
		}
		if len(entry) > len(name) && entry[len(name)] == nameEnd && string(entry[:len(name)]) == name {
			continue
		}
		dst = append(dst, entry...)
	}
	return dst
}
