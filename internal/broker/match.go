package broker

import (
	"fmt"

	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/message"
)

// A pull that filters looks at more messages than it gives away. What it may look at
// is bounded (Config.MaxScan, Config.MaxScanBytes); a pull that has found nothing by
// then is answered with how far it came, and goes on with the next request. So a
// subscription that wants one message in 100,000 neither keeps others waiting nor
// waits itself until its client gives up.
const (
	// passScans is how many times the bytes of a pull the pulls of one pass may look
	// at. Those that come then are served on the pool, beside the passes.
	passScans = 4
	// recordWork is what looking at a record costs besides its bytes, in bytes.
	recordWork = 4 << 10
	// A run is the records that are read at once: so many, and so many bytes.
	runEntries = 32
	runBytes   = 256 << 10
)

// want is how many entries a pull looks at.
func (q *pull) want(c *Config) int {
	if q.filter.All() {
		return q.max
	}
	return max(c.MaxScan, q.max)
}

// choose keeps the entries of those found from the offset on that match, within the
// limits of an answer, and says where to go on. With a filter it has to read records:
// hot, only what is in memory. It fails only if it could not look at anything.
func (p *Pass) choose(q *pull, res *PullResult, found []queue.Entry, hot bool) error {
	looked := 0
	c := chosen{pass: p, pull: q, found: found, left: p.conf.MaxScanBytes}
	if q.filter.All() {
		for looked < len(found) && c.take(looked) {
			looked++
		}
	} else {
		var err error
		if looked, err = c.scan(hot); err != nil && looked == 0 {
			return err
		}
		p.scanned += p.conf.MaxScanBytes - c.left
	}
	p.entries = found[:c.n]
	res.Next = q.offset + message.QueueOffset(looked)
	res.Count = c.n
	res.Status = Found
	if c.n == 0 {
		res.Status = NoMatchedMessage
	}
	return nil
}

// chosen is the entries of an answer, moved to the front of those that were found.
type chosen struct {
	pass     *Pass
	pull     *pull
	found    []queue.Entry
	n, bytes int
	left     int // bytes that may still be looked at
}

// take chooses an entry, if it has room in the answer.
func (c *chosen) take(i int) bool {
	e := c.found[i]
	if c.n == c.pull.max || c.n > 0 && c.bytes+int(e.Size) > c.pass.conf.MaxPullBytes {
		return false
	}
	c.found[c.n] = e
	c.n++
	c.bytes += int(e.Size)
	return true
}

// scan chooses the entries that match and returns how many were looked at. An error
// says why it ended there.
func (c *chosen) scan(hot bool) (looked int, err error) {
	var run [runEntries]int
	for {
		n, next := c.candidates(run[:], looked)
		if n == 0 {
			return next, nil
		}
		if looked > 0 && (c.n == c.pull.max || c.left <= 0) {
			return run[0], nil
		}
		end, err := c.match(run[:n], hot)
		if err != nil || end >= 0 {
			return max(end, 0), err
		}
		looked = next
	}
}

// candidates finds the next entries that the first stage of the filter lets through,
// as many as a run has, and where it ended. What retention takes away matches nothing.
func (c *chosen) candidates(run []int, from int) (n, next int) {
	start, bytes := c.pass.b.shard.Log().Start(), 0
	for next = from; next < len(c.found); next++ {
		e := &c.found[next]
		if e.Position < start || !c.pull.filter.MatchTag(e.Tag) {
			continue
		}
		if n == len(run) || n > 0 && bytes+int(e.Size) > runBytes {
			break
		}
		run[n] = next
		n++
		bytes += int(e.Size)
	}
	return n, next
}

// match reads the records of a run and chooses those that match. A number that is not
// negative says how many entries were looked at when there was an end to it: no room
// in the answer, nothing left of the budget, or an error.
func (c *chosen) match(run []int, hot bool) (end int, err error) {
	p := c.pass
	p.run = p.run[:0]
	for _, i := range run {
		p.run = append(p.run, c.found[i])
	}
	p.scratch, err = p.b.appendRecords(p.scratch[:0], p.run, hot)
	if err != nil {
		return run[0], err
	}
	rest := p.scratch
	for _, i := range run {
		var r message.Record
		size, err := r.Parse(rest)
		if err != nil {
			return i, fmt.Errorf("record at %d: %w", c.found[i].Position, err)
		}
		rest = rest[size:]
		if c.pull.filter.MatchProperties(r.Properties) && !c.take(i) {
			return i, nil
		}
		c.left -= recordWork + size + c.pull.filter.Weight()*len(r.Properties)
		if c.left <= 0 {
			return i + 1, nil
		}
	}
	return -1, nil
}
