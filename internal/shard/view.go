package shard

import (
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/message"
)

// At is the place and time of what is folded.
type At struct {
	Position message.Position // of the record, or of the frame that holds the command
	Index    uint64
	Time     int64 // ms, the leader's clock
}

// View is a deterministic fold over the log: no clock, no random number, no
// address, so that the same log gives the same view everywhere. Fold and
// Checkpoint are called under the state lock by one goroutine at a time.
type View interface {
	// Load restores the view from the last checkpoint. It is called once, before anything else.
	Load(s *kv.Store) error
	// Checkpoint takes down what changed since the last call, without copying more
	// than it must, and returns the function that writes it. That function runs in
	// the background, beside later folds; done is called once its batch is durable.
	Checkpoint() (write func(*kv.Batch), done func())
}

// CommandView is a view that folds commands.
type CommandView interface {
	View
	// Commands are the kinds that FoldCommand wants; several views may want the same kind.
	Commands() []entry.Kind
	// FoldCommand folds one command. An error means that the log says something impossible: the shard stops.
	FoldCommand(at At, c entry.Raw) error
}

// RecordView is a view that folds message records.
type RecordView interface {
	View
	// FoldRecord folds one stored record, which is valid until it returns. It says
	// whether the record counts: a message to a topic that is gone does not.
	FoldRecord(at At, record []byte) (counts bool, err error)
}

// KeyIndex is a view of keys that the leader has at hand ([Batch.Keys]): FoldRecord is
// called only for records whose batch is not.
type KeyIndex interface {
	RecordView
	// Append folds one key of the record at a place.
	Append(hash uint64, at At)
}

// Holder is a view that refers to bytes of the log itself.
type Holder interface {
	// Needs is the oldest position that the view may still read, or a negative number.
	Needs() message.Position
}
