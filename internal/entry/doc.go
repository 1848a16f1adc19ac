// Package entry defines what an entry of a shard's log says besides messages: its commands.
//
// The payload of an entry's frame is a run of stored message records (as many as
// the frame's header counts), followed by a run of commands:
//
//	┌──────────┬──────────┬─────┬───────────┬───────────┬─────┐
//	│ record 1 │ record 2 │  …  │ command 1 │ command 2 │  …  │
//	└──────────┴──────────┴─────┴───────────┴───────────┴─────┘
//	command:  kind u8 │ length uvarint │ body (protobuf wire format)
//
// Records and commands of one entry are true together or not at all: "publish
// these messages and commit this offset" is one entry. Records fold first.
//
// Commands carry whatever is needed to fold them (the leader put it in); the time
// is that of the frame. Those that come from an administrator carry who it was.
//
// The package is pure data: [Command] is what all commands can do, [Append]
// writes one, [Reader] reads a run. docs/formats/entries.md lists all fields.
//
// Files: command.go (the run), topic.go, group.go, offset.go, system.go, txn.go (the
// commands), parse.go, wire.go (protobuf fields).
package entry
