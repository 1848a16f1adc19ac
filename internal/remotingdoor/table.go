package remotingdoor

import (
	"context"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
)

// handlers names every request code that this door serves.
func (d *Door) handlers() map[int32]handler {
	t := map[int32]handler{
		protocol.ReqSendMessage:      {hot: sendMessage},
		protocol.ReqSendMessageV2:    {hot: sendMessage},
		protocol.ReqSendBatchMessage: {hot: sendMessage},

		protocol.ReqSendReplyMessage:   {hot: replyMessage},
		protocol.ReqSendReplyMessageV2: {hot: replyMessage},

		protocol.ReqPullMessage:     {hot: pullMessage},
		protocol.ReqLitePullMessage: {hot: pullMessage},

		protocol.ReqQueryConsumerOffset:     {hot: queryConsumerOffset},
		protocol.ReqUpdateConsumerOffset:    {hot: updateConsumerOffset},
		protocol.ReqGetMaxOffset:            {hot: getMaxOffset},
		protocol.ReqGetMinOffset:            {hot: getMinOffset},
		protocol.ReqSearchOffsetByTimestamp: {cold: searchOffset},
		protocol.ReqGetEarliestMsgStoretime: {cold: earliestStoreTime},

		protocol.ReqEndTransaction:         {hot: endTransaction},
		protocol.ReqResumeCheckHalfMessage: {cold: resumeTransaction},

		protocol.ReqConsumerSendMsgBack: {cold: sendMessageBack},
		protocol.ReqViewMessageById:     {cold: viewMessage},
		protocol.ReqQueryMessage:        {cold: queryMessage},

		protocol.ReqHeartBeat:              {hot: heartBeat},
		protocol.ReqUnregisterClient:       {hot: unregisterClient},
		protocol.ReqGetConsumerListByGroup: {hot: getConsumerList},
		protocol.ReqCheckClientConfig:      {cold: checkClientConfig},
		protocol.ReqLockBatchMq:            {hot: lockQueues},
		protocol.ReqUnlockBatchMq:          {hot: unlockQueues},

		protocol.ReqUpdateAndCreateTopic:                 {cold: updateTopic},
		protocol.ReqUpdateAndCreateTopicList:             {cold: updateTopicList},
		protocol.ReqDeleteTopicInBroker:                  {cold: deleteTopic},
		protocol.ReqGetAllTopicConfig:                    {cold: allTopics},
		protocol.ReqGetTopicConfig:                       {cold: getTopic},
		protocol.ReqGetSystemTopicListFromBroker:         {cold: systemTopics},
		protocol.ReqUpdateAndCreateSubscriptiongroup:     {cold: updateGroup},
		protocol.ReqUpdateAndCreateSubscriptiongroupList: {cold: updateGroupList},
		protocol.ReqDeleteSubscriptiongroup:              {cold: deleteGroup},
		protocol.ReqGetAllSubscriptiongroupConfig:        {cold: allGroups},
		protocol.ReqGetSubscriptiongroupConfig:           {cold: getGroup},

		protocol.ReqGetTopicStatsInfo:         {cold: topicStats},
		protocol.ReqGetConsumeStats:           {cold: consumeStats},
		protocol.ReqGetConsumerConnectionList: {cold: consumerConnections},
		protocol.ReqGetProducerConnectionList: {cold: producerConnections},
		protocol.ReqQueryTopicConsumeByWho:    {cold: topicConsumers},
		protocol.ReqQueryTopicsByConsumer:     {cold: groupTopics},
		protocol.ReqGetAllConsumerOffset:      {cold: allOffsets},
		protocol.ReqInvokeBrokerToResetOffset: {cold: resetOffset},
		protocol.ReqGetBrokerConfig:           {cold: getConfig},
		protocol.ReqUpdateBrokerConfig:        {cold: updateConfig},
		protocol.ReqGetBrokerRuntimeInfo:      {cold: runtimeInfo},
	}
	d.addNameServer(t)
	return t
}

// addNameServer adds the codes of the name server in the same process.
func (d *Door) addNameServer(t map[int32]handler) {
	ns := d.opts.NameServer
	if ns == nil {
		return
	}
	for _, code := range ns.Codes() {
		if ns.Blocks(code) {
			t[code] = handler{cold: func(_ context.Context, r *request) *protocol.Command { return ns.Serve(r.s, r.Command) }}
			continue
		}
		t[code] = handler{hot: func(w *worker, s *remoting.Session, c *protocol.Command) { w.answer(s, c, ns.Serve(s, c)) }}
	}
}
