package shard

import (
	"errors"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/message"
)

// Errors of a batch. Doors turn them into codes.
var (
	// ErrStopped: the shard has failed or was closed; nothing is accepted any more.
	ErrStopped = errors.New("shard is stopped")
	// ErrNotLeader: another replica leads.
	ErrNotLeader = errors.New("shard is not led by this node")
	// ErrFull: the disk has no room. Nothing was stored; it may be tried again.
	ErrFull = errors.New("disk is full")
	// ErrBusy: too much is under way that is not committed yet.
	ErrBusy = errors.New("too many uncommitted bytes")
	// ErrTooLarge: the batch does not fit into one frame.
	ErrTooLarge = errors.New("batch exceeds the largest frame")
	// ErrLost: another leader replaced the entry before it was committed. It was not stored.
	ErrLost = errors.New("entry was replaced by another leader's")
)

// Target is where messages go: it numbers them and indexes them. All methods are
// called by the tail's holder; Append under the state lock.
type Target interface {
	// Assign gives the next message its offset. The term tells one leadership from
	// another: with a new one, numbering begins again at what is folded.
	Assign(term uint64) message.QueueOffset
	// Rewind takes back the newest assignment, which was off.
	Rewind(off message.QueueOffset)
	// Append indexes a message. It returns false when the target is not what the log
	// would find under the message's topic and queue any more; the record is then folded by name.
	Append(off message.QueueOffset, pos message.Position, size int32, tag int64) bool
}

// Msg is one message of a batch.
type Msg struct {
	Target Target
	Start  int32 // of the record in Records
	Size   int32 // of the record
	Tag    int64 // hash of the tag, 0 without one
	// TimeAt is where in the record the store time is (message.StoreTimeAt).
	TimeAt int32
	// Watched says that further views than the queue index want the record.
	Watched bool
	// Gone is set when the message was stored but counts for nothing, because its topic was deleted meanwhile.
	Gone bool
	// Offset is set by the tail.
	Offset message.QueueOffset
}

// Key is a key by which a message is to be found.
type Key struct {
	Hash uint64
	Msg  int32 // number of the message
}

// Batch is what one door submits at once: message records with holes (queue offset,
// position, store time), and commands. It is true as a whole or not at all.
type Batch struct {
	Records  []byte
	Msgs     []Msg
	Keys     []Key  // of the messages, for the key index
	Commands []byte // run of commands, see package entry
	// Lazy says that nobody is told that the batch is stored: it need not be synced before it counts.
	Lazy bool
	// Term, when it is not 0, is the leadership (see [Shard.LeadingTerm]) in which the batch makes sense: it was decided
	// by what views said then. In another one it fails with ErrNotLeader.
	Term uint64
	// Done is called once, when the batch has been folded or has failed (Err); on the
	// submitting goroutine when it held the tail, else on the holder's. It must not block.
	Done func(*Batch)

	// What the tail says of it.
	Base message.Position // of Records[0] in the log
	Time int64            // store time, ms
	Err  error
}

// Reset makes the batch empty for the next use and keeps its memory.
func (b *Batch) Reset() {
	clear(b.Msgs) // no target is held by a batch that waits in a pool
	b.Records, b.Msgs, b.Keys, b.Commands = b.Records[:0], b.Msgs[:0], b.Keys[:0], b.Commands[:0]
	b.Lazy, b.Term, b.Base, b.Time, b.Err = false, 0, 0, 0, nil
}

// Empty says whether there is nothing in it.
func (b *Batch) Empty() bool { return len(b.Msgs) == 0 && len(b.Commands) == 0 }

// Command adds a command.
func (b *Batch) Command(c entry.Command) { b.Commands = entry.Append(b.Commands, c) }

// Position is where the record of message i is in the log, once the batch is done.
func (b *Batch) Position(i int) message.Position { return b.Base + message.Position(b.Msgs[i].Start) }

func (b *Batch) size() int { return len(b.Records) + len(b.Commands) }
