package broker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

// quiet is a client that is never told anything.
type quiet struct{}

func (quiet) ConsumersChanged(string)                       {}
func (quiet) CheckTransaction(*TransactionCheck)            {}
func (quiet) Addr() netip.AddrPort                          { return netip.AddrPort{} }
func (quiet) PushReply(context.Context, *PushedReply) error { return nil }

func TestLagsAndGauges(t *testing.T) {
	b, _, err := Open(Options{Shard: shard.Options{FS: vfs.NewMem(), Dir: "a", SegmentBytes: 1 << 20, RingBytes: 1 << 20}, Config: Defaults()})
	require.NoError(t, err)
	ctx := t.Context()
	require.NoError(t, b.Ready())
	base := b.Gauges()
	for i := range 3 {
		topic := fmt.Sprint("T", i)
		require.NoError(t, b.PutTopic(ctx, entry.Topic{Name: topic, ReadQueues: 2, WriteQueues: 2, Perm: 6}, "test"))
		for k := range 10 * (i + 1) {
			_, _, err := b.ColdSend(ctx, &SendRequest{Topic: []byte(topic), QueueID: int32(k % 2), Body: []byte("x"), MaxReconsume: -1})
			require.NoError(t, err)
		}
	}
	require.NoError(t, b.EnsureGroups(ctx, []string{"G", "H"}))
	commit(t, b, "G", "T0", 0, 5)
	commit(t, b, "G", "T1", 0, 4)
	commit(t, b, "H", "T2", 1, 15)
	p := b.coldPass()
	p.Begin(&shard.Batch{})
	p.Beat(&Client{ID: "c", Peer: quiet{}}, &Heartbeat{Producers: []string{"P"}, Consumers: []*Consumer{{Group: "G"}}})
	p.End()

	list, left := b.Lags(10)
	require.Zero(t, left)
	require.Equal(t, []GroupLag{{"G", "T0", 5, 1}, {"G", "T1", 16, 1}, {"H", "T2", 15, 0}}, list, "the second queue of each counts from its beginning")
	list, left = b.Lags(2)
	require.Equal(t, 1, left)
	require.Equal(t, []GroupLag{{"G", "T1", 16, 1}, {"H", "T2", 15, 0}}, list, "the largest, by name")
	list, left = b.Lags(-1)
	require.Empty(t, list)
	require.Equal(t, 3, left)

	g := b.Gauges()
	require.Equal(t, base.Topics+5, g.Topics, "with the retry topics")
	require.Equal(t, base.Queues+8, g.Queues)
	require.Equal(t, base.Groups+2, g.Groups)
	require.Equal(t, [4]int{1, 1, 1, 1}, [4]int{g.Clients, g.Consumers, g.ConsumerGroups, g.ProducerGroups})
	require.NoError(t, b.DeleteTopic(ctx, "T0", "test"))
	require.Equal(t, g.Queues-2, b.Gauges().Queues)

	b.refusing.Store(&Error{Unavailable, "no room"})
	require.EqualError(t, b.Ready(), "no room")
	require.NoError(t, b.Close())
	require.ErrorIs(t, b.Ready(), errFailed)
}

func commit(t *testing.T, b *Broker, group, topic string, queue int32, at int64) {
	t.Helper()
	err := b.do(context.Background(), &entry.CommitOffsets{Group: group, Topic: topic, Items: []entry.QueueAt{{Queue: queue, Offset: message.QueueOffset(at)}}})
	require.NoError(t, err)
}

func TestReasonsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for r := range Reasons {
		name := Reason(r).String()
		require.NotEmpty(t, name)
		require.False(t, seen[name], name)
		seen[name] = true
	}
	require.Equal(t, "internal", Reason(200).String())
	require.Equal(t, Busy, AsError(fmt.Errorf("x: %w", shard.ErrBusy)).Reason)
	require.Equal(t, Internal, AsError(errors.New("x")).Reason)
}
