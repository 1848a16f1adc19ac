package entry

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseAnyCommand(t *testing.T) {
	seen := map[string]bool{}
	for kind, of := range kinds {
		c := of.make()
		require.Equal(t, kind, c.Kind())
		r := NewReader(Append(nil, c))
		raw, ok := r.Next()
		require.True(t, ok)
		got, err := raw.Parse()
		require.NoError(t, err)
		require.IsType(t, c, got)
		require.False(t, seen[kind.String()])
		seen[kind.String()] = true
	}
	for k := KindPutTopic; k <= KindCheckTransaction; k++ {
		require.Contains(t, kinds, k)
	}
	_, err := Raw{Kind: 200}.Parse()
	require.ErrorIs(t, err, ErrMalformed)
	require.ErrorContains(t, err, "kind 200")
	_, err = Raw{Kind: KindPutTopic, Body: []byte{0xFF}}.Parse()
	require.ErrorContains(t, err, "put topic")
}
