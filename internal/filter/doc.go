// Package filter decides which messages a subscription wants.
//
// The main type is [Filter], a parsed expression of one of two types:
//
//   - TAG: "*", or tags joined by "||". It is matched in two stages: the 32-bit hash
//     in the queue index first ([Filter.MatchTag]), the tag itself only on a hit
//     ([Filter.MatchProperties]), so that a hash that two tags share lets nothing
//     wrong through.
//   - SQL92: a condition over the properties, see package sql. It has the second
//     stage only.
//
// A [Parser] parses, and remembers the SQL92 expressions of late: the same ones come
// again with each heartbeat of each member of a group, and with each pull of clients
// that send them along.
//
// What it does not do: read messages, or know who subscribes.
//
// Goroutines: none; a Parser may be used by any number. Files: filter.go, parser.go.
package filter
