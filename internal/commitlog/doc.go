// Package commitlog is the log of a shard: segments of frames on the disk, and their newest part in memory.
//
// A frame is one raft entry: a header with a CRC, and a payload that means nothing here. Frames get consecutive positions; where a frame lies
// follows from the sizes of those before it alone, so positions are equal on all replicas. docs/formats/log.md and frame.go draw the layout.
//
// # Who calls what
//
// The main type is [Log]. [Open] locks a directory, [Log.Recover] verifies the log from a checkpoint on and makes it ready. Then there are two kinds
// of callers:
//
//   - The tail's holder, one at a time, and serialized by the caller: [Log.Reserve], [Log.Seal] (or [Log.AppendFrame] on a follower), [Log.Write],
//     [Log.Rollback], [Log.Truncate], [Log.EnsureRoom]. None of the calls that a batch takes allocates.
//   - Any goroutine: [Log.Sync], [Log.Hot], [Log.Read], [Log.Gather], [Log.Resident], [Log.ReadAhead], [Log.FrameAt], [Log.Iterate], [Log.Segments],
//     [Log.Drop], [Log.WriteBack] and the positions.
//
// A batch:
//
//	buf, pos, err := log.Reserve(len(payload)) // memory in the ring
//	copy(buf[commitlog.HeaderSize:], payload)
//	log.Seal(buf, commitlog.Header{Kind: commitlog.KindMessages, Term: term, Index: index, Time: now})
//	err = log.Write() // one pwrite for all that was sealed
//	err = log.Sync()  // may run on another goroutine, beside the next batch
//
// Start ≤ Synced ≤ Written ≤ Tail. What is below Synced survives a power cut, below Written the end of the process; what is between Written and Tail
// is in the ring only.
//
// # Errors
//
// A full disk is [ErrFull]: nothing is lost, the write can be tried again or rolled back. Any other failed write, and any failed sync, is the end of
// the log ([ErrFailed], [*FailedError]): from then on every call that changes it says so. Damage has a place ([*CorruptError]) and is never repaired silently.
//
// # Reads
//
// The newest bytes come from the ring, older ones that the page cache has from a read-only map (Linux), the rest with pread. Nothing is written
// through a map. Readers never wait for the tail's holder; it waits for a reader only if that copies from memory which is about to be used again.
//
// # What it does not do
//
// It knows neither raft's rules (beyond: terms never fall, indexes have no gaps) nor records, decides nothing about retention, and keeps no index: a
// position must be remembered by whoever wants to read there.
//
// # Goroutines and files
//
// One goroutine a log, begun by Recover and ended by Close (ahead.go): it makes the next segment before it is needed and, with [Options.Prewrite],
// writes zeros ahead of the tail.
//
//	frame.go             the layout, encoding and checks
//	ring.go, ring_*.go   the newest part in memory, and the protocol between its writer and readers
//	segment.go, map_*.go a file: opening, allocating, reading, mapping, reference counts
//	log.go, table.go     the log's state, the list of segments, retention
//	append.go            from Reserve to Sync
//	cut.go               Rollback and Truncate
//	ahead.go, room.go    segments and zeros ahead of the tail, and whether there is room for them
//	scan.go, recover.go  reading segments from front to back, and recovery
//	read.go, gather.go   reads of a running log
//	verify.go, walk.go   reads without the lock, for tools
//	disk.go              early write-back
//
// Everything goes through vfs.FS, so that tests cut the power and let the disk fail at every step (crash_test.go, error_test.go). The stories of
// testdata/*.txt show recovery by example; `go test -run Stories -rewrite` writes them anew.
package commitlog
