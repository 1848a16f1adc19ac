// Package kv keeps the checkpoints of the views in one ordered key-value store a shard.
//
// The store is Pebble without its own write-ahead log: our log is the
// write-ahead log. Every batch carries the place in the log up to which it is
// true ([Applied]), in the same atomic write, so that whatever survives a crash
// is a prefix of the log, and recovery folds on from exactly there.
//
// Keys begin with one byte that belongs to one view (its prefix); the store
// itself uses the prefix 0. Nothing else about views is known here.
//
// The main type is [Store]. Writers call [Store.NewBatch], fill it and pass it
// to [Store.Commit]; a batch may be lost by a crash until [Store.Flush] has
// returned. Readers ([Store.Get], [Store.Scan]) may run at any time, beside writers.
//
// A full disk makes a checkpoint wait until there is room, and any other error of the disk is final; what the log
// has is not concerned by either.
//
// What is too large for the engine lies in files beside it ([Store.WriteFile]).
//
// Files: store.go (the store), files.go (files beside it), batch.go (writes), applied.go (the place in the log), disk.go (full and failing disks).
//
// This is the only package that imports Pebble's engine.
package kv
