package protocol

// Filter types of topics.
const (
	SingleTag = "SINGLE_TAG"
	MultiTag  = "MULTI_TAG"
)

// TopicConfig describes a topic on one broker.
type TopicConfig struct {
	Attributes      map[string]string `json:"attributes"`
	Order           bool              `json:"order"`
	Perm            int32             `json:"perm"` // 1 inherit, 2 write, 4 read, 8 priority
	ReadQueueNums   int32             `json:"readQueueNums"`
	TopicFilterType string            `json:"topicFilterType"`
	TopicName       string            `json:"topicName"`
	TopicSysFlag    int32             `json:"topicSysFlag"` // 1 unit, 2 unit subscription
	WriteQueueNums  int32             `json:"writeQueueNums"`
}

// setDefaults is what Java's class has when a member is absent.
func (c *TopicConfig) setDefaults() {
	*c = TopicConfig{Perm: 6, ReadQueueNums: 16, WriteQueueNums: 16, TopicFilterType: SingleTag}
}

// TopicConfigAndQueueMapping is the body of 351.
type TopicConfigAndQueueMapping struct {
	TopicConfig
	MappingDetail *TopicQueueMappingDetail `json:"mappingDetail"` // static topics
}

func (c *TopicConfigAndQueueMapping) setDefaults() { c.TopicConfig.setDefaults() }

// TopicConfigWrapper is a broker's table of topics: the body of 21, and of 103 inside a
// [RegisterBrokerBody].
type TopicConfigWrapper struct {
	DataVersion                DataVersion                        `json:"dataVersion"`
	MappingDataVersion         *DataVersion                       `json:"mappingDataVersion"`
	TopicConfigTable           map[string]TopicConfig             `json:"topicConfigTable"`
	TopicQueueMappingDetailMap map[string]TopicQueueMappingDetail `json:"topicQueueMappingDetailMap,omitempty"`
	TopicQueueMappingInfoMap   map[string]TopicQueueMappingInfo   `json:"topicQueueMappingInfoMap,omitempty"`
}

// TopicConfigList is the body of 18.
type TopicConfigList struct {
	TopicConfigList []TopicConfig `json:"topicConfigList"`
}

// SubscriptionGroupConfig describes a consumer group on one broker.
type SubscriptionGroupConfig struct {
	Attributes                     map[string]string        `json:"attributes"`
	BrokerId                       int64                    `json:"brokerId"`
	ConsumeBroadcastEnable         bool                     `json:"consumeBroadcastEnable"`
	ConsumeEnable                  bool                     `json:"consumeEnable"`
	ConsumeFromMinEnable           bool                     `json:"consumeFromMinEnable"`
	ConsumeMessageOrderly          bool                     `json:"consumeMessageOrderly"`
	ConsumeTimeoutMinute           int32                    `json:"consumeTimeoutMinute"`
	GroupName                      string                   `json:"groupName"`
	GroupRetryPolicy               GroupRetryPolicy         `json:"groupRetryPolicy"`
	GroupSysFlag                   int32                    `json:"groupSysFlag"`
	NotifyConsumerIdsChangedEnable bool                     `json:"notifyConsumerIdsChangedEnable"`
	RetryMaxTimes                  int32                    `json:"retryMaxTimes"`
	RetryQueueNums                 int32                    `json:"retryQueueNums"`
	SubscriptionDataSet            []SimpleSubscriptionData `json:"subscriptionDataSet,omitempty"`
	WhichBrokerWhenConsumeSlowly   int64                    `json:"whichBrokerWhenConsumeSlowly"`
}

// NewSubscriptionGroupConfig gives a group its defaults.
func NewSubscriptionGroupConfig(name string) SubscriptionGroupConfig {
	var c SubscriptionGroupConfig
	c.setDefaults()
	c.GroupName = name
	return c
}

// setDefaults matters: what an old tool does not know is on.
func (c *SubscriptionGroupConfig) setDefaults() {
	*c = SubscriptionGroupConfig{
		ConsumeBroadcastEnable: true, ConsumeEnable: true, ConsumeFromMinEnable: true, ConsumeTimeoutMinute: 15,
		GroupRetryPolicy: GroupRetryPolicy{Type: RetryCustomized}, NotifyConsumerIdsChangedEnable: true, RetryMaxTimes: 16,
		RetryQueueNums: 1, WhichBrokerWhenConsumeSlowly: 1,
	}
}

// RetryPolicyType tells how the delays of retries grow.
type RetryPolicyType string

// The types. Customized without a list is RocketMQ's own list of delay levels.
const (
	RetryExponential RetryPolicyType = "EXPONENTIAL"
	RetryCustomized  RetryPolicyType = "CUSTOMIZED"
)

func (RetryPolicyType) ordinals() []string {
	return []string{string(RetryExponential), string(RetryCustomized)}
}

// GroupRetryPolicy tells the delays of a group's retries.
type GroupRetryPolicy struct {
	CustomizedRetryPolicy  *CustomizedRetryPolicy  `json:"customizedRetryPolicy"`
	ExponentialRetryPolicy *ExponentialRetryPolicy `json:"exponentialRetryPolicy"`
	Type                   RetryPolicyType         `json:"type,omitempty"`
}

// ExponentialRetryPolicy multiplies the delay with each retry. Times are in ms.
type ExponentialRetryPolicy struct {
	Initial    int64 `json:"initial"`
	Max        int64 `json:"max"`
	Multiplier int64 `json:"multiplier"`
}

func (p *ExponentialRetryPolicy) setDefaults() {
	*p = ExponentialRetryPolicy{Initial: 5_000, Max: 7_200_000, Multiplier: 2}
}

// CustomizedRetryPolicy lists the delays in ms.
type CustomizedRetryPolicy struct {
	Next []int64 `json:"next"`
}

// SimpleSubscriptionData is a subscription that belongs to a group's configuration.
type SimpleSubscriptionData struct {
	Expression     string `json:"expression"`
	ExpressionType string `json:"expressionType"`
	Topic          string `json:"topic"`
	Version        int64  `json:"version"`
}

// SubscriptionGroupWrapper is a broker's table of groups: the body of 201.
type SubscriptionGroupWrapper struct {
	DataVersion            DataVersion                        `json:"dataVersion"`
	ForbiddenTable         map[string]map[string]int32        `json:"forbiddenTable"` // group, topic
	SubscriptionGroupTable map[string]SubscriptionGroupConfig `json:"subscriptionGroupTable"`
}

// SubscriptionGroupList is the body of 225.
type SubscriptionGroupList struct {
	GroupConfigList []SubscriptionGroupConfig `json:"groupConfigList"`
}

// GroupForbidden is the body of 353.
type GroupForbidden struct {
	Group    string `json:"group"`
	Readable bool   `json:"readable"`
	Topic    string `json:"topic"`
}

// UserInfo is a user: the body of 3001 and its neighbours.
type UserInfo struct {
	Password   string `json:"password,omitempty"`
	UserStatus string `json:"userStatus,omitempty"` // enable, disable
	UserType   string `json:"userType,omitempty"`   // Super, Normal
	Username   string `json:"username,omitempty"`
}

// AclInfo is what a user may do: the body of 3006 and its neighbours.
type AclInfo struct {
	Policies []AclPolicy `json:"policies,omitempty"`
	Subject  string      `json:"subject,omitempty"` // User:name
}

// AclPolicy is a list of rules.
type AclPolicy struct {
	Entries    []AclEntry `json:"entries,omitempty"`
	PolicyType string     `json:"policyType,omitempty"` // Custom, Default
}

// AclEntry is one rule.
type AclEntry struct {
	Actions   []string `json:"actions,omitempty"`
	Decision  string   `json:"decision,omitempty"` // Allow, Deny
	Resource  string   `json:"resource,omitempty"` // Topic:name, Group:name, Cluster:name, *
	SourceIps []string `json:"sourceIps,omitempty"`
}
