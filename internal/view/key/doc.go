// Package key is the view that finds messages by their keys: by the unique key that
// every message has, and by the words of its property KEYS.
//
// A key is kept as a hash of topic and key with the position of the record. Those
// since the last checkpoint are in memory, in the order of the log; a checkpoint
// sorts them by hash and writes them as a run, a file that is not changed any more.
// Small runs that follow each other are merged, and runs go with the part of the log
// that they are about. There is nothing in memory for what is in a run, and looking
// there for a key takes two reads.
//
// Two keys may have the same hash, and a position may be before the start of the
// log: who asks reads the records and compares.
//
// The main types are [View] and [Search]. [Of] makes the hash of a key; on the
// leader it comes with the batch (shard.Batch.Keys), elsewhere it is made from the
// record.
//
// Files: view.go (fold, checkpoint, load), search.go (look-ups), run.go (the file),
// merge.go (sorting and merging), hash.go.
package key
