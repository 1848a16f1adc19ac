package timer

import (
	"container/heap"
	"fmt"
	"strconv"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

// Parked is a message that waits for its time.
type Parked struct {
	Due      int64 // ms
	Position message.Position
	Size     int32
}

// View is what is pending.
type View struct {
	pending map[message.Position]Parked
	order   order

	earlier bool // the earliest time changed since NextChanged was asked

	made, done map[message.Position]Parked // since the last checkpoint
}

// New makes an empty view.
func New() *View {
	return &View{pending: map[message.Position]Parked{}, made: map[message.Position]Parked{}, done: map[message.Position]Parked{}}
}

// Len is the number of pending messages.
func (v *View) Len() int { return len(v.pending) }

// Next is when the earliest pending message is due, in ms; ok is false when there is none.
func (v *View) Next() (due int64, ok bool) {
	if len(v.order) == 0 {
		return 0, false
	}
	return v.order[0].Due, true
}

// NextChanged says whether something became pending since the last call: whoever
// waits for Next should look again. Tail's holder only.
func (v *View) NextChanged() bool {
	was := v.earlier
	v.earlier = false
	return was
}

// Due appends up to limit pending messages that are due at now, the earliest first.
func (v *View) Due(dst []Parked, now int64, limit int) []Parked {
	// The heap is walked, not popped: messages leave the view only by TimerDone.
	if len(v.order) == 0 {
		return dst
	}
	walk := []int{0}
	for len(walk) > 0 && limit > 0 {
		best := 0
		for i := range walk {
			if v.order.before(walk[i], walk[best]) {
				best = i
			}
		}
		at := walk[best]
		if v.order[at].Due > now {
			break
		}
		if _, ok := v.pending[v.order[at].Position]; ok { // what is done may still be below something that came later
			dst = append(dst, v.order[at].Parked)
			limit--
		}
		walk[best] = walk[len(walk)-1]
		walk = walk[:len(walk)-1]
		for _, child := range []int{2*at + 1, 2*at + 2} {
			if child < len(v.order) {
				walk = append(walk, child)
			}
		}
	}
	return dst
}

// Needs implements shard.Holder: the records of pending messages must stay.
func (v *View) Needs() message.Position {
	least := message.Position(-1)
	for pos := range v.pending {
		if least < 0 || pos < least {
			least = pos
		}
	}
	return least
}

// Commands implements shard.CommandView.
func (v *View) Commands() []entry.Kind { return []entry.Kind{entry.KindTimerDone} }

// FoldCommand implements shard.CommandView.
func (v *View) FoldCommand(_ shard.At, c entry.Raw) error {
	var d entry.TimerDone
	if err := d.ParseBody(c.Body); err != nil {
		return err
	}
	p, ok := v.pending[d.Parked]
	if !ok {
		return nil
	}
	v.remove(p)
	if _, young := v.made[p.Position]; young {
		delete(v.made, p.Position)
	} else {
		v.done[p.Position] = p
	}
	return nil
}

// FoldRecord implements shard.RecordView.
func (v *View) FoldRecord(at shard.At, record []byte) (bool, error) {
	var r message.Record
	if _, err := r.Parse(record); err != nil {
		return false, fmt.Errorf("record at %d: %w", at.Position, err)
	}
	if string(r.Topic) != message.TopicSchedule && string(r.Topic) != message.TopicTimer {
		return true, nil
	}
	text, ok := message.Property(r.Properties, message.PropertyTimerOutMs)
	due, err := strconv.ParseInt(string(text), 10, 64)
	if !ok || err != nil {
		return true, nil // not parked by us: there is no telling when it would be due
	}
	p := Parked{Due: due, Position: at.Position, Size: int32(len(record))}
	v.add(p)
	v.made[p.Position] = p
	return true, nil
}

func (v *View) add(p Parked) {
	v.pending[p.Position] = p
	v.earlier = true
	heap.Push(&v.order, p)
}

func (v *View) remove(p Parked) {
	delete(v.pending, p.Position)
	// Delivered messages are at the top, or near it: what is done is dropped when it gets there.
	for len(v.order) > 0 {
		if _, ok := v.pending[v.order[0].Position]; ok {
			return
		}
		heap.Pop(&v.order)
	}
}

// order is a heap of parked messages by time, then position. It may still hold some that are done.
type order []item

type item struct{ Parked }

func (o order) before(i, j int) bool {
	if o[i].Due != o[j].Due {
		return o[i].Due < o[j].Due
	}
	return o[i].Position < o[j].Position
}

func (o order) Len() int           { return len(o) }
func (o order) Less(i, j int) bool { return o.before(i, j) }
func (o order) Swap(i, j int)      { o[i], o[j] = o[j], o[i] }

// Push implements heap.Interface.
func (o *order) Push(x any) { *o = append(*o, item{x.(Parked)}) }

// Pop implements heap.Interface.
func (o *order) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}
