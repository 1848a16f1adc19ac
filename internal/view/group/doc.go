// Package group is the view of the consumer groups' configuration.
//
// It folds PutGroup and DeleteGroup and answers what a group is like. The data
// version counts changes, as name servers and tools of RocketMQ expect.
//
// Read under the shard's state lock (shared), changed under it (exclusive).
//
// The table itself is of package catalog. Files: view.go.
package group
