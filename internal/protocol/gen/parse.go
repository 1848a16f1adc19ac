package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A family is what one file defines.
type family struct {
	name, doc string
	requests  []*code
	responses []*code
	headers   []*header
}

// A code is a request or response code. request and response are headers or "".
type code struct {
	number            int64
	name, doc         string
	priority          string
	request, response string
}

// A header is a typed header, or a fragment of one.
type header struct {
	name, doc, where string
	fields           []field
	users            []string // "PULL_MESSAGE (11)"
	fragment         bool
	hot              bool // decoding goes on from the header before, as far as both are alike
}

// A field is one ext field, or with kind "use" a fragment to be put in its place.
type field struct {
	wire, kind, doc          string
	short, also, value       string // value is the default
	required, expected, flag bool   // flag makes a Has field
}

type parser struct {
	families  []*family
	headers   map[string]*header
	fragments map[string]*header
	now       *family // being read
	open      *header // whose fields are being read
	doc       []string
	where     string
}

func newParser() *parser {
	return &parser{headers: map[string]*header{}, fragments: map[string]*header{}}
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %s", p.where, fmt.Sprintf(format, args...))
}

// file reads the definitions of one file.
func (p *parser) file(name, text string) error {
	p.now = &family{name: strings.TrimSuffix(filepath.Base(name), ".def")}
	p.families = append(p.families, p.now)
	p.open, p.doc = nil, nil
	for i, line := range strings.Split(text, "\n") {
		p.where = fmt.Sprintf("%s:%d", name, i+1)
		if err := p.line(line); err != nil {
			return err
		}
	}
	if p.now.doc == "" {
		return fmt.Errorf("%s: the file is not described", name)
	}
	return nil
}

func (p *parser) line(line string) error {
	body, comment, _ := strings.Cut(line, "#")
	comment = strings.TrimSpace(comment)
	words := strings.Fields(body)
	if len(words) == 0 {
		switch {
		case comment != "":
			p.doc = append(p.doc, comment)
		case p.now.doc == "":
			p.now.doc, p.doc = strings.Join(p.doc, " "), nil
		}
		return nil
	}
	doc := strings.Join(p.doc, " ")
	if p.doc = nil; doc == "" {
		doc = comment
	}
	if body[0] == ' ' || body[0] == '\t' {
		return p.field(words, doc)
	}
	p.open = nil
	switch words[0] {
	case "request", "response":
		return p.code(words, doc)
	case "header", "fragment":
		return p.header(words, doc)
	}
	return p.errorf("%s is no statement", words[0])
}

var (
	javaName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	goName   = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
)

func (p *parser) code(words []string, doc string) error {
	if len(words) < 3 {
		return p.errorf("%s needs a number and a name", words[0])
	}
	c := &code{name: words[2], doc: doc}
	var err error
	if c.number, err = strconv.ParseInt(words[1], 10, 32); err != nil {
		return p.errorf("code: %v", err)
	}
	if !javaName.MatchString(c.name) {
		return p.errorf("%s is no name of a code", c.name)
	}
	rest := words[3:]
	if words[0] == "response" {
		if len(rest) > 0 {
			return p.errorf("%s is too much", rest[0])
		}
		p.now.responses = append(p.now.responses, c)
		return nil
	}
	if len(rest) == 0 || rest[0] != "P0" && rest[0] != "P1" && rest[0] != "P2" {
		return p.errorf("%s needs a priority", c.name)
	}
	c.priority, rest = rest[0], rest[1:]
	if len(rest) > 0 && rest[0] != "->" {
		if c.request = rest[0]; c.request == "-" {
			c.request = ""
		}
		rest = rest[1:]
	}
	if len(rest) == 2 && rest[0] == "->" {
		c.response, rest = rest[1], nil
	}
	if len(rest) > 0 {
		return p.errorf("%s is too much", rest[0])
	}
	p.now.requests = append(p.now.requests, c)
	return nil
}

func (p *parser) header(words []string, doc string) error {
	hot := len(words) == 3 && words[2] == "hot" && words[0] == "header"
	if len(words) != 2 && !hot {
		return p.errorf("%s needs one name", words[0])
	}
	h := &header{name: words[1], doc: doc, where: p.where, fragment: words[0] == "fragment", hot: hot}
	table := p.headers
	if h.fragment {
		table = p.fragments
	} else if !goName.MatchString(h.name) {
		return p.errorf("%s is no name of a header", h.name)
	}
	if table[h.name] != nil {
		return p.errorf("%s is defined twice", h.name)
	}
	table[h.name] = h
	p.open = h
	if !h.fragment {
		p.now.headers = append(p.now.headers, h)
	}
	return nil
}

func (p *parser) field(words []string, doc string) error {
	if p.open == nil {
		return p.errorf("a field outside of a header")
	}
	if len(words) < 2 {
		return p.errorf("%s needs a type", words[0])
	}
	f := field{wire: words[0], kind: words[1], doc: doc}
	if words[0] == "use" {
		f = field{wire: words[1], kind: "use"}
	} else if kinds[f.kind].goType == "" {
		return p.errorf("%s is no type", f.kind)
	}
	for _, mark := range words[2:] {
		name, value, _ := strings.Cut(mark, "=")
		switch name {
		case "required":
			f.required = true
		case "expected":
			f.expected = true
		case "has":
			f.flag = true
		case "short":
			f.short = value
		case "also":
			f.also = value
		case "default":
			f.value = value
		default:
			return p.errorf("%s is no mark", mark)
		}
	}
	if f.flag && !kinds[f.kind].number || f.value != "" && !kinds[f.kind].number || f.required && f.kind == "field" {
		return p.errorf("%s cannot have such a mark", f.kind)
	}
	p.open.fields = append(p.open.fields, f)
	return nil
}

// resolve puts fragments in their places and finds who uses a header.
func (p *parser) resolve() error {
	numbers := map[string]string{}
	for _, fam := range p.families {
		for kind, codes := range map[string][]*code{"request": fam.requests, "response": fam.responses} {
			for _, c := range codes {
				id := fmt.Sprintf("%s %d", kind, c.number)
				if numbers[id] != "" {
					return fmt.Errorf("%s is both %s and %s", id, numbers[id], c.name)
				}
				numbers[id] = c.name
			}
		}
	}
	for _, fam := range p.families {
		for _, h := range fam.headers {
			if err := p.expand(h); err != nil {
				return err
			}
		}
		for _, c := range fam.requests {
			if err := p.use(c, c.request, "the request header of"); err != nil {
				return err
			}
			if err := p.use(c, c.response, "the response header of"); err != nil {
				return err
			}
		}
	}
	for name, h := range p.headers {
		if len(h.users) == 0 {
			return fmt.Errorf("%s: nobody uses the header %s", h.where, name)
		}
	}
	return nil
}

func (p *parser) use(c *code, name, as string) error {
	if name == "" {
		return nil
	}
	h := p.headers[name]
	if h == nil {
		return fmt.Errorf("%s has the header %s, which does not exist", c.name, name)
	}
	h.users = append(h.users, fmt.Sprintf("%s %s (%d)", as, c.name, c.number))
	return nil
}

func (p *parser) expand(h *header) error {
	var fields []field
	seen := map[string]bool{}
	for _, f := range h.fields {
		part := []field{f}
		if f.kind == "use" {
			fragment := p.fragments[f.wire]
			if fragment == nil {
				return fmt.Errorf("%s: there is no fragment %s", h.where, f.wire)
			}
			part = fragment.fields
		}
		for _, f := range part {
			for _, name := range []string{f.wire, f.short, f.also} {
				if name != "" && seen[name] {
					return fmt.Errorf("%s: %s has two fields named %s", h.where, h.name, name)
				}
				seen[name] = true
			}
			fields = append(fields, f)
		}
	}
	if len(fields) == 0 {
		return fmt.Errorf("%s: %s has no fields", h.where, h.name)
	}
	if len(fields) > 32 {
		return fmt.Errorf("%s: %s has more than 32 fields", h.where, h.name)
	}
	h.fields = fields
	return nil
}
