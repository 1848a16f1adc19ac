package remotingdoor

import (
	"context"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/protocol"
)

// groupConfig is a group in the protocol's form.
func groupConfig(g *entry.Group) protocol.SubscriptionGroupConfig {
	c := protocol.NewSubscriptionGroupConfig(g.Name)
	c.ConsumeEnable, c.ConsumeFromMinEnable, c.ConsumeBroadcastEnable = g.ConsumeEnable, g.FromMinEnable, g.BroadcastEnable
	c.ConsumeMessageOrderly, c.RetryQueueNums, c.RetryMaxTimes = g.Orderly, g.RetryQueues, g.RetryMaxTimes
	c.BrokerId, c.WhichBrokerWhenConsumeSlowly = g.BrokerID, g.SlowBrokerID
	c.NotifyConsumerIdsChangedEnable, c.GroupSysFlag, c.ConsumeTimeoutMinute = g.NotifyIDsChanged, g.SysFlag, g.TimeoutMinutes
	c.Attributes = g.Attributes
	if c.Attributes == nil {
		c.Attributes = map[string]string{}
	}
	if g.RetryPolicy != "" {
		// It was written by groupEntry, so it can be read.
		if err := protocol.ParseJSON([]byte(g.RetryPolicy), &c.GroupRetryPolicy); err != nil {
			c.GroupRetryPolicy = protocol.GroupRetryPolicy{Type: protocol.RetryCustomized}
		}
	}
	return c
}

// groupEntry is the same the other way round.
func groupEntry(c *protocol.SubscriptionGroupConfig) entry.Group {
	g := entry.Group{
		Name: c.GroupName, ConsumeEnable: c.ConsumeEnable, FromMinEnable: c.ConsumeFromMinEnable, BroadcastEnable: c.ConsumeBroadcastEnable,
		Orderly: c.ConsumeMessageOrderly, RetryQueues: c.RetryQueueNums, RetryMaxTimes: c.RetryMaxTimes, BrokerID: c.BrokerId,
		SlowBrokerID: c.WhichBrokerWhenConsumeSlowly, NotifyIDsChanged: c.NotifyConsumerIdsChangedEnable, SysFlag: c.GroupSysFlag,
		TimeoutMinutes: c.ConsumeTimeoutMinute, Attributes: c.Attributes,
	}
	if p := c.GroupRetryPolicy; p.Type != protocol.RetryCustomized || p.CustomizedRetryPolicy != nil {
		g.RetryPolicy = string(protocol.AppendJSON(nil, &p))
	}
	if len(g.Attributes) == 0 {
		g.Attributes = nil
	}
	return g
}

// UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200)
func updateGroup(ctx context.Context, r *request) *protocol.Command {
	var body protocol.SubscriptionGroupConfig
	if err := protocol.ParseJSON(r.Body, &body); err != nil {
		return r.fail(err)
	}
	if err := r.d.b.PutGroup(ctx, groupEntry(&body), r.actor()); err != nil {
		return r.fail(err)
	}
	return r.ok()
}

// UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225)
func updateGroupList(ctx context.Context, r *request) *protocol.Command {
	var body protocol.SubscriptionGroupList
	if err := protocol.ParseJSON(r.Body, &body); err != nil {
		return r.fail(err)
	}
	for i := range body.GroupConfigList {
		if err := r.d.b.PutGroup(ctx, groupEntry(&body.GroupConfigList[i]), r.actor()); err != nil {
			return r.fail(err)
		}
	}
	return r.ok()
}

// DELETE_SUBSCRIPTIONGROUP (207)
func deleteGroup(ctx context.Context, r *request) *protocol.Command {
	var h protocol.DeleteSubscriptionGroupRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	if err := r.d.b.DeleteGroup(ctx, h.GroupName, h.CleanOffset, r.actor()); err != nil {
		return r.fail(err)
	}
	return r.ok()
}

// GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201)
func allGroups(_ context.Context, r *request) *protocol.Command {
	var h protocol.GetAllSubscriptionGroupRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	groups, counter, changed := r.d.b.Groups()
	body := protocol.SubscriptionGroupWrapper{
		DataVersion:            protocol.DataVersion{Counter: counter, Timestamp: changed},
		ForbiddenTable:         map[string]map[string]int32{},
		SubscriptionGroupTable: map[string]protocol.SubscriptionGroupConfig{},
	}
	total := len(groups)
	if h.HasGroupSeq || h.HasMaxGroupNum {
		groups = page(groups, h.GroupSeq, h.MaxGroupNum, h.DataVersion, body.DataVersion)
	}
	for i := range groups {
		body.SubscriptionGroupTable[groups[i].Name] = groupConfig(&groups[i])
	}
	a := r.json(protocol.AppendJSON(nil, &body))
	a.Ext.SetInt("totalGroupNum", int64(total))
	return a
}

// maxPage is the most that one answer of a paged table holds.
const maxPage = 2000

// page cuts a page out of a table; a table that has changed since the first page begins anew.
func page[T any](all []T, seq, n int32, asked string, now protocol.DataVersion) []T {
	var v protocol.DataVersion
	if asked == "" || protocol.ParseJSON([]byte(asked), &v) != nil || v != now {
		seq = 0
	}
	if n <= 0 || n > maxPage {
		n = maxPage
	}
	from := min(max(int(seq), 0), len(all))
	return all[from:min(from+int(n), len(all))]
}

// GET_SUBSCRIPTIONGROUP_CONFIG (352): makes the group when that is allowed, as RocketMQ does.
func getGroup(ctx context.Context, r *request) *protocol.Command {
	var h protocol.GetSubscriptionGroupRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	g, ok := r.d.b.Group(h.Group)
	if !ok {
		if err := r.d.b.EnsureGroups(ctx, []string{h.Group}); err != nil {
			return r.fail(err)
		}
		if g, ok = r.d.b.Group(h.Group); !ok {
			return r.fail(&broker.Error{Reason: broker.GroupNotFound, Text: "No group in this broker. group: " + h.Group})
		}
	}
	c := groupConfig(&g)
	return r.json(protocol.AppendJSON(nil, &c))
}
