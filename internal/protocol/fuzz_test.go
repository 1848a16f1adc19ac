package protocol

import (
	"bytes"
	"compress/zlib"
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
			if _, ok := errors.AsType[*HeaderError](err); !ok {
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

// FuzzParseJSON reads any text into bodies of all shapes. What can be read can be
// written, and what was written means the same.
func FuzzParseJSON(f *testing.F) {
	for _, v := range vectors(f) {
		for _, vf := range v.frames() {
			if vf.Body == nil || vf.Body.JSON == nil || len(vf.Frame) > 4000 {
				continue
			}
			var c Command
			if err := c.Decode(vf.bytes(f)); err != nil {
				f.Fatal(err)
			}
			f.Add(c.Body)
		}
	}
	f.Add([]byte(`{'a':[1,2.5e3,"x\u0001",true,null,{}],b:{0:"x"},/* c */{"k":1}:2} // end`))
	f.Add([]byte(`{"offsetTable":[[{"topic":"t"},1]],"x":{"{\"queueId\":1}":2}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var x any
		wellFormed := ParseJSON(b, &x) == nil
		if json.Valid(b) && !wellFormed && depth(b) < maxBodyDepth && len(b) < 4096 {
			t.Fatalf("refused legal JSON: %v", ParseJSON(b, &x))
		}
		for _, table := range []map[int32]func() any{requestBodies, responseBodies} {
			for code, make := range table {
				body := make()
				if err := ParseJSON(b, body); err != nil {
					var e *BodyError
					if !errors.As(err, &e) || e.At < 0 || e.At > len(b) {
						t.Fatalf("bad error: %v", err)
					}
					continue
				}
				if !utf8.Valid(b) {
					continue // bytes that are no UTF-8 are replaced when they are written
				}
				text := AppendJSON(nil, body)
				again := make()
				if err := ParseJSON(text, again); err != nil {
					t.Fatalf("%s: parse %s again: %v", ReqName(code), text, err)
				}
				if second := AppendJSON(nil, again); string(second) != string(text) {
					t.Fatalf("%s: %s, again %s", ReqName(code), text, second)
				}
			}
		}
	})
}

func FuzzHeartbeat(f *testing.F) {
	for _, v := range vectors(f) {
		if v.Code == ReqHeartBeat {
			var c Command
			if err := c.Decode(v.Request.bytes(f)); err != nil {
				f.Fatal(err)
			}
			f.Add(c.Body)
		}
	}
	f.Add([]byte(`{"consumerDataSet":[{"consumeType":1,"messageModel":"clustering","subscriptionDataSet":[{"subString":"a||b","subVersion":"1"}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeartbeat(b)
		if err != nil || !utf8.Valid(b) {
			return
		}
		for _, c := range h.ConsumerDataSet {
			for _, s := range c.SubscriptionDataSet {
				if s.IsTag() && !s.ClassFilterMode && len(s.CodeSet) != len(s.TagsSet) {
					t.Fatalf("codes %v of tags %q", s.CodeSet, s.TagsSet)
				}
			}
		}
		text := AppendJSON(nil, h)
		again, err := ParseHeartbeat(text)
		if err != nil {
			t.Fatalf("parse %s again: %v", text, err)
		}
		if second := AppendJSON(nil, again); string(second) != string(text) {
			t.Fatalf("%s, again %s", text, second)
		}
	})
}

// FuzzRegisterBroker compresses the text itself: the fuzzer would not find its way into
// a stream.
func FuzzRegisterBroker(f *testing.F) {
	f.Add(false, []byte(`{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{},"topicConfigTable":{"A":{"topicName":"A"}}}}`))
	f.Add(true, []byte(piece("{}")+"\x00\x00\x00\x01"+piece(`A 4 4 6 SINGLE_TAG {"a":"b"}`)+piece("[]")+"\x00\x00\x00\x01"+piece(`{"topic":"A"}`)))
	f.Fuzz(func(t *testing.T, compressed bool, text []byte) {
		if compressed {
			text = deflate(t, string(text))
		}
		body, err := ParseRegisterBroker(text, ServerVersion, 0)
		if err != nil {
			if _, ok := errors.AsType[*BodyError](err); !ok {
				t.Fatalf("error of another type: %v", err)
			}
			return
		}
		if _, err := ParseRegisterBroker(AppendRegisterBroker(nil, body, false), ServerVersion, 0); err != nil {
			t.Fatalf("parse again: %v", err)
		}
	})
}

func deflate(t testing.TB, text string) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
