package remotingdoor

import (
	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/internal/shard"
)

// flight is a pass's batch with those who wait for it.
type flight struct {
	batch   shard.Batch
	sends   []sendReply
	commits []plainReply // of offsets and transactions
	keys    []byte       // unique keys of batches of messages
	decided decided
	w       *worker
}

// sendReply is somebody to be told where messages were stored.
type sendReply struct {
	s          *remoting.Session
	opaque     int32
	enc        protocol.Encoding
	sent       broker.Sent
	key, keyTo int32 // in keys, of a batch of messages
}

// decided is what decisions about transactions put into a batch.
type decided struct{ messages, bytes int }

// plainReply is somebody to be told that it is done.
type plainReply struct {
	s      *remoting.Session
	opaque int32
	enc    protocol.Encoding
}

// maxKept is the size up to which a flight's memory is kept for the next one.
const maxKept = 6 << 20

func (f *flight) reset() {
	f.batch.Reset()
	clear(f.sends)
	clear(f.commits)
	f.sends, f.commits, f.keys, f.decided = f.sends[:0], f.commits[:0], f.keys[:0], decided{}
	if cap(f.batch.Records) > maxKept {
		f.batch.Records, f.batch.Msgs = nil, nil
	}
}

// done is the batch's Done: it runs where the tail is held.
func (f *flight) done(*shard.Batch) {
	w := f.w
	w.mu.Lock()
	w.landed = append(w.landed, f)
	wake := !w.flushing
	w.mu.Unlock()
	if wake {
		w.driver.Wake()
	}
}
