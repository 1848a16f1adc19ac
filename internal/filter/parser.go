package filter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/metaqio/metaq/internal/filter/sql"
	"github.com/metaqio/metaq/message"
)

// Types of expressions, in any case of letters. The empty type means TypeTag.
const (
	TypeTag   = "TAG"
	TypeSQL92 = "SQL92"
)

// IsTag says whether expressions of a type are about tags.
func IsTag[T string | []byte](typ T) bool {
	return len(typ) == 0 || strings.EqualFold(string(typ), TypeTag)
}

// ErrUnsupported marks an expression of a type that this broker does not evaluate.
var ErrUnsupported = errors.New("expressions of this type are not evaluated")

// maxTags bounds the tags of one expression.
const maxTags = 1000

// What a Parser remembers, at most: expressions, and bytes of their texts.
const (
	maxKnown      = 1000
	maxKnownBytes = 4 << 20
)

// Parser reads expressions. The zero value is ready; any goroutine may use it.
type Parser struct {
	mu    sync.RWMutex // guards the following
	known map[string]compiled
	bytes int // of the texts in known
}

// compiled is what became of a SQL92 expression.
type compiled struct {
	e   *sql.Expression
	err error
}

// Parse reads an expression: of type TAG, "*" or empty for all messages, else tags
// joined by "||"; of type SQL92, a condition. An error of [ErrUnsupported] means another
// type; any other says what is wrong with the expression, for SQL92 with the place
// ([sql.Error]).
func (p *Parser) Parse(typ, expression []byte) (Filter, error) {
	switch {
	case IsTag(typ):
		return parseTags(string(expression))
	case strings.EqualFold(string(typ), TypeSQL92):
		e, err := p.compile(expression)
		return Filter{condition: e}, err
	}
	return Filter{}, fmt.Errorf("%w: %s", ErrUnsupported, typ)
}

// compile gives the compiled form of a condition, from memory if it can.
func (p *Parser) compile(text []byte) (*sql.Expression, error) {
	p.mu.RLock()
	c, ok := p.known[string(text)]
	p.mu.RUnlock()
	if !ok {
		c.e, c.err = sql.Compile(string(text))
		if len(text) <= sql.MaxLength { // longer ones are refused at once
			p.remember(string(text), c)
		}
	}
	return c.e, c.err
}

// remember keeps a result. When there are too many all are given up: those in use are
// held by their subscriptions, and the others come again.
func (p *Parser) remember(text string, c compiled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) == maxKnown || p.bytes+len(text) > maxKnownBytes {
		p.known, p.bytes = map[string]compiled{}, 0
	}
	if _, ok := p.known[text]; !ok {
		p.bytes += len(text)
	}
	p.known[text] = c
}

func parseTags(expression string) (Filter, error) {
	expression = strings.TrimSpace(expression)
	if expression == "" || expression == "*" {
		return Filter{}, nil
	}
	var f Filter
	for tag := range strings.SplitSeq(expression, "||") {
		if tag = strings.TrimSpace(tag); tag == "" {
			continue
		}
		if len(f.tags) == maxTags {
			return Filter{}, fmt.Errorf("the expression has more than %d tags", maxTags)
		}
		f.tags = append(f.tags, tag)
		f.codes = append(f.codes, int64(message.TagHash([]byte(tag))))
	}
	if len(f.tags) == 0 {
		return Filter{}, fmt.Errorf("the expression %q names no tag", expression)
	}
	slices.Sort(f.codes)
	return f, nil
}
