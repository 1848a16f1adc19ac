package protocol

import "cmp"

// A DataVersion tells two states of a table apart. Equality of all three parts means
// unchanged.
type DataVersion struct {
	Counter      int64 `json:"counter"`
	StateVersion int64 `json:"stateVersion"`
	Timestamp    int64 `json:"timestamp"` // ms
}

// A MessageQueue is one queue of a topic on one broker. It is also a key of maps.
type MessageQueue struct {
	BrokerName string `json:"brokerName"`
	QueueId    int32  `json:"queueId"`
	Topic      string `json:"topic"`
}

func compareQueues(a, b MessageQueue) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.BrokerName, b.BrokerName), cmp.Compare(a.QueueId, b.QueueId))
}

// TopicRouteData is where a topic is: the body of 105 and 217.
type TopicRouteData struct {
	BrokerDatas               []BrokerData                     `json:"brokerDatas"`
	FilterServerTable         map[string][]string              `json:"filterServerTable"` // obsolete, empty
	OrderTopicConf            string                           `json:"orderTopicConf,omitempty"`
	QueueDatas                []QueueData                      `json:"queueDatas"`
	TopicQueueMappingByBroker map[string]TopicQueueMappingInfo `json:"topicQueueMappingByBroker,omitempty"` // static topics
}

// QueueData tells the queues of a topic on one broker.
type QueueData struct {
	BrokerName     string `json:"brokerName"`
	Perm           int32  `json:"perm"` // 2 write, 4 read
	ReadQueueNums  int32  `json:"readQueueNums"`
	TopicSysFlag   int32  `json:"topicSysFlag"`
	WriteQueueNums int32  `json:"writeQueueNums"`
}

// BrokerData tells the addresses of a broker by the ids of its replicas; 0 is the
// master.
type BrokerData struct {
	BrokerAddrs        map[int64]string `json:"brokerAddrs"`
	BrokerName         string           `json:"brokerName"`
	Cluster            string           `json:"cluster"`
	EnableActingMaster bool             `json:"enableActingMaster"`
	ZoneName           string           `json:"zoneName,omitempty"`
}

// ClusterInfo is the body of 106.
type ClusterInfo struct {
	BrokerAddrTable  map[string]BrokerData `json:"brokerAddrTable"`
	ClusterAddrTable map[string][]string   `json:"clusterAddrTable"` // names of the brokers of a cluster
}

// BrokerMemberGroup tells the replicas of a broker.
type BrokerMemberGroup struct {
	BrokerAddrs map[int64]string `json:"brokerAddrs"`
	BrokerName  string           `json:"brokerName"`
	Cluster     string           `json:"cluster"`
}

// BrokerMemberGroupBody is the body of 901.
type BrokerMemberGroupBody struct {
	BrokerMemberGroup *BrokerMemberGroup `json:"brokerMemberGroup"`
}

// KVTable is a table of texts: runtime information (28), a namespace (219), ordered
// topics (103).
type KVTable struct {
	Table map[string]string `json:"table"`
}

// TopicList is the body of 206 and its neighbours.
type TopicList struct {
	BrokerAddr string   `json:"brokerAddr,omitempty"`
	TopicList  []string `json:"topicList"`
}

// GroupList is the body of 300.
type GroupList struct {
	GroupList []string `json:"groupList"`
}

// TopicQueueMappingInfo tells which logical queues of a static topic a broker holds.
type TopicQueueMappingInfo struct {
	Bname       string          `json:"bname"`
	CurrIdMap   map[int32]int32 `json:"currIdMap"` // logical to physical
	Dirty       bool            `json:"dirty"`
	Epoch       int64           `json:"epoch"`
	Scope       string          `json:"scope,omitempty"`
	Topic       string          `json:"topic"`
	TotalQueues int32           `json:"totalQueues"`
}

// TopicQueueMappingDetail tells also where a broker's logical queues have been: the body
// of 513.
type TopicQueueMappingDetail struct {
	TopicQueueMappingInfo
	HostedQueues map[int32][]LogicQueueMappingItem `json:"hostedQueues"`
}

// LogicQueueMappingItem is one stretch of a logical queue.
type LogicQueueMappingItem struct {
	Bname       string `json:"bname"`
	EndOffset   int64  `json:"endOffset"` // -1: open
	Gen         int32  `json:"gen"`
	LogicOffset int64  `json:"logicOffset"`
	QueueId     int32  `json:"queueId"`
	StartOffset int64  `json:"startOffset"`
	TimeOfEnd   int64  `json:"timeOfEnd"`
	TimeOfStart int64  `json:"timeOfStart"`
}
