package sql

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// What an expression may cost. RocketMQ has no such limits, but for what its stack holds.
const (
	// MaxLength is the length of an expression in bytes.
	MaxLength = 64 << 10
	// MaxDepth is how deep parentheses and operators may be nested. A chain of ANDs or of ORs is one level.
	MaxDepth = 100
	// MaxSteps is the number of operators, literals and names in an expression; a list of strings counts once.
	MaxSteps = 1000
)

// Expression is a compiled expression. Immutable.
type Expression struct {
	root   *node
	weight int
}

// Compile reads an expression. Errors are of type [*Error].
func Compile(text string) (*Expression, error) {
	if len(text) > MaxLength {
		return nil, &Error{Line: 1, Column: 1, Why: fmt.Sprintf("the expression has %d bytes, %d are possible", len(text), MaxLength)}
	}
	if !utf8.ValidString(text) {
		return nil, &Error{Line: 1, Column: 1, Why: "the expression is not UTF-8"}
	}
	p := &parser{text: text}
	yyNewParser().Parse(p)
	if p.err != nil {
		return nil, p.err
	}
	return &Expression{root: p.root, weight: p.names}, nil
}

// Match says whether the expression is TRUE of a message with these properties, in the form in which they are stored.
func (e *Expression) Match(props []byte) bool {
	return e.root.eval(props).is(true)
}

// Weight is how often one Match looks through the properties, at most.
func (e *Expression) Weight() int { return e.weight }

// Error tells what is wrong with an expression, and where.
type Error struct {
	Line, Column int // from 1; a column is a character
	Why          string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Why)
}

// errorAt makes an error for a byte of the text.
func errorAt(text string, at int, format string, args ...any) *Error {
	before := text[:min(at, len(text))]
	line := strings.LastIndexByte(before, '\n') + 1
	return &Error{Line: 1 + strings.Count(before, "\n"), Column: 1 + utf8.RuneCountInString(before[line:]), Why: fmt.Sprintf(format, args...)}
}
