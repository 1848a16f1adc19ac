package protocol

// ResetOffsetBody is the body of 220 and the answer to 222: new offsets of queues.
type ResetOffsetBody struct {
	OffsetTable map[MessageQueue]int64 `json:"offsetTable"`
}

// ForC gives the same for clients in C++, which cannot read objects as keys.
func (b *ResetOffsetBody) ForC() *ResetOffsetBodyForC {
	list := make([]MessageQueueForC, 0, len(b.OffsetTable))
	for q, offset := range b.OffsetTable {
		list = append(list, MessageQueueForC{BrokerName: q.BrokerName, Offset: offset, QueueId: q.QueueId, Topic: q.Topic})
	}
	return &ResetOffsetBodyForC{OffsetTable: list}
}

// ResetOffsetBodyForC is the body of 220 for clients in C++.
type ResetOffsetBodyForC struct {
	OffsetTable []MessageQueueForC `json:"offsetTable"`
}

// MessageQueueForC is a queue and an offset in it.
type MessageQueueForC struct {
	BrokerName string `json:"brokerName"`
	Offset     int64  `json:"offset"`
	QueueId    int32  `json:"queueId"`
	Topic      string `json:"topic"`
}

// GetConsumerStatusBody is a client's answer to 221 (messageQueueTable) and the broker's
// to 223 (consumerTable, by client id).
type GetConsumerStatusBody struct {
	ConsumerTable     map[string]map[MessageQueue]int64 `json:"consumerTable"`
	MessageQueueTable map[MessageQueue]int64            `json:"messageQueueTable"`
}

// ConsumerOffsets is the body of 43: offsets by topic@group and queue.
type ConsumerOffsets struct {
	DataVersion DataVersion                `json:"dataVersion"`
	OffsetTable map[string]map[int32]int64 `json:"offsetTable"`
}

// DelayOffsets is the body of 45: offsets by delay level.
type DelayOffsets struct {
	DataVersion DataVersion     `json:"dataVersion"`
	OffsetTable map[int32]int64 `json:"offsetTable"`
}

// CorrectionOffsets is the body of 308: offsets by queue.
type CorrectionOffsets struct {
	CorrectionOffsets map[int32]int64 `json:"correctionOffsets"`
}

// ConsumeMessageDirectlyResult is a client's answer to 309.
type ConsumeMessageDirectlyResult struct {
	AutoCommit     bool   `json:"autoCommit"`
	ConsumeResult  string `json:"consumeResult,omitempty"` // CR_SUCCESS, CR_LATER, …
	Order          bool   `json:"order"`
	Remark         string `json:"remark,omitempty"`
	SpentTimeMills int64  `json:"spentTimeMills"` // spelt like this
}

// ConsumerRunningInfo is a client's answer to 307. A broker passes it on as it came:
// clients differ in the parts that are left raw.
type ConsumerRunningInfo struct {
	Jstack           string            `json:"jstack,omitempty"`
	MqPopTable       Raw               `json:"mqPopTable"`
	MqTable          Raw               `json:"mqTable"`
	Properties       map[string]string `json:"properties"`
	StatusTable      Raw               `json:"statusTable"`
	SubscriptionSet  Raw               `json:"subscriptionSet"`
	UserConsumerInfo map[string]string `json:"userConsumerInfo,omitempty"`
}

// OffsetMovedEvent is the body of a message in OFFSET_MOVED_EVENT.
type OffsetMovedEvent struct {
	ConsumerGroup string       `json:"consumerGroup"`
	MessageQueue  MessageQueue `json:"messageQueue"`
	OffsetNew     int64        `json:"offsetNew"`
	OffsetRequest int64        `json:"offsetRequest"`
}
