package key

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

// Keys of the view in the store (part of the on-disk format):
//
//	'k' 'r' from u64  → to u64 │ count u64 │ first time i64 │ last time i64 (ms), a run
//	'k' 's'           → start of the log u64
const (
	prefix    = 'k'
	kindRun   = 'r'
	kindStart = 's'
)

// When so many small runs stand at the end, they become one.
const (
	mergeCount = 16
	smallRange = 512 << 20 // bytes of log
)

// View is the key index. What says nothing else is guarded by the shard's state lock.
type View struct {
	store   *kv.Store
	fresh   []item // since the last checkpoint
	writing []item // of the checkpoint that is being written
	first   int64  // store time of the oldest of fresh
	last    int64  // and of the newest of all
	runs    []*run // in the order of the log
	dead    []*run // that nothing names any more; the next checkpoint removes their files
	start   message.Position
	log     *slog.Logger
}

// New makes an empty view. What is damaged is logged: then some messages are not found by their keys, and nothing else is wrong.
func New(log *slog.Logger) *View { return &View{log: log} }

// Append implements shard.KeyIndex.
func (v *View) Append(hash uint64, at shard.At) {
	if len(v.fresh) == 0 {
		v.first = at.Time
	}
	v.first = min(v.first, at.Time) // the clock may have been set back
	v.last = max(v.last, at.Time)
	v.fresh = append(v.fresh, item{Hash(hash), at.Position})
}

// FoldRecord implements shard.RecordView.
func (v *View) FoldRecord(at shard.At, record []byte) (bool, error) {
	var r message.Record
	if _, err := r.Parse(record); err != nil {
		return false, fmt.Errorf("record at %d: %w", at.Position, err)
	}
	each(&r, func(h Hash) { v.Append(uint64(h), at) })
	return true, nil
}

// Commands implements shard.CommandView.
func (v *View) Commands() []entry.Kind { return []entry.Kind{entry.KindDropLog} }

// FoldCommand implements shard.CommandView.
func (v *View) FoldCommand(_ shard.At, c entry.Raw) error {
	var d entry.DropLog
	if err := d.ParseBody(c.Body); err != nil {
		return err
	}
	v.start = max(v.start, d.Before)
	return nil
}

// Last is the store time of the newest message that is found, ms, and where the index ends; both 0 without one.
// REQUIRES: the state lock, shared.
func (v *View) Last() (time int64, end message.Position) {
	for _, items := range [][]item{v.fresh, v.writing} {
		if n := len(items); n > 0 {
			return v.last, items[n-1].pos
		}
	}
	if n := len(v.runs); n > 0 {
		return v.last, v.runs[n-1].To - 1
	}
	return v.last, 0
}

// Checkpoint implements shard.View.
func (v *View) Checkpoint() (write func(*kv.Batch), done func()) {
	c := &checkpoint{v: v, store: v.store, items: v.fresh, start: v.start, first: v.first, last: v.last}
	for _, r := range v.runs {
		if r.To <= v.start {
			c.gone = append(c.gone, r)
		} else {
			c.runs = append(c.runs, r)
		}
	}
	c.dead, v.dead = v.dead, nil
	v.writing, v.fresh = v.fresh, make([]item, 0, len(v.fresh)+len(v.fresh)/8)
	return c.write, c.done
}

// checkpoint is one that is being written.
type checkpoint struct {
	v           *View
	store       *kv.Store
	items       []item
	start       message.Position
	first, last int64
	runs        []*run // how they will be
	gone        []*run // are no more then
	dead        []*run // of the checkpoint before
}

func (c *checkpoint) write(b *kv.Batch) {
	for _, r := range c.dead {
		_ = r.release() // a file that stays is removed at the next start
	}
	b.Set([]byte{prefix, kindStart}, binary.BigEndian.AppendUint64(nil, uint64(c.start)))
	err := c.addItems()
	if err == nil {
		err = c.merge()
	}
	if err != nil {
		b.Fail(err)
	}
	for _, r := range c.gone {
		b.Delete(r.key())
	}
	for _, r := range c.runs { // few; one that a merged run has replaced begins where that begins
		b.Set(r.key(), r.value())
	}
}

// addItems writes the new keys: one run, or several when they are about too much of the log.
func (c *checkpoint) addItems() error {
	for rest := c.items; len(rest) > 0; {
		n := len(rest)
		if rest[n-1].pos-rest[0].pos >= maxRange-1 {
			n, _ = slices.BinarySearchFunc(rest, rest[0].pos+maxRange-1, func(i item, p message.Position) int { return int(i.pos - p) })
		}
		s := span{From: rest[0].pos, To: rest[n-1].pos + 1, Count: uint64(n), First: c.first, Last: c.last}
		if err := c.add(s, &memorySource{sorted(rest[:n])}); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func (c *checkpoint) add(s span, from source) error {
	if err := c.store.WriteFile(s.name(), func(w io.Writer) error { return s.write(w, from) }); err != nil {
		return err
	}
	r, err := openRun(c.store, s)
	if err == nil {
		c.runs = append(c.runs, r)
	}
	return err
}

// merge makes one run of the small ones at the end.
func (c *checkpoint) merge() error {
	n := len(c.runs)
	for n > 0 && !c.runs[n-1].damaged && c.runs[n-1].To-c.runs[n-1].From < smallRange && c.runs[len(c.runs)-1].To-c.runs[n-1].From < maxRange {
		n--
	}
	small := c.runs[n:]
	if len(small) < mergeCount {
		return nil
	}
	s := span{From: small[0].From, To: small[len(small)-1].To, First: small[0].First}
	var sources []source
	for _, r := range small {
		s.Count += r.Count
		s.Last = max(s.Last, r.Last)
		sources = append(sources, newRunSource(r))
	}
	kept := c.runs
	c.runs = slices.Clone(kept[:n])
	all, err := newMerged(sources)
	if err == nil {
		err = c.add(s, all)
	}
	if bad, ok := errors.AsType[*damagedError](err); ok { // no reason to give up the checkpoint
		bad.run.damaged = true
		c.runs = kept
		c.v.log.Error("a part of the key index is damaged: some messages are not found by their keys", "error", err)
		return nil
	}
	if err == nil {
		c.gone = append(c.gone, small...)
	}
	return err
}

// done is called when the checkpoint is on the disk.
func (c *checkpoint) done() {
	c.v.runs, c.v.writing = c.runs, nil
	for _, r := range c.gone {
		r.dead.Store(true)
	}
	c.v.dead = append(c.v.dead, c.gone...)
}

func (s *span) key() []byte {
	return binary.BigEndian.AppendUint64([]byte{prefix, kindRun}, uint64(s.From))
}

func (s *span) value() []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(s.To))
	b = binary.BigEndian.AppendUint64(b, s.Count)
	b = binary.BigEndian.AppendUint64(b, uint64(s.First))
	return binary.BigEndian.AppendUint64(b, uint64(s.Last))
}

func parseSpan(key, value []byte) (s span, err error) {
	if len(key) != 10 || len(value) != 32 {
		return s, fmt.Errorf("key view: a run's key has %d bytes, its value %d", len(key), len(value))
	}
	be := binary.BigEndian
	s = span{
		From: message.Position(be.Uint64(key[2:])), To: message.Position(be.Uint64(value)), Count: be.Uint64(value[8:]),
		First: int64(be.Uint64(value[16:])), Last: int64(be.Uint64(value[24:])),
	}
	return s, nil
}

// Load implements shard.View.
func (v *View) Load(s *kv.Store) error {
	v.store = s
	err := s.Get([]byte{prefix, kindStart}, func(b []byte) error {
		if len(b) != 8 {
			return fmt.Errorf("key view: start of the log has %d bytes", len(b))
		}
		v.start = message.Position(binary.BigEndian.Uint64(b))
		return nil
	})
	if err != nil {
		return err
	}
	named := map[string]bool{}
	var bad error
	from := []byte{prefix, kindRun}
	err = s.Scan(from, kv.PrefixEnd(from), func(k, b []byte) bool {
		var sp span
		if sp, bad = parseSpan(k, b); bad != nil {
			return false
		}
		named[sp.name()] = true
		v.last = max(v.last, sp.Last)
		r, err := openRun(s, sp)
		if err != nil { // the messages are there all the same
			v.log.Error("a part of the key index is lost: its messages are not found by their keys", "error", err)
			return true
		}
		v.runs = append(v.runs, r)
		return true
	})
	if err = errors.Join(err, bad); err != nil {
		return err
	}
	return v.removeOthers(named)
}

// removeOthers removes what a crash left behind.
func (v *View) removeOthers(named map[string]bool) error {
	files, err := v.store.Files()
	if err != nil {
		return err
	}
	for _, name := range files {
		if strings.HasSuffix(name, ".keys") && !named[name] {
			if err := v.store.RemoveFile(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close closes the files; nothing may be folded or searched any more.
func (v *View) Close() (err error) {
	for _, r := range append(v.runs, v.dead...) {
		err = errors.Join(err, r.release())
	}
	v.runs, v.dead = nil, nil
	return err
}
