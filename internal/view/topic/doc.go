// Package topic is the view of the topics' configuration: queues, permissions, attributes.
//
// It folds PutTopic and DeleteTopic and answers what a topic is like. The data
// version counts changes, as name servers and tools of RocketMQ expect.
//
// Read under the shard's state lock (shared), changed under it (exclusive).
//
// The table itself is of package catalog. Files: view.go.
package topic
