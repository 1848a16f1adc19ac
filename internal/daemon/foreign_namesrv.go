package daemon

import "slices"

// namesrvConf lists the keys of namesrv.conf; listenPort, which broker.conf has too, is in namesrvOnly.
var namesrvConf = slices.Concat(
	unless(isFalse, "slaves that act as masters do not exist here", "supportActingMaster"),
	unless(isFalse, "replicas elect their leader; there is no controller", "enableControllerInNamesrv"),
	unless(oneOf("true"), "the list of topics would still be given to everyone", "enableAllTopicList", "enableTopicList"),
	not("everything lies below data", "kvConfigPath", "configStorePath"),
	not("routes carry the order configuration whenever there is one", "orderMessageEnable"),
	not("dead brokers are noticed when their connection closes or their time is over", "scanNotActiveBrokerInterval"),
	not("a full registration replaces the one before", "deleteTopicWithBrokerRegistration"),
	not("routes are served as soon as there are any", "needWaitForService", "waitSecondsForService"),
	not(becauseLoops, "clientRequestThreadPoolNums", "defaultThreadPoolNums", "clientRequestThreadPoolQueueCapacity",
		"defaultThreadPoolQueueCapacity", "unRegisterBrokerQueueCapacity"),
	not(becauseStatic, "clusterTest", "productEnvName", "notifyMinBrokerIdChanged"),
)
