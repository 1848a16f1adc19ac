// Package protocol is the classic RocketMQ remoting protocol as data: frames, the two
// encodings of their headers, codes, typed headers and JSON bodies.
//
// # What it does
//
//   - [FrameSize] measures the frame at the front of a buffer, [Command.Decode] reads
//     it in place, [Command.Append] writes one. Both know the JSON and the binary
//     encoding. A Command is used again and again; then Decode does not allocate.
//   - [Ext] is the list of a command's ext fields. The typed headers, such as
//     [SendMessageRequest], read themselves from it and write themselves into it.
//     Their field names are the wire's with a capital letter (queueId is QueueId), so
//     that a search finds both.
//   - Req… and Resp… constants are the codes; [ReqName] and [RespName] name them.
//   - The bodies, such as [TopicRouteData] or [HeartbeatData], are Go structs.
//     [AppendJSON] writes them in the dialect of the Java library, which is not always
//     JSON (bare numbers and whole objects as keys), [AppendStandardJSON] in standard
//     JSON, and [ParseJSON] reads all that real clients send.
//   - [ParseRegisterBroker] and its neighbours are the body of a broker's
//     registration, which has a compressed form of its own.
//
// # What it does not
//
// No input or output, no goroutines, no clock. It does not know what a code does, it
// does not check names, and it never answers.
//
// # Generated code
//
// zz_generated_*.go come from the definitions in defs/ by `go generate
// ./internal/protocol`. A definition tells the fields of a header, which of them must
// be there, and what they mean; add a code or field there. defs/README.md explains the
// form.
//
// # Hostile bytes
//
// Decode, FrameSize and ParseJSON are total: any bytes give a value or an error that
// matches [ErrMalformed]. Depth is bounded, and the memory of a parsed body is bounded
// by a multiple of its size.
//
// # Files
//
//	command.go        Command, frames, encoding
//	ext.go            ext fields, the readers of typed headers
//	header_json.go    the JSON header; scan.go is the scanner below it
//	header_memo.go    headers that are like the one before: Decoder
//	header_binary.go  the ROCKETMQ header
//	language.go       languages of peers
//	text.go           JSON strings, escaped and back
//	dialect_*.go      bodies: reading and writing the Java library's dialect
//	body_*.go         bodies by family
//	errors.go         what can be wrong
package protocol

//go:generate go run ./gen
