package broker

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

// asker is a client that takes replies, or does with them what do says.
type asker struct {
	quiet
	got []*PushedReply
	do  func(ctx context.Context) error
}

func (a *asker) PushReply(ctx context.Context, r *PushedReply) error {
	a.got = append(a.got, r)
	if a.do != nil {
		return a.do(ctx)
	}
	return nil
}

func replyTo(id string) *ReplyRequest {
	p := message.AppendProperty(nil, message.PropertyRegion, "of somebody else")
	return &ReplyRequest{SendRequest: SendRequest{
		Topic: []byte(message.ReplyTopic("DefaultCluster")), Body: []byte("x"), MaxReconsume: -1,
		Properties: message.AppendProperty(p, message.PropertyReplyToClient, id),
	}}
}

func openForReplies(t *testing.T) (*Broker, *asker) {
	b, _, err := Open(Options{Shard: shard.Options{FS: vfs.NewMem(), Dir: "a", SegmentBytes: 1 << 20, RingBytes: 1 << 20}, Config: Defaults()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	a := &asker{}
	b.clients.beat(&Client{ID: "c", Peer: a}, &Heartbeat{Producers: []string{"P"}})
	return b, a
}

func TestAReplyIsGivenAndStored(t *testing.T) {
	b, a := openForReplies(t)
	done, err := b.Reply(t.Context(), replyTo("c"))
	require.NoError(t, err)
	require.NotNil(t, done.Batch)
	require.Len(t, a.got, 1)
	region, _ := message.Property(a.got[0].Properties, message.PropertyRegion)
	require.Equal(t, "DefaultRegion", string(region), "the broker's own")
	_, pushed := message.Property(a.got[0].Properties, message.PropertyPushReplyTime)
	require.True(t, pushed)
	_, err = b.RawRecordAt(done.Batch.Position(done.First))
	require.NoError(t, err)
}

// A full disk takes no messages; a reply does not need it.
func TestAReplyIsGivenWhenTheDiskIsFull(t *testing.T) {
	b, a := openForReplies(t)
	b.refusing.Store(&Error{Unavailable, "no room"})
	done, err := b.Reply(t.Context(), replyTo("c"))
	require.NoError(t, err)
	require.Nil(t, done.Batch)
	require.Len(t, a.got, 1)
	r := replyTo("c")
	r.QueueID = 1
	_, err = b.Reply(t.Context(), r)
	require.Equal(t, InvalidQueue, AsError(err).Reason)
	require.Len(t, a.got, 1)
}

// A reply that is given and cannot be stored is no failure; one that is not given is.
func TestAReplyThatCannotBeStored(t *testing.T) {
	b, a := openForReplies(t)
	require.NoError(t, b.shard.Close())
	done, err := b.Reply(t.Context(), replyTo("c"))
	require.NoError(t, err)
	require.Nil(t, done.Batch)
	a.do = func(context.Context) error { return errors.New("gone") }
	_, err = b.Reply(t.Context(), replyTo("c"))
	require.Equal(t, ReplyFailed, AsError(err).Reason)
	require.EqualError(t, err, "push reply message to c fail: gone")
}

func TestASilentRequesterIsGivenUp(t *testing.T) {
	b, a := openForReplies(t)
	a.do = func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := b.Reply(ctx, replyTo("c"))
	require.Equal(t, ReplyFailed, AsError(err).Reason)
	require.EqualError(t, err, "push reply message to c fail: it has not answered in time")
}

// A client is found by its id as long as it has a producer, by its last heartbeat.
func TestWhoIsGivenAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newClients()
		one, two := &Client{ID: "c"}, &Client{ID: "c"}
		beat := func(c *Client, producers ...string) {
			<-time.After(time.Second)
			table.beat(c, &Heartbeat{Producers: producers, Consumers: []*Consumer{{Group: "G"}}})
		}
		beat(one)
		require.Nil(t, table.requester("c"), "it does not produce")
		beat(one, "P", "Q")
		require.Same(t, one, table.requester("c"))
		beat(two, "P")
		require.Same(t, two, table.requester("c"))
		beat(one, "P")
		require.Same(t, one, table.requester("c"))
		table.leave(one, "P", "", false)
		require.Same(t, one, table.requester("c"), "it has another producer")
		table.leave(one, "Q", "", false)
		require.Same(t, two, table.requester("c"))
		require.Nil(t, table.requester("C"))
		table.leave(two, "", "", true)
		require.Nil(t, table.requester("c"))
		table.leave(one, "", "", true)
		require.Empty(t, table.asking)
	})
}

func TestReplyLimits(t *testing.T) {
	b, _ := openForReplies(t)
	conf := *b.Config()
	conf.MaxReplies, conf.MaxMessageBytes = 2, 10
	b.Configure(conf)
	var running sync.WaitGroup
	hold := make(chan struct{})
	begin := func(size int) error {
		running.Add(1)
		err := b.GoReply(size, func() {
			<-hold
			running.Done()
		})
		if err != nil {
			running.Done()
		}
		return err
	}
	require.NoError(t, begin(1000), "one is taken whatever its size")
	require.ErrorContains(t, begin(1), "max-message-bytes")
	close(hold)
	running.Wait()
	require.Eventually(t, func() bool { return b.Gauges().Replies == 0 }, 10*time.Second, time.Millisecond)
	hold = make(chan struct{})
	require.NoError(t, begin(80))
	require.NoError(t, begin(80))
	err := begin(0)
	require.Equal(t, Busy, AsError(err).Reason)
	require.ErrorContains(t, err, "max-replies")
	close(hold)
	b.replies.close()
	require.Equal(t, Unavailable, AsError(begin(1)).Reason)
}
