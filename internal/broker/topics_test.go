package broker

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

// Who shows topics to clients hears of each change, with the table as it then is.
func TestEachChangeOfTopicsIsTold(t *testing.T) {
	b, _, err := Open(Options{Shard: shard.Options{FS: vfs.NewMem(), Dir: "a", SegmentBytes: 1 << 20, RingBytes: 1 << 20}, Config: Defaults()})
	require.NoError(t, err)
	require.NoError(t, b.Ready())
	var told []string
	b.OnTopics(func(names []string) {
		for _, name := range names {
			state := "-"
			if topic, ok := b.Topic(name); ok {
				state = string('0' + byte(topic.WriteQueues))
			}
			told = append(told, name+state)
		}
	})
	next := func() []string {
		now := told
		told = nil
		return now
	}
	put := func(queues int32) error {
		return b.PutTopic(t.Context(), entry.Topic{Name: "T", ReadQueues: queues, WriteQueues: queues, Perm: 6}, "test")
	}
	require.NoError(t, put(1))
	require.NoError(t, put(2))
	require.NoError(t, put(2))
	require.Equal(t, []string{"T1", "T2"}, next(), "the same again is no change")
	require.NoError(t, b.EnsureGroups(t.Context(), []string{"A", "B"}))
	require.Equal(t, []string{message.RetryTopic("A") + "1", message.RetryTopic("B") + "1"}, next())
	g, ok := b.Group("A")
	require.True(t, ok)
	g.RetryQueues = 3
	require.NoError(t, b.PutGroup(t.Context(), g, "test"))
	require.Equal(t, []string{message.RetryTopic("A") + "3"}, next())
	require.NoError(t, b.DeleteTopic(t.Context(), "T", "test"))
	require.Equal(t, []string{"T-"}, next())
	require.NoError(t, b.Close())
}
