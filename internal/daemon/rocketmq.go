package daemon

import (
	"net"
	"strconv"
	"time"
)

// RocketMQ returns the settings under the names and in the units that tools expect of getBrokerConfig.
func (s Settings) RocketMQ() map[string]string {
	itoa := strconv.Itoa
	itoa64 := func(n int64) string { return strconv.FormatInt(n, 10) }
	flush, forcibly := "SYNC_FLUSH", s.DiskMaxUse < 100
	if s.Durability == DurabilityAsync {
		flush = "ASYNC_FLUSH"
	}
	m := map[string]string{
		// Ours.
		"brokerClusterName":                 s.Cluster,
		"brokerName":                        s.Shard,
		"listenPort":                        itoa(s.BrokerPort),
		"bindAddress":                       s.Bind,
		"storePathRootDir":                  s.Data,
		"brokerPermission":                  itoa(s.BrokerPermission),
		"autoCreateTopicEnable":             strconv.FormatBool(s.AutoCreateTopics),
		"autoCreateSubscriptionGroup":       strconv.FormatBool(s.AutoCreateGroups),
		"defaultTopicQueueNums":             itoa(s.DefaultTopicQueues),
		"maxMessageSize":                    itoa(s.MaxMessageBytes),
		"messageDelayLevel":                 s.DelayLevels.String(),
		"storeReplyMessageEnable":           strconv.FormatBool(s.StoreReplies),
		"replyThreadPoolQueueCapacity":      itoa(s.MaxReplies),
		"mappedFileSizeCommitLog":           itoa64(s.SegmentBytes),
		"maxTransferBytesOnMessageInMemory": itoa(s.MaxPullBytes),
		"maxTransferCountOnMessageInMemory": itoa(s.MaxPullMessages),
		"diskSpaceCleanForciblyRatio":       itoa(s.DiskMaxUse),
		"diskSpaceWarningLevelRatio":        itoa(s.DiskStopUse),
		"cleanFileForciblyEnable":           strconv.FormatBool(forcibly),
		"flushDiskType":                     flush,
		"flushIntervalCommitLog":            itoa64(s.SyncInterval.Milliseconds()),
		"fileReservedTime":                  itoa64(int64(s.RetentionTime / time.Hour)),
		"serverChannelMaxIdleTimeSeconds":   itoa64(int64(s.IdleTimeout / time.Second)),
		"transactionTimeOut":                itoa64(s.TransactionTimeout.Milliseconds()),
		"transactionCheckInterval":          itoa64(s.TransactionCheckInterval.Milliseconds()),
		"transactionCheckMax":               itoa(s.TransactionCheckMax),
		"rejectTransactionMessage":          strconv.FormatBool(s.RejectTransactions),
		// What tools look for and what is always so here.
		"brokerId":          "0",
		"brokerRole":        "ASYNC_MASTER",
		"totalReplicas":     "1",
		"inSyncReplicas":    "1",
		"minInSyncReplicas": "1",
		"longPollingEnable": "true",
		"aclEnable":         "false",
		"slaveReadEnable":   "false",

		"enablePropertyFilter": "true",
	}
	if list, _ := Lookup("nameservers"); len(s.Nameservers) > 0 {
		m["namesrvAddr"] = list.Value(s)
	}
	if addr, ok := s.Advertise.Address(ListenerBroker, s.BrokerPort); ok {
		if host, _, err := net.SplitHostPort(addr); err == nil {
			m["brokerIP1"] = host
		}
	}
	return m
}
