// Package message is the vocabulary that everything else shares: what a message
// is, how it is stored, what its parts are called and which names are allowed.
//
// # What it does
//
//   - [Record] is a stored message; [AppendRecord] and [Record.Parse] are its
//     codec. The bytes are exactly those that RocketMQ stores and that classic
//     consumers read, so a record can be sent as it lies in the log.
//   - [Property], [Properties] and [AppendProperty] work on a properties string
//     in place. Property… constants name the well-known properties.
//   - [BatchReader] walks the members of a client-side batch.
//   - [TagHash] is the hash by which queues are filtered.
//   - [AppendOffsetID], [ParseOffsetID], [NewUniqueKey] make and read message ids.
//   - [ValidTopic], [ValidGroup], [RetryTopic] and their neighbours are the rules
//     of names.
//
// # What it does not
//
// No input or output, no goroutines, no clock except in the unique keys. It does
// not compress, does not decide where a message goes, and knows no protocol.
//
// # Speed
//
// AppendRecord, Record.Parse, Property, TagHash, BatchReader and AppendUniqueKey
// run once or more for every message and do not allocate. What they return
// aliases what they were given.
//
// # Files
//
//	record.go    Record, its encoding, the holes that the log's tail fills in
//	property.go  the properties string and the names of properties
//	batch.go     bodies of batch sends
//	id.go        offset ids and unique keys
//	name.go      names of topics and groups
//	hash.go      the tag hash
//	sysflag.go   the bits of a record's sysFlag
//	errors.go    what can be wrong
package message
