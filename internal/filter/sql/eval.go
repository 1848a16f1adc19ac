package sql

import (
	"bytes"

	"github.com/metaqio/metaq/message"
)

// eval gives the value of a node for a message. Depth and number of nodes are bounded when the expression is compiled.
func (n *node) eval(props []byte) value {
	switch n.op {
	case opConstant:
		return n.value
	case opProperty:
		return n.property(props)
	case opMinus:
		return n.kids[0].eval(props).negative()
	case opTruth:
		return n.kids[0].eval(props).truth()
	case opNot:
		return n.kids[0].eval(props).opposite()
	case opAnd:
		return n.logic(props, false)
	case opOr:
		return n.logic(props, true)
	case opEqual:
		return n.equal(props)
	case opBetween:
		return n.between(props)
	case opNotBetween:
		return n.notBetween(props)
	case opIn:
		return n.in(props)
	case opContains, opStartsWith, opEndsWith:
		return n.find(props)
	default:
		return n.compare(n.op, n.kids[0].eval(props), n.kids[1], props)
	}
}

func (n *node) property(props []byte) value {
	s, ok := message.Property(props, n.name)
	if !ok {
		return value{}
	}
	return textValue(s)
}

// negative is the value with its sign changed; of what is no number, NULL.
func (v value) negative() value {
	switch v.kind {
	case integer:
		return integerValue(-v.integer())
	case fraction:
		return fractionValue(-v.fraction())
	case spoiled:
		return v
	}
	return value{}
}

// truth is a property where a condition is wanted: it may be there or not, but it is not TRUE.
func (v value) truth() value {
	if v.kind == text {
		return truth(false)
	}
	return v
}

func (v value) opposite() value {
	if v.kind == boolean {
		return truth(v.bits == 0)
	}
	return v
}

// logic is AND (settles is false) or OR (true): the first operand that settles it is the last that is looked at.
func (n *node) logic(props []byte, settles bool) value {
	result := truth(!settles)
	for _, k := range n.kids {
		v := k.eval(props)
		switch {
		case v.kind == spoiled, v.is(settles):
			return v
		case v.kind == null:
			result = value{}
		}
	}
	return result
}

// equal is =. A literal on the left is compared as if it stood on the right; a
// condition there is not compared with a text, which RocketMQ cannot either.
func (n *node) equal(props []byte) value {
	l, r := n.kids[0].eval(props), n.kids[1].eval(props)
	if l.kind == boolean && r.kind == text && n.kids[0].op != opConstant {
		return value{kind: spoiled}
	}
	return equal(l, r)
}

// compare is <, <=, > or >= of a value and a node, NULL if either is missing.
func (n *node) compare(o op, l value, right *node, props []byte) value {
	if l.kind == null || l.kind == spoiled {
		return l
	}
	r := right.eval(props)
	if r.kind == null || r.kind == spoiled {
		return r
	}
	c, ok := order(l, r)
	if !ok {
		return value{kind: spoiled}
	}
	switch o {
	case opLess:
		return truth(c < 0)
	case opLessEqual:
		return truth(c <= 0)
	case opGreater:
		return truth(c > 0)
	default:
		return truth(c >= 0)
	}
}

// between is >= AND <=.
func (n *node) between(props []byte) value {
	v := n.kids[0].eval(props)
	low := n.compare(opGreaterEqual, v, n.kids[1], props)
	if low.kind == spoiled || low.is(false) {
		return low
	}
	high := n.compare(opLessEqual, v, n.kids[2], props)
	if high.kind == spoiled || high.is(false) {
		return high
	}
	if low.kind == null {
		return low
	}
	return high
}

// notBetween is < OR >.
func (n *node) notBetween(props []byte) value {
	v := n.kids[0].eval(props)
	low := n.compare(opLess, v, n.kids[1], props)
	if low.kind == spoiled || low.is(true) {
		return low
	}
	high := n.compare(opGreater, v, n.kids[2], props)
	if high.kind == spoiled || high.is(true) {
		return high
	}
	if low.kind == null {
		return low
	}
	return high
}

// in looks a property up in the list; what is missing gives NULL.
func (n *node) in(props []byte) value {
	v := n.kids[0].property(props)
	if v.kind == null {
		return v
	}
	found := false
	if n.set != nil {
		_, found = n.set[string(v.text)]
	} else {
		for _, s := range n.list {
			found = found || s == string(v.text)
		}
	}
	return truth(found != n.not)
}

// find looks for a text; where there is none to look in, or none to look for, it is FALSE, with NOT too.
func (n *node) find(props []byte) value {
	if len(n.search) == 0 {
		return truth(false)
	}
	v := n.kids[0].eval(props)
	switch v.kind {
	case text:
	case spoiled:
		return v
	default:
		return truth(false)
	}
	found := false
	switch n.op {
	case opStartsWith:
		found = bytes.HasPrefix(v.text, n.search)
	case opEndsWith:
		found = bytes.HasSuffix(v.text, n.search)
	default:
		found = bytes.Contains(v.text, n.search)
	}
	return truth(found != n.not)
}
