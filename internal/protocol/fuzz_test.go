package protocol

import (
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"
)

// FuzzDecode decodes any header in both encodings. What decodes must survive a
// round trip; what encoding/json accepts as a header must give the same ext fields.
func FuzzDecode(f *testing.F) {
	f.Add(false, []byte(`{"code":310,"extFields":{"a":"x\u0001","n":4,"t":true,"z":null},"flag":0,"language":"JAVA","opaque":4,"version":513}`))
	f.Add(false, []byte(" {\"opaque\" : \"12\" , \"x\":[1,{\"y\":[]}] }\n"))
	for _, v := range vectors(f) {
		for _, vf := range v.frames() {
			frame := vf.bytes(f)
			header := int(frame[5])<<16 | int(frame[6])<<8 | int(frame[7])
			if len(frame) < 700 || vf.Encoding == "binary" {
				f.Add(vf.Encoding == "binary", frame[8:8+header])
			}
		}
	}
	f.Fuzz(func(t *testing.T, binary bool, text []byte) {
		encoding := JSON
		if binary {
			encoding = Binary
		}
		var c Command
		if err := c.Decode(anyFrame(encoding, string(text), "body")); err != nil {
			var h *HeaderError
			if !errors.As(err, &h) {
				t.Fatalf("error of another type: %v", err)
			}
			if !binary && legalHeader(text) {
				t.Fatalf("refused legal JSON: %v", err)
			}
			return
		}
		if string(c.Body) != "body" {
			t.Fatalf("body %q", c.Body)
		}
		if !binary && utf8.Valid(text) {
			compareExt(t, text, &c)
		}
		roundTrip(t, &c, text)
	})
}

// roundTrip encodes and decodes c, and compares if its text is legal UTF-8.
func roundTrip(t *testing.T, c *Command, text []byte) {
	var again Command
	if err := again.Decode(c.Append(nil)); err != nil {
		t.Fatalf("decode again: %v", err)
	}
	if c.Encoding == Binary || !utf8.Valid(text) {
		return
	}
	h, g := header(c), header(&again)
	if h.Code != g.Code || h.Opaque != g.Opaque || h.Flag != g.Flag || h.Version != g.Version || h.Remark != g.Remark ||
		h.Language != g.Language || len(h.Ext) != len(g.Ext) {
		t.Fatalf("%+v, again %+v", h, g)
	}
	for k, v := range h.Ext {
		if g.Ext[k] != v {
			t.Fatalf("%q is %q, again %q", k, v, g.Ext[k])
		}
	}
}

// legalHeader tells whether encoding/json takes text for a header in which every
// value has the kind that it should have.
func legalHeader(text []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || members == nil || depth(text) > maxSkipDepth/2 {
		return false
	}
	for _, key := range []string{"code", "flag", "opaque", "version"} {
		var n int32
		if raw, ok := members[key]; ok && json.Unmarshal(raw, &n) != nil {
			return false
		}
	}
	if raw, ok := members["extFields"]; ok {
		var ext map[string]any
		if json.Unmarshal(raw, &ext) != nil {
			return false
		}
	}
	if raw, ok := members["language"]; ok {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return false
		}
	}
	return countKeys(text) == len(members) // a repeated key may have had another kind before
}

func depth(text []byte) (n int) {
	for _, c := range text {
		if c == '[' || c == '{' {
			n++
		}
	}
	return n
}

// countKeys counts the members of the outermost object, repeated ones too.
func countKeys(text []byte) int {
	s := scanner{b: text}
	s.space()
	s.i++
	if s.space() == '}' {
		return 0
	}
	for n := 1; ; n++ {
		if _, _, ok := s.key(); !ok || !s.skip(1) {
			return -1
		}
		if done, ok := s.next('}'); !ok || done {
			return n
		}
	}
}

func compareExt(t *testing.T, text []byte, c *Command) {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return // raw control characters inside a string, which we let pass
	}
	var ext map[string]json.RawMessage
	if raw, ok := members["extFields"]; ok {
		if err := json.Unmarshal(raw, &ext); err != nil {
			t.Fatalf("took extFields %s: %v", raw, err)
		}
	}
	got := header(c).Ext
	for key, raw := range ext {
		var s string
		switch {
		case string(raw) == "null":
			if v, ok := got[key]; ok {
				t.Fatalf("%q is null, got %q", key, v)
			}
			continue
		case raw[0] != '"':
			s = string(raw)
		default:
			if err := json.Unmarshal(raw, &s); err != nil {
				t.Fatal(err)
			}
		}
		if v, ok := got[key]; !ok || v != s {
			t.Fatalf("%q is %q, got %q %v", key, s, v, ok)
		}
		delete(got, key)
	}
	if len(got) > 0 {
		t.Fatalf("too much: %q", got)
	}
}
