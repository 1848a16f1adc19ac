package txn

import (
	"fmt"
	"math"
	"sort"
	"strconv"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

// Open is a transaction that nobody has decided yet.
type Open struct {
	Position message.Position // of the half message's record
	Size     int32
	Offset   message.QueueOffset // in the queue of half messages
	Stored   int64               // ms
	Immunity int64               // ms after Stored in which its producer wants to be left alone; NoImmunity: as the broker says
	Checks   int32               // so often its producer was asked
	Next     int64               // ms, when to ask again; 0: it was not asked yet
	Group    string              // of producers
}

// NoImmunity is the immunity of a message that names none.
const NoImmunity = -1

// due is when its producer is to be asked, in ms. What names no immunity gets the broker's on top as long as it was not asked.
func (o *Open) due() int64 {
	switch {
	case o.Next != 0:
		return o.Next
	case o.Immunity != NoImmunity:
		return o.Stored + o.Immunity
	}
	return o.Stored
}

// Due is when its producer is to be asked, in ms, where the broker's immunity is immunity (ms).
func (o *Open) Due(immunity int64) int64 {
	if o.young() {
		return o.due() + immunity
	}
	return o.due()
}

// young says whether the broker's immunity counts.
func (o *Open) young() bool { return o.Next == 0 && o.Immunity == NoImmunity }

// item is an open transaction in its places.
type item struct {
	Open
	at    int // in the heap of its group
	ended bool
	saved bool // a checkpoint has it
}

// View is what is open, and what ended lately.
type View struct {
	open  map[message.Position]*item
	order []*item // by position; it may still hold some that ended
	dead  int     // so many
	// groups are those with open transactions.
	groups map[string]*group
	ended  ended

	changed map[message.Position]Open // since the last checkpoint
	gone    map[message.Position]struct{}
}

// New makes an empty view.
func New() *View {
	return &View{
		open: map[message.Position]*item{}, groups: map[string]*group{}, ended: newEnded(),
		changed: map[message.Position]Open{}, gone: map[message.Position]struct{}{},
	}
}

// Len is the number of open transactions.
func (v *View) Len() int { return len(v.open) }

// Get finds an open transaction by the position of its half message.
func (v *View) Get(half message.Position) (Open, bool) {
	it := v.open[half]
	if it == nil {
		return Open{}, false
	}
	return it.Open, true
}

// Ended finds what is remembered of a transaction that ended.
func (v *View) Ended(half message.Position) (Ended, bool) { return v.ended.get(half) }

// Oldest is the open transaction that was stored first.
func (v *View) Oldest() (Open, bool) {
	if len(v.order) == 0 {
		return Open{}, false
	}
	return v.order[0].Open, true // see end
}

// After appends up to limit open transactions with positions behind one, in their order; of one group of producers
// unless its name is empty.
func (v *View) After(dst []Open, behind message.Position, group string, limit int) []Open {
	from := sort.Search(len(v.order), func(i int) bool { return v.order[i].Position > behind })
	for _, it := range v.order[from:] {
		if limit <= 0 {
			break
		}
		if !it.ended && (group == "" || group == it.Group) {
			dst = append(dst, it.Open)
			limit--
		}
	}
	return dst
}

// Needs implements shard.Holder: the records of open transactions must stay.
func (v *View) Needs() message.Position {
	if o, ok := v.Oldest(); ok {
		return o.Position
	}
	return -1
}

// Commands implements shard.CommandView.
func (v *View) Commands() []entry.Kind {
	return []entry.Kind{entry.KindEndTransaction, entry.KindCheckTransaction}
}

// FoldCommand implements shard.CommandView.
func (v *View) FoldCommand(at shard.At, c entry.Raw) error {
	if c.Kind == entry.KindCheckTransaction {
		return v.foldCheck(c)
	}
	var e entry.EndTransaction
	if err := e.ParseBody(c.Body); err != nil {
		return err
	}
	it := v.open[e.Half]
	switch {
	case it != nil:
		v.end(it)
		v.ended.add(Ended{Half: e.Half, Offset: it.Offset, Decision: e.Decision, Time: at.Time})
	case e.Decision == entry.Resume: // what was given up is not open
		v.ended.add(Ended{Half: e.Half, Decision: e.Decision, Time: at.Time})
	}
	return nil
}

func (v *View) foldCheck(c entry.Raw) error {
	var k entry.CheckTransaction
	if err := k.ParseBody(c.Body); err != nil {
		return err
	}
	it := v.open[k.Half]
	if it == nil {
		return nil
	}
	v.groups[it.Group].remove(it)
	it.Checks, it.Next = k.Checks, k.Next
	v.groups[it.Group].add(it)
	v.changed[it.Position] = it.Open
	return nil
}

// FoldRecord implements shard.RecordView.
func (v *View) FoldRecord(at shard.At, record []byte) (bool, error) {
	var r message.Record
	if _, err := r.Parse(record); err != nil {
		return false, fmt.Errorf("record at %d: %w", at.Position, err)
	}
	if string(r.Topic) != message.TopicHalf {
		return true, nil
	}
	group, ok := message.Property(r.Properties, message.PropertyProducerGroup)
	if !ok {
		return true, nil // not put there by us: there is nobody to ask, or to answer
	}
	it := &item{Open: Open{
		Position: at.Position, Size: int32(len(record)), Offset: r.QueueOffset, Stored: at.Time, Immunity: immunity(r.Properties), Group: string(group),
	}}
	v.add(it)
	v.changed[it.Position] = it.Open
	return true, nil
}

// immunity is what a message names as its immunity, in ms. Like RocketMQ it takes what is no number for nothing.
func immunity(props []byte) int64 {
	text, ok := message.Property(props, message.PropertyCheckImmunityTime)
	if !ok {
		return NoImmunity
	}
	seconds, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || seconds < 0 {
		return NoImmunity
	}
	return min(seconds, math.MaxInt32) * 1000
}

// add puts a transaction into its places. REQUIRES: its position is behind all others'.
func (v *View) add(it *item) {
	v.open[it.Position] = it
	v.order = append(v.order, it)
	g := v.groups[it.Group]
	if g == nil {
		g = &group{}
		v.groups[it.Group] = g
	}
	g.add(it)
}

// end takes a transaction out of its places.
func (v *View) end(it *item) {
	delete(v.open, it.Position)
	g := v.groups[it.Group]
	if g.remove(it); g.empty() {
		delete(v.groups, it.Group)
	}
	delete(v.changed, it.Position)
	if it.saved {
		v.gone[it.Position] = struct{}{}
	}
	it.ended = true
	if v.dead++; v.order[0].ended || v.dead > len(v.order)/2 {
		v.tidy()
	}
}

// tidy takes what ended out of the order: always at its head, elsewhere when that is half of it.
func (v *View) tidy() {
	n := 0
	for n < len(v.order) && v.order[n].ended {
		v.order[n] = nil
		n++
	}
	v.order, v.dead = v.order[n:], v.dead-n
	if v.dead <= len(v.order)/2 {
		return
	}
	kept := v.order[:0]
	for _, it := range v.order {
		if !it.ended {
			kept = append(kept, it)
		}
	}
	clear(v.order[len(kept):])
	v.order, v.dead = kept, 0
}
