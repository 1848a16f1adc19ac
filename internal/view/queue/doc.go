// Package queue is the view that finds messages: for every queue of every topic,
// which record stands at which offset.
//
// An index entry has 20 bytes (position, size, tag hash). Entries are kept in
// chunks of 64 consecutive offsets, the newest in memory, written to the store at
// checkpoints, where an entry takes about 3 bytes; there is no file, map, timer or goroutine per queue, and a queue
// that holds nothing costs a small struct.
//
// The main types are [View] (the fold, all topics), [Topic] and [Queue]. A Queue
// is also the sequencer of its messages (shard.Target): on the leader, the tail's
// holder takes offsets from it.
//
// Everything here is read under the shard's state lock (shared) and changed under
// it (exclusive), but for what says otherwise. Reads of entries that are not in
// memory answer [ErrCold]; [View.ReadStored] reads them without any lock.
//
// Files: view.go (fold and load), queue.go (append and read), chunk.go (memory),
// packed.go (chunks in the store), checkpoint.go, stored.go (reading the store), key.go (layout of keys).
package queue
