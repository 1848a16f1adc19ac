// Package shard is one replicated log with the views that are folded from it.
//
// It puts together the commit log, raft and the store of the views' checkpoints,
// and knows what a view must be able to do ([View]), but none of the views.
//
//	Submit(batch) → tail: stamp, lay out one frame → write → raft → sync → commit → fold → Done(batch)
//
// The tail has one holder at a time. Whoever submits while nobody holds it becomes
// the holder, takes everything that waits, processes it as one entry and answers
// everybody; whoever finds it held leaves its batch and is told by its Done. So
// there is group commit without a timer, and an event loop processes its batch
// without any hand-over. When the disk is slow, the tail is held by a goroutine of
// its own instead, so that a sync does not stop an event loop.
//
// Folding happens inline, right after the commit, in log order, under the state
// lock; readers of views hold it shared ([Shard.RLock]).
//
// A checkpoint is taken every so many bytes of log: views say what changed, a
// background goroutine writes it together with the place in the log. Start is:
// load the checkpoint, fold the rest.
//
// Goroutines: Run (clock ticks, interval syncs, checkpoints by time), the tail's
// goroutine (only while the disk is slow), one for a checkpoint being written.
//
// Files: shard.go (opening, life), batch.go (what is submitted), tail.go (the
// holder), fold.go (committed entries), checkpoint.go, view.go (the seam to views).
package shard
