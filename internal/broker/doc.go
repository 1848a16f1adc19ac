// Package broker has the use cases of a broker: send, pull, commit, and so on. It
// builds the views of a shard, connects them and answers the doors. It knows no
// protocol: doors decode, call one use case, encode.
//
// The main type is [Broker]. Hot use cases are methods of [Pass], which belongs to
// one driver of connections (an event loop, or a goroutine): between Begin and End
// views may be read, and everything that changes state is put into one batch, which
// End gives to the shard.
//
//	Begin → Send, Pull, Commit … → End → the batch is done → answers
//
// Hot use cases never block. What needs the disk, an entry of its own or much time
// answers [ErrCold]; the door then calls the cold twin on a goroutine of the pool
// ([Broker.Go]). What waits for a client does so on one of its own ([Broker.GoReply]).
//
// What is not in the log lives here too, in memory: clients (heartbeats), queue
// locks, waiting pulls.
//
// Goroutines: Run (deadlines of waiting pulls, delayed messages, checks of
// transactions, retention), the pool's, one for each reply on its way.
//
// Files: broker.go (assembly), config.go, errors.go, system.go (topics that are
// always there), pass.go, send.go, park.go (delayed messages), pull.go, match.go
// (pulls that filter), read.go, clients.go, locks.go, offsets.go, topics.go, groups.go, sendback.go, reply.go, timer.go, query.go,
// txn.go, decide.go and txncheck.go (transactions), txnadmin.go,
// retention.go, pool.go, info.go and gauges.go (what operators and metrics ask for).
package broker
