package waiters

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyThoseWhoAreParkedAreNotified(t *testing.T) {
	var l List
	require.True(t, l.Empty())
	got := make([]int, 4)
	ws := make([]Waiter, 4)
	for i := range ws {
		ws[i].Notify = func() { got[i]++ }
		l.Park(&ws[i])
	}
	ws[1].Leave()
	ws[1].Leave()
	l.NotifyAll()
	require.Equal(t, []int{1, 0, 1, 1}, got)
	ws[3].Leave() // head
	ws[0].Leave() // tail
	l.NotifyAll()
	require.Equal(t, []int{1, 0, 2, 1}, got)
	require.True(t, ws[2].Parked())
	ws[2].Leave()
	require.True(t, l.Empty())
	l.Park(&ws[1])
	require.False(t, l.Empty())
}
