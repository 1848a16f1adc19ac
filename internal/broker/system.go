package broker

import (
	"context"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/message"
)

// Names that are always there; see RocketMQ's TopicConfigManager.
const (
	toolsGroup        = "TOOLS_CONSUMER"
	traceTopicPrefix  = "rmq_sys_TRACE_DATA_"
	benchmarkQueues   = 1024
	clusterQueues     = 16
	reviveQueues      = 8
	permReadWrite     = 6
	permTemplate      = 7
	permTemplateNoUse = 1
)

func systemTopics(c *Config) []entry.Topic {
	rw := func(name string, queues, perm int32) entry.Topic {
		return entry.Topic{Name: name, ReadQueues: queues, WriteQueues: queues, Perm: perm}
	}
	auto := int32(permTemplate)
	if !c.AutoCreateTopics {
		auto = permReadWrite
	}
	return []entry.Topic{
		rw(message.TopicAutoCreate, c.DefaultQueues, auto),
		rw(message.TopicSelfTest, 1, permReadWrite),
		rw(message.TopicBenchmark, benchmarkQueues, permReadWrite),
		rw(c.Cluster, clusterQueues, permTemplate),
		rw(c.Name, 1, permTemplate),
		rw(message.TopicOffsetMoved, 1, permReadWrite),
		rw(message.TopicSchedule, int32(len(c.DelayLevels)), permReadWrite),
		rw(message.TopicTrace, 1, permReadWrite),
		rw(traceTopicPrefix+c.Region, 1, permReadWrite),
		rw(message.ReplyTopic(c.Cluster), 1, permReadWrite),
		rw(message.SystemTopicPrefix+"REVIVE_LOG_"+c.Cluster, reviveQueues, permReadWrite),
		rw(message.SystemTopicPrefix+"SYNC_BROKER_MEMBER_"+c.Name, 1, permTemplateNoUse),
		rw(message.TopicHalf, 1, permReadWrite),
		rw(message.TopicHalfOp, 1, permReadWrite),
		rw(message.TopicTransactionStale, 1, permReadWrite),
		rw(message.TopicTimer, 1, permReadWrite),
	}
}

// ensureSystem makes the topics and groups that are always there, as far as they are missing.
func (b *Broker) ensureSystem(ctx context.Context) error {
	var missing []entry.Command
	b.shard.RLock()
	for _, t := range systemTopics(b.conf.Load()) {
		old := b.topics.Get([]byte(t.Name))
		if old == nil || t.Name == message.TopicAutoCreate && !old.Equal(&t) || old.WriteQueues < t.WriteQueues {
			missing = append(missing, &entry.PutTopic{Topic: t, Actor: "start"})
		}
	}
	for _, name := range []string{toolsGroup, "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY", "CID_ONSAPI_PULL", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER"} {
		if b.groups.Get([]byte(name)) == nil {
			missing = append(missing, &entry.PutGroup{Group: entry.DefaultGroup(name), Actor: "start"})
		}
	}
	b.shard.RUnlock()
	if len(missing) == 0 {
		return nil
	}
	return b.do(ctx, missing...)
}
