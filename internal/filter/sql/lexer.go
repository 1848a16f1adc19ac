package sql

import (
	"strings"
	"unicode/utf8"
)

// token is a word of the expression.
type token struct {
	kind int    // as the grammar names it; a sign stands for itself, 0 is the end
	at   int    // where it begins, in bytes
	text string // as it is written
}

// keywords are reserved in any case of letters.
var keywords = map[string]int{
	"AND": AND, "BETWEEN": BETWEEN, "CONTAINS": CONTAINS, "ENDSWITH": ENDSWITH, "FALSE": FALSE, "IN": IN, "IS": IS, "NOT": NOT, "NULL": NULL,
	"OR": OR, "STARTSWITH": STARTSWITH, "TRUE": TRUE,
}

const longestKeyword = len("STARTSWITH")

// parser is the state of one compilation; it is what the generated parser calls the lexer.
type parser struct {
	text      string
	at        int // next byte
	open      int // parentheses
	last, was token

	steps, names int
	root         *node
	err          *Error // the first one
}

// fail notes the first error.
func (p *parser) fail(at int, format string, args ...any) {
	if p.err == nil {
		p.err = errorAt(p.text, at, format, args...)
	}
}

// Lex implements yyLexer. After an error there is nothing but the end.
func (p *parser) Lex(v *yySymType) int {
	if p.err == nil {
		p.space()
	}
	t := token{at: p.at}
	if p.err == nil && p.at < len(p.text) {
		t.kind = p.scan()
		t.text = p.text[t.at:p.at]
	}
	p.was, p.last = p.last, t
	v.tok = t
	if p.err != nil {
		return 0
	}
	return t.kind
}

// Error implements yyLexer: the last token fits nowhere.
func (p *parser) Error(string) {
	switch {
	case p.last.kind == 0 && p.was.kind == 0:
		p.fail(p.last.at, "the expression is empty")
	case p.last.kind == 0:
		p.fail(p.last.at, "the expression ends too early, after %s%s", p.was.text, p.hint())
	default:
		p.fail(p.last.at, "unexpected %s%s", p.last.text, p.hint())
	}
}

// hint says what was probably meant.
func (p *parser) hint() string {
	switch t, was := p.last, p.was; {
	case t.kind == NAME && strings.EqualFold(t.text, "LIKE"):
		return "; there is no LIKE, but CONTAINS, STARTSWITH and ENDSWITH"
	case t.kind == '=' && was.kind == '=':
		return "; equality is written ="
	case was.kind == CONTAINS || was.kind == STARTSWITH || was.kind == ENDSWITH:
		return "; " + strings.ToUpper(was.text) + " takes a string in single quotes"
	case (t.kind == INTEGER || t.kind == FRACTION || t.kind == NAME) && (was.kind == '(' || was.kind == ','):
		return "; IN takes strings, in single quotes"
	case t.kind == '-' && was.kind == NAME:
		return "; there is no arithmetic, and a name with a - in it is written in double quotes"
	case t.kind == '+' || t.kind == '-':
		return "; there is no arithmetic"
	case t.kind == NAME && (was.kind == INTEGER || was.kind == FRACTION) && was.at+len(was.text) == t.at:
		return "; " + was.text + t.text + " is not a number"
	}
	return ""
}

// space passes over white space and comments.
func (p *parser) space() {
	for p.at < len(p.text) {
		rest := p.text[p.at:]
		switch {
		case strings.IndexByte(" \t\n\r\f", rest[0]) >= 0:
			p.at++
		case strings.HasPrefix(rest, "--"):
			end := strings.IndexAny(rest, "\r\n")
			if end < 0 {
				end = len(rest)
			}
			p.at += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				p.fail(p.at, "the comment that begins here has no end")
				return
			}
			p.at += end + 4
		default:
			return
		}
	}
}

// scan reads a token. REQUIRES: there is one.
func (p *parser) scan() int {
	switch c := p.text[p.at]; {
	case isLetter(c):
		return p.word()
	case isDigit(c), c == '.' && p.at+1 < len(p.text) && isDigit(p.text[p.at+1]):
		return p.number()
	case c == '\'':
		return p.quoted(c, STRING, "string")
	case c == '"':
		return p.quoted(c, NAME, "name")
	default:
		return p.sign(c)
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// while moves on over bytes of a kind.
func (p *parser) while(is func(byte) bool) {
	for p.at < len(p.text) && is(p.text[p.at]) {
		p.at++
	}
}

func (p *parser) word() int {
	from := p.at
	p.while(func(c byte) bool { return isLetter(c) || isDigit(c) })
	if text := p.text[from:p.at]; len(text) <= longestKeyword {
		if kind, ok := keywords[strings.ToUpper(text)]; ok {
			return kind
		}
	}
	return NAME
}

// number reads 0, 12, 12L, 1.5, 1., .5, 1e9, 1.5E-3.
func (p *parser) number() int {
	from, kind := p.at, INTEGER
	p.while(isDigit)
	whole := p.text[from:p.at]
	if p.at < len(p.text) && p.text[p.at] == '.' {
		kind = FRACTION
		p.at++
		p.while(isDigit)
	}
	if n := exponent(p.text[p.at:]); n > 0 {
		kind = FRACTION
		p.at += n
	}
	if kind == FRACTION {
		return kind
	}
	if whole[0] == '0' && len(whole) > 1 {
		p.fail(from, "%s has a zero in front", whole)
		return 0
	}
	if p.at < len(p.text) && p.text[p.at]|0x20 == 'l' {
		p.at++
	}
	return kind
}

// exponent is the length of the exponent that s begins with.
func exponent(s string) int {
	if s == "" || s[0]|0x20 != 'e' {
		return 0
	}
	n := 1
	if n < len(s) && (s[n] == '+' || s[n] == '-') {
		n++
	}
	digits := len(s[n:]) - len(strings.TrimLeft(s[n:], "0123456789"))
	if digits == 0 {
		return 0
	}
	return n + digits
}

// quoted reads a text in quotes; a quote in it is doubled.
func (p *parser) quoted(quote byte, kind int, what string) int {
	from := p.at
	for p.at++; p.at < len(p.text); p.at++ {
		if p.text[p.at] != quote {
			continue
		}
		if p.at++; p.at == len(p.text) || p.text[p.at] != quote {
			return kind
		}
	}
	p.fail(from, "the %s that begins here has no end", what)
	return 0
}

// unquoted is the text of a quoted token.
func (t *token) unquoted() string {
	quote := t.text[:1]
	return strings.ReplaceAll(t.text[1:len(t.text)-1], quote+quote, quote)
}

// name is the property that a token names.
func (t *token) name() string {
	if t.text[0] == '"' {
		return t.unquoted()
	}
	return t.text
}

// meant are signs of other languages, and how they are written here.
var meant = map[byte]string{
	'!': "not equal is written <>", '&': "write AND", '|': "write OR",
	'*': "there is no arithmetic", '/': "there is no arithmetic, and a name with a / in it is written in double quotes",
	'.': "a name with a . in it is written in double quotes",
}

// sign reads an operator.
func (p *parser) sign(c byte) int {
	if p.at+1 < len(p.text) {
		kind := 0
		switch p.text[p.at : p.at+2] {
		case "<>":
			kind = NE
		case "<=":
			kind = LE
		case ">=":
			kind = GE
		}
		if kind != 0 {
			p.at += 2
			return kind
		}
	}
	switch c {
	case '(':
		if p.open++; p.open > MaxDepth {
			p.fail(p.at, "parentheses are nested deeper than %d", MaxDepth)
			return 0
		}
	case ')':
		p.open--
	case '=', '<', '>', '+', '-', ',':
	default:
		return p.unknown(c)
	}
	p.at++
	return int(c)
}

func (p *parser) unknown(c byte) int {
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	if hint := meant[c]; hint != "" {
		p.fail(p.at, "unexpected %c; %s", r, hint)
	} else {
		p.fail(p.at, "unexpected %q", r)
	}
	return 0
}
