// Package txn is the view of transactions: half messages that nobody has decided
// yet, and for a while those that were.
//
// A half message is an ordinary record in a topic of the broker
// (RMQ_SYS_TRANS_HALF_TOPIC), with its destination in its properties. It is never
// written again: how often its producer was asked is a command, CheckTransaction,
// and how it ended is another, EndTransaction, which stands in the entry of the
// message that becomes of it. The view folds all three and knows what is open, by
// position and, for each group of producers, by the time when to ask next. Asking,
// and giving up, is the leader's duty and the broker's work.
//
// What ended is remembered for a bounded time and number, so that a second decision
// gets a clear answer. Nothing depends on it: what is not open cannot be committed.
//
// Read under the shard's state lock (shared), changed under it (exclusive).
//
// Files: view.go (fold and queries), due.go (whom to ask when), ended.go (what
// ended), store.go (load and checkpoint).
package txn
