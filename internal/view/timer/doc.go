// Package timer is the view of messages that are to be delivered later.
//
// A delayed message is an ordinary record in one of two topics of the broker
// (SCHEDULE_TOPIC_XXXX for delay levels, rmq_sys_wheel_timer for other times), with
// its destination and the time when it is due in its properties. The view folds
// such records and TimerDone, which stands in the entry of the delivered copy, and
// keeps what is pending in order of time. Delivering is the leader's duty and the
// broker's work.
//
// Read under the shard's state lock (shared), changed under it (exclusive).
//
// Files: view.go (fold and queries), store.go (load and checkpoint).
package timer
