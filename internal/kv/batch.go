package kv

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Batch is a set of changes that become true together. It belongs to one goroutine.
type Batch struct {
	b   *pebble.Batch
	err error
}

// Set gives key a value; both are copied.
func (b *Batch) Set(key, value []byte) { b.keep(b.b.Set(key, value, nil)) }

// Delete removes key; a key that is not there is no error.
func (b *Batch) Delete(key []byte) { b.keep(b.b.Delete(key, nil)) }

// DeleteRange removes all keys k with from <= k < to.
func (b *Batch) DeleteRange(from, to []byte) { b.keep(b.b.DeleteRange(from, to, nil)) }

// Fail makes the batch one that cannot be committed: something that belongs to it went wrong.
func (b *Batch) Fail(err error) { b.keep(err) }

func (b *Batch) keep(err error) {
	if b.err == nil && err != nil {
		b.err = fmt.Errorf("fill batch: %w", err)
	}
}
