package entry

import "fmt"

// kinds names the kinds and makes commands of them.
var kinds = map[Kind]struct {
	name string
	make func() Command
}{
	KindPutTopic:      {"put topic", func() Command { return new(PutTopic) }},
	KindDeleteTopic:   {"delete topic", func() Command { return new(DeleteTopic) }},
	KindPutGroup:      {"put group", func() Command { return new(PutGroup) }},
	KindDeleteGroup:   {"delete group", func() Command { return new(DeleteGroup) }},
	KindCommitOffsets: {"commit offsets", func() Command { return new(CommitOffsets) }},
	KindResetOffsets:  {"reset offsets", func() Command { return new(ResetOffsets) }},
	KindDropLog:       {"drop log", func() Command { return new(DropLog) }},
	KindTimerDone:     {"timer done", func() Command { return new(TimerDone) }},
	KindPutSetting:    {"put setting", func() Command { return new(PutSetting) }},

	KindEndTransaction:   {"end transaction", func() Command { return new(EndTransaction) }},
	KindCheckTransaction: {"check transaction", func() Command { return new(CheckTransaction) }},
}

// String names the kind.
func (k Kind) String() string {
	if of, ok := kinds[k]; ok {
		return of.name
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// Parse reads the command, whichever it is. The error is ErrMalformed, also for a kind that this program does not know.
func (c Raw) Parse() (Command, error) {
	of, ok := kinds[c.Kind]
	if !ok {
		return nil, fmt.Errorf("%w: %v is not known here", ErrMalformed, c.Kind)
	}
	command := of.make()
	if err := command.ParseBody(c.Body); err != nil {
		return nil, fmt.Errorf("read command to %v: %w", c.Kind, err)
	}
	return command, nil
}
