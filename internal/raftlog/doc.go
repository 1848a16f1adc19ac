// Package raftlog replicates a shard's log with raft; the commit log is raft's storage.
//
// An entry is written once: as a frame of the commit log. raft itself
// (go.etcd.io/raft/v3, a passive state machine without clock, disk or network)
// copies what it is given, so it sees only a 16-byte descriptor of the frame
// (position, size); the bytes travel beside it in [Message.Frames]. Only the
// term and the vote live outside the log, in a small file of two alternating
// checksummed slots.
//
// The main type is [Node]. It has no goroutine and no lock: whoever holds the
// shard's tail drives it.
//
//	leader:   Reserve/Seal frames in the log → Propose → Pump → (written, synced, sent, committed) → Apply
//	follower: Step(message with frames)      → Pump → (frames appended to the log, synced, answered) → Apply
//
// Pump handles everything that is ready: entries are written and synced before
// messages leave, and committed entries are handed to the shard in order.
//
// Positions are equal on all replicas: the frames are the leader's bytes, and the
// padding between them follows a rule.
//
// Files: node.go (the driver), storage.go (raft's view of the log), state.go
// (term and vote), message.go (what travels).
//
// This is the only package that imports raft.
package raftlog
