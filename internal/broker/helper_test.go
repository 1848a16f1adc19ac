package broker

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/filter"
)

func mustFilter(tb testing.TB, expression string) filter.Filter {
	tb.Helper()
	f, err := filter.Parse("TAG", expression)
	require.NoError(tb, err)
	return f
}

// testContext is a context that ends with the test, or before.
func testContext(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx, cancel
}
