// Package filter decides which messages a subscription wants.
//
// A tag expression ("*", or tags joined by "||") is matched in two stages: the
// 32-bit hash in the queue index first ([Filter.MatchTag]), the tag itself only on
// a hit ([Filter.MatchProperties]), so that a hash that two tags share lets nothing
// wrong through.
package filter
