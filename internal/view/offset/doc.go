// Package offset is the view of how far consumer groups have consumed.
//
// It folds CommitOffsets, which never take an offset back, and ResetOffsets,
// which set it to any value and name who asked for it. A reset may bind: until
// the group's next pull of the queue was told of it, commits are void.
//
// An offset is the next message to be consumed. Read under the shard's state lock
// (shared), changed under it (exclusive).
//
// Files: view.go (fold and queries), store.go (load and checkpoint).
package offset
