package sql

import (
	"math"
	"strconv"
	"strings"
)

// op is what a node does.
type op byte

const (
	opConstant op = iota
	opProperty
	opMinus
	opTruth // of a property where a condition is wanted: never TRUE, for a text is none
	opNot
	opAnd
	opOr
	opEqual // the order of the next four is that of comparisons
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opBetween
	opNotBetween
	opIn
	opContains
	opStartsWith
	opEndsWith
)

// node is a part of an expression. Immutable once it is built.
type node struct {
	op     op
	not    bool // of opIn and the searches: NOT IN, NOT CONTAINS …, which are operators of their own
	depth  int
	at     token // where it stands, for errors
	kids   []*node
	value  value               // opConstant
	name   string              // opProperty
	search []byte              // what the searches look for
	list   []string            // opIn with a few strings
	set    map[string]struct{} // opIn with many
}

// manyStrings is from when on a list is looked up by hash.
const manyStrings = 8

// node adds a node to the expression.
func (p *parser) node(o op, at token, kids ...*node) *node {
	n := &node{op: o, at: at, kids: kids, depth: 1}
	p.count(n, kids...)
	return n
}

// count holds the expression against the limits when a node has got operands.
func (p *parser) count(n *node, kids ...*node) {
	for _, k := range kids {
		n.depth = max(n.depth, k.depth+1)
	}
	p.steps++
	switch {
	case n.depth > MaxDepth:
		p.fail(n.at.at, "the expression is nested deeper than %d", MaxDepth)
	case p.steps > MaxSteps:
		p.fail(n.at.at, "the expression has more than %d operators, names and values", MaxSteps)
	}
}

// finish takes the whole expression.
func (p *parser) finish(n *node) { p.root = p.condition(n) }

// condition makes sure that a node has a truth value.
func (p *parser) condition(n *node) *node {
	switch {
	case n.op == opProperty:
		return p.node(opTruth, n.at, n)
	case !n.isCondition():
		p.fail(n.at.at, "%s is not a condition", n.at.text)
	}
	return n
}

// isCondition says whether the value of a node is TRUE, FALSE or NULL.
func (n *node) isCondition() bool {
	switch n.op {
	case opProperty, opMinus:
		return false
	case opConstant:
		return n.value.kind == null || n.value.kind == boolean
	}
	return true
}

// logic is AND or OR; a chain of them is one node.
func (p *parser) logic(o op, at token, left, right *node) *node {
	left, right = p.condition(left), p.condition(right)
	if left.op != o {
		return p.node(o, at, left, right)
	}
	left.kids = append(left.kids, right)
	p.count(left, right)
	return left
}

// negated is NOT.
func (p *parser) negated(at token, n *node) *node { return p.node(opNot, at, p.condition(n)) }

// equal is =, and what <> negates.
func (p *parser) equal(at token, left, right *node) *node {
	for _, n := range []*node{left, right} {
		if n.op == opConstant && n.value.kind == null {
			p.fail(n.at.at, "nothing is equal to NULL; write IS NULL or IS NOT NULL")
		}
	}
	if left.op == opConstant && right.op == opConstant && left.value.kind == boolean && right.value.kind != boolean {
		p.fail(at.at, "%s cannot be compared with %s", left.at.text, right.at.text)
	}
	return p.node(opEqual, at, left, right)
}

// isNull is IS NULL: equal to NULL, which as a literal = does not take.
func (p *parser) isNull(at token, n *node) *node {
	return p.node(opEqual, at, n, p.node(opConstant, at))
}

// order is <, <=, > or >=.
func (p *parser) order(o op, at token, left, right *node) *node {
	p.numbers(at, left, right)
	return p.node(o, at, left, right)
}

// between is BETWEEN and NOT BETWEEN.
func (p *parser) between(o op, at token, n, low, high *node) *node {
	p.numbers(at, n, low, high)
	if p.err == nil && low.op == opConstant && high.op == opConstant && compareNumbers(low.value, high.value) > 0 && o == opBetween {
		p.fail(low.at.at, "nothing is between %s and %s", low.at.text, high.at.text)
	}
	return p.node(o, at, n, low, high)
}

// numbers makes sure that an operator gets nothing that can never be a number.
func (p *parser) numbers(at token, operands ...*node) {
	for _, n := range operands {
		switch {
		case n.op == opNot && n.at.kind == NOT && n == operands[0]:
			p.fail(at.at, "%s compares numbers, and NOT binds tighter: write NOT (…)", strings.ToUpper(at.text))
		case n.op == opConstant && !n.value.isNumber(), n.op != opConstant && n.isCondition():
			p.fail(n.at.at, "%s compares numbers, and %s is none", strings.ToUpper(at.text), n.at.text)
		}
	}
}

// in is IN and NOT IN.
func (p *parser) in(at token, n *node, list []token, not bool) *node {
	if n.op != opProperty {
		p.fail(n.at.at, "IN takes a property on its left, not %s", n.at.text)
	}
	in := p.node(opIn, at, n)
	in.not = not
	if len(list) < manyStrings {
		for _, t := range list {
			in.list = append(in.list, t.unquoted())
		}
		return in
	}
	in.set = make(map[string]struct{}, len(list))
	for _, t := range list {
		in.set[t.unquoted()] = struct{}{}
	}
	return in
}

// search is CONTAINS, STARTSWITH, ENDSWITH, and these with NOT.
func (p *parser) search(at token, n *node, text token, not bool) *node {
	o := opContains
	switch at.kind {
	case STARTSWITH:
		o = opStartsWith
	case ENDSWITH:
		o = opEndsWith
	}
	s := p.node(o, at, n)
	s.not, s.search = not, []byte(text.unquoted())
	return s
}

// minus is the sign.
func (p *parser) minus(at token, n *node) *node { return p.node(opMinus, at, n) }

func (p *parser) property(at token) *node {
	n := p.node(opProperty, at)
	if n.name = at.name(); n.name == "" {
		p.fail(at.at, "a name is empty")
	}
	p.names++
	return n
}

func (p *parser) constant(at token, v value) *node {
	n := p.node(opConstant, at)
	n.value = v
	return n
}

func (p *parser) literal(at token) *node { return p.constant(at, textValue([]byte(at.unquoted()))) }

func (p *parser) integer(at token) *node {
	n, err := strconv.ParseInt(strings.TrimRight(at.text, "lL"), 10, 64)
	if err != nil {
		p.fail(at.at, "%s is more than %d", at.text, int64(math.MaxInt64))
	}
	return p.constant(at, integerValue(n))
}

// fraction is a literal with a point or an exponent. As in RocketMQ it is positive: 0.0 is refused.
func (p *parser) fraction(at token) *node {
	f, err := strconv.ParseFloat(at.text, 64)
	switch {
	case err != nil && f != 0:
		p.fail(at.at, "%s is more than %g", at.text, math.MaxFloat64)
	case f == 0:
		p.fail(at.at, "%s is less than %g; write 0", at.text, math.SmallestNonzeroFloat64)
	}
	return p.constant(at, fractionValue(f))
}
