// Package waiters holds those who wait for something to arrive: a long poll is a
// small struct in a list, not a goroutine.
//
// A [List] belongs to what is waited for (a queue). Who waits embeds a [Waiter],
// parks it, and is told by its Notify when something has arrived; it then looks
// again and stays parked until it leaves. A waiter parks while it holds off
// arrivals (the shard's state lock, shared), so nothing can arrive unnoticed
// between looking and parking.
package waiters
