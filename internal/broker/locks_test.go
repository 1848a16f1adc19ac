package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// remoting.md §6.8: leases, to the moment.
func TestLocksEndWithTheirLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocks(func() time.Duration { return time.Minute })
		q := []QueueID{{"T", 0}, {"T", 1}}
		one, two := &Client{ID: "c1"}, &Client{ID: "c2"}
		require.Equal(t, q, l.take("G", "c1", q))
		<-time.After(time.Minute - 1)
		require.Empty(t, l.take("G", "c2", q))
		require.True(t, l.held("G"))
		require.True(t, l.denies("G", "T", 0, two))
		require.False(t, l.denies("G", "T", 0, one))
		require.False(t, l.denies("G", "T", 0, nil), "who has not said who it is may be the owner")
		require.False(t, l.denies("G", "T", 2, two))
		require.Equal(t, q[:1], l.take("G", "c1", q[:1]), "renewed")
		<-time.After(1)
		require.Equal(t, q[1:], l.take("G", "c2", q))
		require.False(t, l.denies("G", "T", 1, two))
		require.True(t, l.denies("G", "T", 1, one))
		<-time.After(2 * time.Minute)
		require.False(t, l.held("G"))
		require.False(t, l.denies("G", "T", 1, one))
		require.Equal(t, int64(2), l.count.Load())
		l.expire()
		require.Zero(t, l.count.Load())
		require.Empty(t, l.groups)
	})
}

func TestLocksAreGivenBackByTheirOwner(t *testing.T) {
	l := newLocks(func() time.Duration { return time.Minute })
	l.take("G", "c1", []QueueID{{"T", 0}, {"T", 1}})
	l.take("G", "c2", []QueueID{{"T", 0}, {"T", 2}})
	l.take("H", "c2", nil)
	l.giveBack("G", "c2", []QueueID{{"T", 0}, {"T", 7}})
	require.Equal(t, int64(3), l.count.Load())
	l.release("G", "c1")
	l.release("G", "c1")
	require.Equal(t, int64(1), l.count.Load())
	l.expire()
	require.True(t, l.held("G"))
	l.giveBack("G", "c2", []QueueID{{"T", 2}})
	require.Zero(t, l.count.Load())
	require.Empty(t, l.groups, "nothing is left of groups")
}
