package daemon

import (
	"slices"
	"time"
)

// Reasons that several keys share.
const (
	becauseLoops    = "event loops serve all requests; there are no pools to size"
	becauseOneLog   = "the log is written by plain writes of whole batches, and everything else is folded from it"
	becauseMetrics  = "metrics are read from /metrics, on every port"
	becauseReplicas = "this version keeps one replica of a shard, so copies would be promised that do not exist"
	becauseAccess   = "this version has no access control, so clients that should be refused would be let in"
	becauseTimers   = "timers and delays are a view of the log without settings of its own"
	becauseTxn      = "decisions about transactions are entries of the log; there is no second topic for them"
	becausePop      = "this version does not serve pop consumers; they are told so"
	becauseStatic   = "it has no effect on what clients may rely on here"
)

// brokerConf lists the keys of broker.conf that people set (and those of the store, which stand in the same file).
var brokerConf = slices.Concat(
	[]foreign{
		to("brokerClusterName", "cluster"),
		to("brokerName", "shard"),
		to("listenPort", "broker-port"),
		to("bindAddress", "bind"),
		to("namesrvAddr", "nameservers"),
		to("storePathRootDir", "data"),
		to("brokerPermission", "broker-permission"),
		to("autoCreateTopicEnable", "auto-create-topics"),
		to("autoCreateSubscriptionGroup", "auto-create-groups"),
		to("defaultTopicQueueNums", "default-topic-queues"),
		to("maxMessageSize", "max-message-bytes"),
		to("messageDelayLevel", "message-delay-levels"),
		to("storeReplyMessageEnable", "store-replies"),
		to("replyThreadPoolQueueCapacity", "max-replies"),
		to("mappedFileSizeCommitLog", "segment-bytes"),
		to("maxTransferBytesOnMessageInMemory", "max-pull-bytes"),
		to("maxTransferCountOnMessageInMemory", "max-pull-messages"),
		to("diskSpaceCleanForciblyRatio", "disk-max-use"),
		to("diskSpaceWarningLevelRatio", "disk-stop-use"),
		toConverted("cleanFileForciblyEnable", "disk-max-use", cleanForcibly),
		toConverted("flushDiskType", "durability", flushDiskType),
		toConverted("brokerIP1", "advertise", brokerIP),
		toWithUnit("flushIntervalCommitLog", "sync-interval", time.Millisecond),
		toWithUnit("fileReservedTime", "retention-time", time.Hour),
		toWithUnit("transactionTimeOut", "transaction-timeout", time.Millisecond),
		toWithUnit("transactionCheckInterval", "transaction-check-interval", time.Millisecond),
		to("transactionCheckMax", "transaction-check-max"),
		to("rejectTransactionMessage", "reject-transactions"),
		toWithUnit("serverChannelMaxIdleTimeSeconds", "idle-timeout", time.Second),
	},

	// Replication.
	unless(oneOf("ASYNC_MASTER", "SYNC_MASTER"), "replicas elect their leader; a fixed slave does not exist", "brokerRole"),
	unless(isZero, "replicas elect their leader; a fixed slave does not exist", "brokerId"),
	unless(isOne, becauseReplicas, "totalReplicas", "inSyncReplicas", "minInSyncReplicas"),
	unless(isEmpty, becauseReplicas, "haMasterAddress", "controllerAddr", "dLegerPeers", "dLegerGroup", "dLegerSelfId"),
	unless(isFalse, becauseReplicas, "enableDLegerCommitLog", "enableControllerMode", "enableSlaveActingMaster", "enableRemoteEscape",
		"allAckInSyncStateSet"),
	not("there is no separate replication port or protocol", "haListenPort", "brokerIP2", "haSendHeartbeatInterval", "haHousekeepingInterval",
		"haTransferBatchSize", "haMaxGapNotInSync", "slaveTimeout", "enableAutoInSyncReplicas", "slaveReadEnable", "offsetCheckInSlave",
		"syncMasterFlushOffsetWhenStartup", "preferredLeaderId", "lockInStrictMode"),

	// Access control and encryption.
	unless(isFalse, becauseAccess, "aclEnable", "authenticationEnabled", "authorizationEnabled", "migrateAuthFromV1Enabled"),
	not("without access control there are no users to begin with", "initAuthenticationUser", "innerClientAuthenticationCredentials",
		"authConfigPath", "authenticationProvider", "authenticationMetadataProvider", "authenticationStrategy", "authenticationWhitelist",
		"authorizationProvider", "authorizationMetadataProvider", "authorizationStrategy", "authorizationWhitelist"),
	unless(oneOf("disabled", "permissive"), "this version does not speak TLS, so connections would not be encrypted", "tls.server.mode"),
	unless(isFalse, "this version does not speak TLS, so connections would not be encrypted", "tls.enable"),

	// Where messages go and how long they stay.
	unless(isEmpty, "this version has no tiered storage, so messages would be gone after retention-time", "messageStorePlugIn"),
	unless(isFalse, "this version has no light message queues, so messages would not be in the queues that the producer named",
		"enableLmq", "enableMultiDispatch"),
	not("Apache's files are not read; messages and settings are brought over through the protocol", "readOnlyCommitLogStorePaths"),
	not("expired segments are dropped when they expire, at any hour", "deleteWhen", "diskMaxUsedSpaceRatio", "deleteFileBatchMax",
		"deleteCommitLogFilesInterval", "destroyMapedFileIntervalForcibly", "redeleteHangedFileInterval", "cleanResourceInterval"),
	not("everything lies below data", "storePathCommitLog", "storePathConsumeQueue", "storePathIndex", "storeCheckpoint", "abortFile",
		"storePathEpochFile", "brokerConfigPath", "rocketmqHome", "storeType"),
	not("one log holds everything; offsets are entries of it and are durable at once", "flushConsumerOffsetInterval", "flushConsumerOffsetHistoryInterval"),
	not(becauseOneLog, "mappedFileSizeConsumeQueue", "mappedFileSizeConsumeQueueExt", "flushCommitLogLeastPages", "flushCommitLogThoroughInterval",
		"flushCommitLogTimed", "commitIntervalCommitLog", "commitCommitLogLeastPages", "commitCommitLogThoroughInterval",
		"flushIntervalConsumeQueue", "flushConsumeQueueLeastPages", "flushConsumeQueueThoroughInterval", "syncFlushTimeout", "putMessageTimeout",
		"transientStorePoolEnable", "transientStorePoolSize", "fastFailIfNoBufferInStorePool", "warmMapedFileEnable",
		"useReentrantLockWhenPutMessage", "osPageCacheBusyTimeOutMills", "messageIndexEnable", "messageIndexSafe", "maxHashSlotNum", "maxIndexNum",
		"transferMsgByHeap", "duplicationEnable", "checkCRCOnRecover", "enableScheduleAsyncDeliver", "enableConsumeQueueExt",
		"bitMapLengthConsumeQueueExt", "maxFilterMessageSize", "maxTopicLength", "autoMessageVersionOnTopicLen"),
	not("reads from the disk have a budget, cold-read-bytes-per-second", "maxTransferBytesOnMessageInDisk", "maxTransferCountOnMessageInDisk",
		"accessMessageInMemoryMaxRatio", "coldDataFlowControlEnable", "coldDataScanEnable", "disableConsumeIfConsumerReadSlowly",
		"consumerFallbehindThreshold"),

	// Capabilities with switches.
	not("SQL92 filters are always on, and what a pull with one may cost is bounded", "enablePropertyFilter"),
	not("a retry topic has only what its group was given already", "filterSupportRetry"),
	not("conditions are evaluated when messages are pulled; nothing is computed before, or kept", "enableCalcFilterBitMap",
		"expectConsumerNumUseFilter", "maxErrorRateOfBloomFilter", "filterDataCleanTimeSpan"),
	not(becauseTxn, "transactionOpMsgMaxSize", "transactionOpBatchInterval", "transRocksDBEnable"),
	not(becauseTimers, "timerWheelEnable", "timerMaxDelaySec", "timerPrecisionMs", "timerStopEnqueue", "timerSkipUnknownError",
		"timerEnableCheckMetrics", "timerInterceptDelayLevel", "recallMessageEnable"),
	not(becausePop, "popFromRetryProbability", "reviveQueueNum", "enablePopBufferMerge", "enablePopLog", "popConsumerKVServiceEnable",
		"popConsumerKVServiceInit", "enableRetryTopicV2", "popPollingSize", "maxPopPollingSize", "defaultMessageRequestMode",
		"serverLoadBalancerEnable", "enableSkipLongAwaitingAck"),
	not("this version has no compaction; such topics are refused when they are made", "enableCompaction", "enableMixedMessageType"),
	not("there are no light message queues", "maxLmqConsumeQueueNum"),
	not("each view of the log is there from the start", "traceTopicEnable", "msgTraceTopicName", "traceOn", "clusterTopicEnable", "brokerTopicEnable"),
	not("queries give 64 messages at most, those by unique key 32", "maxMsgsNumBatch", "defaultQueryMaxNum"),
	not("a reset is an entry of the log and takes effect at once", "useServerSideResetOffset"),

	// Inside the process.
	not(becauseLoops, "sendMessageThreadPoolNums", "pullMessageThreadPoolNums", "processReplyMessageThreadPoolNums", "queryMessageThreadPoolNums",
		"adminBrokerThreadPoolNums", "clientManageThreadPoolNums", "consumerManageThreadPoolNums", "heartbeatThreadPoolNums",
		"endTransactionThreadPoolNums", "ackMessageThreadPoolNums", "putMessageFutureThreadPoolNums", "litePullMessageThreadPoolNums",
		"serverWorkerThreads", "serverSelectorThreads", "serverCallbackExecutorThreads", "serverOnewaySemaphoreValue", "serverAsyncSemaphoreValue",
		"serverSocketSndBufSize", "serverSocketRcvBufSize", "useEpollNativeSelector", "serverPooledByteBufAllocatorEnable",
		"clientWorkerThreads", "connectTimeoutMillis"),
	not("no request waits in a queue before it is read; limits answer at once", "sendThreadPoolQueueCapacity", "pullThreadPoolQueueCapacity",
		"queryThreadPoolQueueCapacity", "clientManagerThreadPoolQueueCapacity",
		"consumerManagerThreadPoolQueueCapacity", "heartbeatThreadPoolQueueCapacity", "endTransactionPoolQueueCapacity",
		"adminBrokerThreadPoolQueueCapacity", "waitTimeMillsInSendQueue", "waitTimeMillsInPullQueue", "waitTimeMillsInHeartbeatQueue",
		"waitTimeMillsInTransactionQueue", "brokerFastFailureEnable", "enableNetWorkFlowControl"),
	not("waiting pulls are woken by the message itself", "longPollingEnable", "shortPollingTimeMills", "longPollingSuspend"),
	not("registration follows every change at once", "enableSingleTopicRegister", "enableSplitRegistration", "registerNameServerPeriod",
		"registerBrokerTimeoutMills", "forceRegister", "compressedRegister", "brokerHeartbeatInterval", "brokerNotActiveTimeoutMillis"),
	not("name servers are given as addresses, in nameservers", "fetchNamesrvAddrByAddressServer", "fetchNameSrvAddrByDnsLookup", "rmqAddressServerDomain"),
	not(becauseMetrics, "metricsExporterType", "metricsPromExporterPort", "metricsPromExporterHost", "metricsGrpcExporterTarget",
		"metricsGrpcExporterHeader", "metricsLabel", "metricsInDelta", "enableDetailStat", "channelExpiredTimeout", "subscriptionExpiredTimeout"),
	not(becauseStatic, "configBlackList", "regionId", "useTLS", "isEnableBatchPush", "notifyConsumerIdsChangedEnable",
		"realTimeNotifyConsumerChange", "validateSystemTopicWhenUpdateTopic", "startAcceptSendRequestTimeStamp", "startupDelayMs",
		"skipPreOnline", "namesrvAddrByDomain"),
)
