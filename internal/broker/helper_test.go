package broker

import (
	"context"
	"testing"
)

// testContext is a context that ends with the test, or before.
func testContext(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx, cancel
}
