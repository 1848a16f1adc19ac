// Package catalog is what the views of configuration have in common: a table of
// named rows that commands put and delete, which remembers what changed since the
// last checkpoint and counts its changes.
//
// The main type is [Table]. Packages view/topic and view/group say by a [Definition]
// what a row is, which commands change it, and under which prefix it is kept.
//
// Read under the shard's state lock (shared), changed under it (exclusive).
//
// Files: table.go.
package catalog
