package protocol

// A Connection is one connection of a client.
type Connection struct {
	ClientAddr string `json:"clientAddr"` // ip:port
	ClientId   string `json:"clientId"`
	Language   string `json:"language"`
	Version    int32  `json:"version"`
}

// ConsumerConnection is the body of 203.
type ConsumerConnection struct {
	ConnectionSet     []Connection                `json:"connectionSet"`
	ConsumeFromWhere  ConsumeFromWhere            `json:"consumeFromWhere,omitempty"`
	ConsumeType       ConsumeType                 `json:"consumeType,omitempty"`
	MessageModel      MessageModel                `json:"messageModel,omitempty"`
	SubscriptionTable map[string]SubscriptionData `json:"subscriptionTable"` // by topic
}

// ProducerConnection is the body of 204.
type ProducerConnection struct {
	ConnectionSet []Connection `json:"connectionSet"`
}

// ProducerTableInfo is the body of 328: producers by group.
type ProducerTableInfo struct {
	Data map[string][]ProducerInfo `json:"data"`
}

// ProducerInfo is one producer.
type ProducerInfo struct {
	ClientId            string `json:"clientId"`
	Language            string `json:"language"`
	LastUpdateTimestamp int64  `json:"lastUpdateTimestamp"` // ms
	RemoteIP            string `json:"remoteIP"`            // with its port
	Version             int32  `json:"version"`
}

// TopicStatsTable is the body of 202.
type TopicStatsTable struct {
	OffsetTable map[MessageQueue]TopicOffset `json:"offsetTable"`
	TopicPutTps float64                      `json:"topicPutTps"`
}

// TopicOffset tells what a queue holds.
type TopicOffset struct {
	LastUpdateTimestamp int64 `json:"lastUpdateTimestamp"` // ms
	MaxOffset           int64 `json:"maxOffset"`
	MinOffset           int64 `json:"minOffset"`
}

// ConsumeStats is the body of 208.
type ConsumeStats struct {
	ConsumeTps  float64                        `json:"consumeTps"`
	OffsetTable map[MessageQueue]OffsetWrapper `json:"offsetTable"`
}

// OffsetWrapper tells where a group stands in a queue.
type OffsetWrapper struct {
	BrokerOffset   int64 `json:"brokerOffset"`
	ConsumerOffset int64 `json:"consumerOffset"`
	LastTimestamp  int64 `json:"lastTimestamp"` // store time of the last consumed message, ms
	PullOffset     int64 `json:"pullOffset"`
}

// ConsumeStatsList is the body of 317: a map with one group in each element.
type ConsumeStatsList struct {
	BrokerAddr        string                      `json:"brokerAddr,omitempty"`
	ConsumeStatsList  []map[string][]ConsumeStats `json:"consumeStatsList"`
	TotalDiff         int64                       `json:"totalDiff"`
	TotalInflightDiff int64                       `json:"totalInflightDiff"`
}

// QuerySubscriptionResponse is the body of 345.
type QuerySubscriptionResponse struct {
	Group            string            `json:"group"`
	SubscriptionData *SubscriptionData `json:"subscriptionData"`
	Topic            string            `json:"topic,omitempty"`
}

// QueryConsumeTimeSpanBody is the body of 303.
type QueryConsumeTimeSpanBody struct {
	ConsumeTimeSpanSet []QueueTimeSpan `json:"consumeTimeSpanSet"`
}

// QueueTimeSpan tells the times of a queue's messages. Times are in ms, and again as
// text.
type QueueTimeSpan struct {
	ConsumeTimeStamp    int64        `json:"consumeTimeStamp"`
	ConsumeTimeStampStr string       `json:"consumeTimeStampStr,omitempty"`
	DelayTime           int64        `json:"delayTime"`
	MaxTimeStamp        int64        `json:"maxTimeStamp"`
	MaxTimeStampStr     string       `json:"maxTimeStampStr,omitempty"`
	MessageQueue        MessageQueue `json:"messageQueue"`
	MinTimeStamp        int64        `json:"minTimeStamp"`
	MinTimeStampStr     string       `json:"minTimeStampStr,omitempty"`
}

// QueryConsumeQueueResponse is the body of 321.
type QueryConsumeQueueResponse struct {
	FilterData       string             `json:"filterData,omitempty"`
	MaxQueueIndex    int64              `json:"maxQueueIndex"`
	MinQueueIndex    int64              `json:"minQueueIndex"`
	QueueData        []ConsumeQueueData `json:"queueData"`
	SubscriptionData *SubscriptionData  `json:"subscriptionData"`
}

// ConsumeQueueData is one entry of a queue's index.
type ConsumeQueueData struct {
	BitMap         string `json:"bitMap,omitempty"`
	Eval           bool   `json:"eval"`
	ExtendDataJson string `json:"extendDataJson,omitempty"`
	Msg            string `json:"msg,omitempty"`
	PhysicOffset   int64  `json:"physicOffset"`
	PhysicSize     int32  `json:"physicSize"`
	TagsCode       int64  `json:"tagsCode"`
}

// BrokerStatsData is the body of 315.
type BrokerStatsData struct {
	StatsDay    BrokerStatsItem `json:"statsDay"`
	StatsHour   BrokerStatsItem `json:"statsHour"`
	StatsMinute BrokerStatsItem `json:"statsMinute"`
}

// BrokerStatsItem sums a statistic up.
type BrokerStatsItem struct {
	Avgpt float64 `json:"avgpt"` // average value of an event
	Sum   int64   `json:"sum"`
	Tps   float64 `json:"tps"`
}

// HARuntimeInfo is the body of 907.
type HARuntimeInfo struct {
	HaClientRuntimeInfo      HAClientInfo       `json:"haClientRuntimeInfo"`
	HaConnectionInfo         []HAConnectionInfo `json:"haConnectionInfo"`
	InSyncSlaveNums          int32              `json:"inSyncSlaveNums"`
	Master                   bool               `json:"master"`
	MasterCommitLogMaxOffset int64              `json:"masterCommitLogMaxOffset"`
}

// HAClientInfo is what a slave knows of its master. Times are in ms.
type HAClientInfo struct {
	LastReadTimestamp       int64  `json:"lastReadTimestamp"`
	LastWriteTimestamp      int64  `json:"lastWriteTimestamp"`
	MasterAddr              string `json:"masterAddr,omitempty"`
	MasterFlushOffset       int64  `json:"masterFlushOffset"`
	MaxOffset               int64  `json:"maxOffset"`
	TransferredByteInSecond int64  `json:"transferredByteInSecond"`
}

// HAConnectionInfo is what a master knows of a slave.
type HAConnectionInfo struct {
	Addr                    string `json:"addr"`
	Diff                    int64  `json:"diff"` // bytes behind
	InSync                  bool   `json:"inSync"`
	SlaveAckOffset          int64  `json:"slaveAckOffset"`
	TransferFromWhere       int64  `json:"transferFromWhere"`
	TransferredByteInSecond int64  `json:"transferredByteInSecond"`
}
