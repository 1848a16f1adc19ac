package txn

import "container/heap"

// group is the open transactions of a group of producers, by the time when to ask:
// those for which the broker's immunity counts, and all others.
type group struct{ young, timed order }

func (g *group) of(it *item) *order {
	if it.young() {
		return &g.young
	}
	return &g.timed
}

func (g *group) add(it *item)    { heap.Push(g.of(it), it) }
func (g *group) remove(it *item) { heap.Remove(g.of(it), it.at) }
func (g *group) empty() bool     { return len(g.young)+len(g.timed) == 0 }

// Groups calls f with each group of producers that has open transactions, and with the time when the first of them is to
// be asked about, in ms, where the broker's immunity is immunity (ms). f must not change the view.
func (v *View) Groups(immunity int64, f func(name string, next int64)) {
	for name, g := range v.groups {
		switch {
		case len(g.timed) == 0:
			f(name, g.young[0].due()+immunity)
		case len(g.young) == 0:
			f(name, g.timed[0].due())
		default:
			f(name, min(g.young[0].due()+immunity, g.timed[0].due()))
		}
	}
}

// Due appends up to limit transactions of a group whose producers are to be asked at now (ms), where the broker's
// immunity is immunity (ms): first those that were asked before or have an immunity of their own, then the others.
func (v *View) Due(dst []Open, name string, now, immunity int64, limit int) []Open {
	g := v.groups[name]
	if g == nil {
		return dst
	}
	end := len(dst) + limit
	dst = g.timed.until(dst, now, end)
	return g.young.until(dst, now-immunity, end)
}

// order is a heap of transactions by time, then position.
type order []*item

// until appends what is due at now, the earliest first, until dst has end of them. The heap is walked, not popped: they
// leave it by folding only.
func (o order) until(dst []Open, now int64, end int) []Open {
	if len(o) == 0 {
		return dst
	}
	walk := []int{0}
	for len(walk) > 0 && len(dst) < end {
		best := 0
		for i := range walk {
			if o.Less(walk[i], walk[best]) {
				best = i
			}
		}
		at := walk[best]
		if o[at].due() > now {
			break
		}
		dst = append(dst, o[at].Open)
		walk[best] = walk[len(walk)-1]
		walk = walk[:len(walk)-1]
		for _, child := range []int{2*at + 1, 2*at + 2} {
			if child < len(o) {
				walk = append(walk, child)
			}
		}
	}
	return dst
}

func (o order) Len() int { return len(o) }

func (o order) Less(i, j int) bool {
	if a, b := o[i].due(), o[j].due(); a != b {
		return a < b
	}
	return o[i].Position < o[j].Position
}

func (o order) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].at, o[j].at = i, j
}

// Push implements heap.Interface.
func (o *order) Push(x any) {
	it := x.(*item)
	it.at = len(*o)
	*o = append(*o, it)
}

// Pop implements heap.Interface.
func (o *order) Pop() any {
	last := len(*o) - 1
	it := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	return it
}
