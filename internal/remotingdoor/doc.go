// Package remotingdoor serves the classic protocol: it decodes a request, calls one
// use case of the broker or the name server, and encodes the answer. It decides
// nothing.
//
// The main type is [Door]; each driver of connections has a worker of it
// (remoting.Worker). Two kinds of requests:
//
//   - hot ones (send, pull, heartbeat, offsets, locks) are served in the driver's
//     pass and never block. What changes state goes into the pass's batch; the
//     answers are written when the batch is done, which is in the same pass as a rule.
//   - cold ones (administration, searches, whatever needs the disk) run on the
//     broker's pool with a copy of the request, and their answers are posted. Replies
//     (324, 325) wait for another client, so they do that apart from the pool.
//
// table.go names all codes and their handlers. A handler stands in the file of its
// family: send.go (10, 310, 320), reply.go (324, 325, 326), pull.go (11, 361),
// query.go (12), client.go (34, 35, 38, 46), offset.go (14, 15, 29 to 32), txn.go (37, 39, 323), lock.go (41, 42),
// sendback.go (33, 36), topic.go, group.go, stats.go, config.go. worker.go is the pass, flight.go what waits for its batch,
// answer.go the hot answers, errors.go the only place where reasons become codes.
package remotingdoor
