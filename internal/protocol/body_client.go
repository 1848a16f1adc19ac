package protocol

import (
	"slices"
	"strings"

	"github.com/metaqio/metaq/message"
)

// ConsumeType tells how a group consumes. Empty is what could not be read.
type ConsumeType string

// The ways of consuming.
const (
	ConsumeActively  ConsumeType = "CONSUME_ACTIVELY"  // pull
	ConsumePassively ConsumeType = "CONSUME_PASSIVELY" // push
	ConsumePop       ConsumeType = "CONSUME_POP"
)

func (ConsumeType) ordinals() []string {
	return []string{string(ConsumeActively), string(ConsumePassively), string(ConsumePop)}
}

// MessageModel tells who of a group gets a message. Empty is what could not be read.
type MessageModel string

// The models.
const (
	Broadcasting MessageModel = "BROADCASTING" // every member
	Clustering   MessageModel = "CLUSTERING"   // one member
)

func (MessageModel) ordinals() []string { return []string{string(Broadcasting), string(Clustering)} }

// ConsumeFromWhere tells where a new group begins. Empty is what could not be read.
type ConsumeFromWhere string

// The beginnings. Three deprecated ones are read too.
const (
	FromLastOffset  ConsumeFromWhere = "CONSUME_FROM_LAST_OFFSET"
	FromFirstOffset ConsumeFromWhere = "CONSUME_FROM_FIRST_OFFSET"
	FromTimestamp   ConsumeFromWhere = "CONSUME_FROM_TIMESTAMP"
)

func (ConsumeFromWhere) ordinals() []string {
	return []string{
		string(FromLastOffset), "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST", "CONSUME_FROM_MIN_OFFSET",
		"CONSUME_FROM_MAX_OFFSET", string(FromFirstOffset), string(FromTimestamp),
	}
}

// Expression types of a subscription.
const (
	ExpressionTag   = "TAG"
	ExpressionSQL92 = "SQL92"

	// SubscribeAll is the expression that matches every message.
	SubscribeAll = "*"
)

// HeartbeatData is the body of 34. Read it with [ParseHeartbeat].
type HeartbeatData struct {
	ClientID             string         `json:"clientID"`
	ConsumerDataSet      []ConsumerData `json:"consumerDataSet"`
	HeartbeatFingerprint int32          `json:"heartbeatFingerprint"` // 0: a heartbeat of version 1, always complete
	ProducerDataSet      []ProducerData `json:"producerDataSet"`
	WithoutSub           bool           `json:"withoutSub"` // subscriptions are as in the last complete one
}

// ProducerData is a producer group of a client.
type ProducerData struct {
	GroupName string `json:"groupName"`
}

// ConsumerData is a consumer group of a client.
type ConsumerData struct {
	ConsumeFromWhere    ConsumeFromWhere   `json:"consumeFromWhere,omitempty"`
	ConsumeType         ConsumeType        `json:"consumeType,omitempty"`
	GroupName           string             `json:"groupName"`
	MessageModel        MessageModel       `json:"messageModel,omitempty"`
	SubscriptionDataSet []SubscriptionData `json:"subscriptionDataSet"`
	UnitMode            bool               `json:"unitMode"`
}

// ParseHeartbeat reads a heartbeat of any client: what ParseJSON takes, and then each
// subscription as [SubscriptionData.Normalize] leaves it. The error is a [*BodyError].
func ParseHeartbeat(b []byte) (*HeartbeatData, error) {
	h := new(HeartbeatData)
	if err := ParseJSON(b, h); err != nil {
		return nil, err
	}
	for i := range h.ConsumerDataSet {
		for j := range h.ConsumerDataSet[i].SubscriptionDataSet {
			h.ConsumerDataSet[i].SubscriptionDataSet[j].Normalize()
		}
	}
	return h, nil
}

// SubscriptionData is what a group wants of a topic.
type SubscriptionData struct {
	ClassFilterMode   bool     `json:"classFilterMode"` // obsolete
	CodeSet           []int32  `json:"codeSet"`         // the tags' hashes
	ExpressionType    string   `json:"expressionType,omitempty"`
	FilterClassSource string   `json:"filterClassSource,omitempty"` // obsolete
	SubString         string   `json:"subString"`                   // the expression
	SubVersion        int64    `json:"subVersion"`                  // ms or ns since 1970, grows with each change
	TagsSet           []string `json:"tagsSet"`
	Topic             string   `json:"topic"`
}

// IsTag tells whether messages are chosen by tag.
func (s *SubscriptionData) IsTag() bool {
	return s.ExpressionType == "" || strings.EqualFold(s.ExpressionType, ExpressionTag)
}

// Normalize makes a client's subscription trustworthy: the expression type is TAG when
// it is missing, and the codes are computed here, because the Go client computes others
// for tags beyond ASCII.
func (s *SubscriptionData) Normalize() {
	if s.IsTag() {
		s.ExpressionType = ExpressionTag
	}
	if !s.IsTag() || s.ClassFilterMode {
		return
	}
	if len(s.TagsSet) == 0 {
		s.TagsSet = splitTags(s.SubString)
	}
	s.CodeSet = tagCodes(s.TagsSet)
}

// ParseSubscription makes a subscription of an expression: tags separated by ||, or *
// (also when empty), or a SQL92 expression, which is not looked into. The error is a
// [*FieldError].
func ParseSubscription(topic, expression, expressionType string, version int64) (*SubscriptionData, error) {
	s := &SubscriptionData{Topic: topic, SubString: expression, SubVersion: version, ExpressionType: expressionType}
	if !s.IsTag() {
		if strings.TrimSpace(expression) == "" {
			return nil, &FieldError{Field: "subscription", Why: "is empty, which " + expressionType + " does not allow"}
		}
		s.TagsSet, s.CodeSet = []string{}, []int32{}
		return s, nil
	}
	s.ExpressionType = ExpressionTag
	if expression == "" {
		s.SubString = SubscribeAll
	} else if strings.Trim(expression, "|") == "" && len(expression)%2 == 0 {
		return nil, fieldError("subscription", "has no tags", []byte(expression))
	}
	s.TagsSet = splitTags(s.SubString)
	s.CodeSet = tagCodes(s.TagsSet)
	return s, nil
}

// splitTags gives the tags of an expression, each once, none for *.
func splitTags(expression string) []string {
	tags := []string{}
	if expression == SubscribeAll {
		return tags
	}
	for tag := range strings.SplitSeq(expression, "||") {
		if tag = strings.TrimSpace(tag); tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}

func tagCodes(tags []string) []int32 {
	codes := make([]int32, len(tags))
	for i, tag := range tags {
		codes[i] = message.TagHash([]byte(tag))
	}
	return codes
}

// ConsumerIdList is the body of 38.
type ConsumerIdList struct {
	ConsumerIdList []string `json:"consumerIdList"`
}

// LockBatchRequest is the body of 41 and 42.
type LockBatchRequest struct {
	ClientId       string         `json:"clientId"`
	ConsumerGroup  string         `json:"consumerGroup"`
	MqSet          []MessageQueue `json:"mqSet"`
	OnlyThisBroker bool           `json:"onlyThisBroker"`
}

// LockBatchResponse is the answer to 41: the queues that the client holds.
type LockBatchResponse struct {
	LockOKMQSet []MessageQueue `json:"lockOKMQSet"`
}

// CheckClientRequest is the body of 46.
type CheckClientRequest struct {
	ClientId         string           `json:"clientId"`
	Group            string           `json:"group"`
	Namespace        string           `json:"namespace,omitempty"`
	SubscriptionData SubscriptionData `json:"subscriptionData"`
}

// MessageRequestMode tells whether a group pulls or pops. Empty is what could not be
// read.
type MessageRequestMode string

// The modes.
const (
	ModePull MessageRequestMode = "PULL"
	ModePop  MessageRequestMode = "POP"
)

func (MessageRequestMode) ordinals() []string { return []string{string(ModePull), string(ModePop)} }

// QueryAssignmentRequest is the body of 400.
type QueryAssignmentRequest struct {
	ClientId      string       `json:"clientId"`
	ConsumerGroup string       `json:"consumerGroup"`
	MessageModel  MessageModel `json:"messageModel,omitempty"`
	StrategyName  string       `json:"strategyName"`
	Topic         string       `json:"topic"`
}

// QueryAssignmentResponse is the answer to 400. Without a list the client keeps what it
// has.
type QueryAssignmentResponse struct {
	MessageQueueAssignments []MessageQueueAssignment `json:"messageQueueAssignments,omitempty"`
}

// MessageQueueAssignment is one queue that a client shall consume; queue -1 is all of a
// broker.
type MessageQueueAssignment struct {
	Attachments  map[string]string  `json:"attachments,omitempty"`
	MessageQueue MessageQueue       `json:"messageQueue"`
	Mode         MessageRequestMode `json:"mode"`
}

// SetMessageRequestMode is the body of 401.
type SetMessageRequestMode struct {
	ConsumerGroup    string             `json:"consumerGroup"`
	Mode             MessageRequestMode `json:"mode"`
	PopShareQueueNum int32              `json:"popShareQueueNum"`
	Topic            string             `json:"topic"`
}

// MessageRequestModes is the body of 402: by topic and group.
type MessageRequestModes struct {
	MessageRequestModeMap map[string]map[string]SetMessageRequestMode `json:"messageRequestModeMap"`
}

// BatchAckRequest is the body of 200151.
type BatchAckRequest struct {
	Acks       []BatchAck `json:"acks"`
	BrokerName string     `json:"brokerName"`
}

// A BatchAck acknowledges some messages of one pop.
type BatchAck struct {
	Bits          []byte `json:"b"` // bit i, counted from the lowest of each byte: offset StartOffset+i
	ConsumerGroup string `json:"c"`
	InvisibleTime int64  `json:"it"`
	PopTime       int64  `json:"pt"`
	QueueId       int32  `json:"q"`
	Retry         string `json:"r"` // "0" the topic, "1" its retry topic, "2" the same in naming version 2
	ReviveQueueId int32  `json:"rq"`
	StartOffset   int64  `json:"so"`
	Topic         string `json:"t"`
}

// Offsets gives the acknowledged queue offsets in order.
func (a *BatchAck) Offsets() []int64 {
	var offsets []int64
	for i, b := range a.Bits {
		for bit := range 8 {
			if b>>bit&1 == 1 {
				offsets = append(offsets, a.StartOffset+int64(i*8+bit))
			}
		}
	}
	return offsets
}
