package protocol

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// jsonFrame makes a frame with a JSON header of any text.
func jsonFrame(header, body string) []byte { return anyFrame(JSON, header, body) }

func anyFrame(encoding Encoding, header, body string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(header))|uint32(encoding)<<24)
	return append(append(b, header...), body...)
}

func decodeHex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	require.NoError(t, err)
	return b
}

func TestWorkedExamples(t *testing.T) {
	c := Command{Code: 105, Language: LanguageJava, Version: 479, Opaque: 7}
	c.Ext.Set("topic", "TopicTest")
	textFrame := decodeHex(t, "00000087 00000083"+hex.EncodeToString([]byte(
		`{"code":105,"extFields":{"topic":"TopicTest"},"flag":0,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":479}`)))
	require.Equal(t, textFrame, c.Append(nil))
	binaryFrame := decodeHex(t, `0000002d 01000029 0069 00 01df 00000007 00000000 00000000 00000014
		0005 746f706963 00000009 546f70696354657374`)
	c.Encoding = Binary
	require.Equal(t, binaryFrame, c.Append(nil))

	var got Command
	for _, frame := range [][]byte{textFrame, binaryFrame} {
		require.NoError(t, got.Decode(frame))
		require.Equal(t, header(&c), header(&got))
	}
	reply := Command{Code: 17, Language: LanguageJava, Version: 479, Opaque: 7, Flag: FlagResponse,
		Remark: "No topic route info in name server for the topic: TopicTest"}
	frame := reply.Append(nil)
	require.Equal(t, "000000ab000000a7", hex.EncodeToString(frame[:8]))
}

func TestReply(t *testing.T) {
	c := Command{Opaque: 9, Encoding: Binary, Language: LanguageGo, Flag: FlagOneway}
	r := c.Reply(17, "no route")
	require.Equal(t, &Command{Code: 17, Opaque: 9, Encoding: Binary, Version: 513, Flag: 1, Remark: "no route"}, r)
	require.True(t, r.IsResponse())
	require.False(t, r.IsOneway())
	require.True(t, c.IsOneway())
	require.Equal(t, "TOPIC_NOT_EXIST", r.Name())
}

func TestDecodeAnyLegalJSON(t *testing.T) {
	var c Command
	for name, k := range map[string]struct {
		in      string
		want    vectorHeader
		missing bool
	}{
		"empty":      {in: `{}`, want: vectorHeader{Language: "UNKNOWN"}, missing: true},
		"spaces":     {in: " { \"code\" :\t1 ,\r\n\"opaque\": 2 , \"extFields\" : { \"a\" : \"b\" , \"c\":\"d\" } } \n", want: vectorHeader{Code: 1, Opaque: 2, Language: "UNKNOWN", Ext: map[string]string{"a": "b", "c": "d"}}},
		"strings":    {in: `{"code":"30","flag":"-1","version":"0","opaque":"5"}`, want: vectorHeader{Code: 30, Flag: -1, Opaque: 5, Language: "UNKNOWN"}},
		"floats":     {in: `{"code":3e1,"flag":1.0,"opaque":-5}`, want: vectorHeader{Code: 30, Flag: 1, Opaque: -5, Language: "UNKNOWN"}},
		"extremes":   {in: `{"code":2147483647,"opaque":-2147483648}`, want: vectorHeader{Code: 1<<31 - 1, Opaque: -1 << 31, Language: "UNKNOWN"}},
		"null":       {in: `{"code":null,"opaque":null,"remark":null,"extFields":null,"language":null}`, want: vectorHeader{Language: "UNKNOWN"}, missing: true},
		"odd ext":    {in: `{"opaque":1,"extFields":{"n":4,"t":true,"f":false,"z":null,"r":-1.5e3,"o":{"a":[1,"}"]}}}`, want: vectorHeader{Opaque: 1, Language: "UNKNOWN", Ext: map[string]string{"n": "4", "t": "true", "f": "false", "r": "-1.5e3", "o": `{"a":[1,"}"]}`}}},
		"escapes":    {in: `{"opaque":1,"rem\u0061rk":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud83dx","extFields":{"\u0061\u0062":"x\u0001y\u0002"}}`, want: vectorHeader{Opaque: 1, Language: "UNKNOWN", Remark: "\"\\/\b\f\n\r\té😀\uFFFDx", Ext: map[string]string{"ab": "x\x01y\x02"}}},
		"unknown":    {in: `{"opaque":1,"x":[],"y":{"z":[{},[1,2,{"q":null}]]},"serializeTypeCurrentRPC":"JSON"}`, want: vectorHeader{Opaque: 1, Language: "UNKNOWN"}},
		"language":   {in: `{"opaque":1,"language":"GO"}`, want: vectorHeader{Opaque: 1, Language: "GO"}},
		"case":       {in: `{"opaque":1,"language":"node_js"}`, want: vectorHeader{Opaque: 1, Language: "NODE_JS"}},
		"ordinal":    {in: `{"opaque":1,"language":9}`, want: vectorHeader{Opaque: 1, Language: "GO"}},
		"klingon":    {in: `{"opaque":1,"language":"KLINGON"}`, want: vectorHeader{Opaque: 1, Language: "UNKNOWN"}},
		"ordinal 99": {in: `{"opaque":1,"language":99}`, want: vectorHeader{Opaque: 1, Language: "UNKNOWN"}},
		"twice":      {in: `{"opaque":1,"opaque":2,"extFields":{"a":"1"},"extFields":{"b":"1","b":"2","c":"1","c":null}}`, want: vectorHeader{Opaque: 2, Language: "UNKNOWN", Ext: map[string]string{"b": "2"}}},
		"utf-8":      {in: `{"opaque":1,"extFields":{"topic":"主题"}}`, want: vectorHeader{Opaque: 1, Language: "UNKNOWN", Ext: map[string]string{"topic": "主题"}}},
		"remark":     {in: `{"opaque":1,"remark":17}`, want: vectorHeader{Opaque: 1, Language: "UNKNOWN", Remark: "17"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.Decode(jsonFrame(k.in, "body")))
			require.Equal(t, k.want, header(&c))
			require.Equal(t, k.missing, c.OpaqueMissing)
			require.Equal(t, "body", string(c.Body))
		})
	}
}

func TestDecodeBadJSON(t *testing.T) {
	var c Command
	for _, in := range []string{
		``, ` `, `null`, `[]`, `"x"`, `{`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{"a":1}}`, `{}x`,
		`{'code':1}`, `{code:1}`, `{"code":}`, `{"code":01}`, `{"code":1.}`, `{"code":1e}`, `{"code":-}`, `{"code":1.5}`, `{"code":tru}`,
		`{"code":2147483648}`, `{"code":"x"}`, `{"code":""}`, `{"code":[]}`, `{"code":{}}`, `{"code":true}`, `{"code":1e99}`,
		`{"remark":"\x"}`, `{"remark":"\u12"}`, `{"remark":"\u12g4"}`, `{"remark":"\'"}`, `{"remark":"x}`, `{"remark":"\`, `{"remark":"\u0`,
		`{"extFields":[]}`, `{"extFields":"x"}`, `{"extFields":{"a"}}`, `{"extFields":{"a":"b",}}`, `{"extFields":{"a":"b"`, `{"extFields":{a:"b"}}`,
		`{"extFields":{"a":b}}`, `{"extFields":{,}}`, `{"language":[]}`, `{"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
		"{\"a\"\x00:1}", "{\"a\":1}\x00",
	} {
		t.Run(in, func(t *testing.T) {
			err := c.Decode(jsonFrame(in, ""))
			var h *HeaderError
			require.ErrorAs(t, err, &h)
			require.ErrorIs(t, err, ErrMalformed)
			require.Equal(t, JSON, h.Encoding)
			require.NotEmpty(t, h.Why)
			require.LessOrEqual(t, h.At, len(in))
		})
	}
}

func TestDecodeBinaryErrors(t *testing.T) {
	good := decodeHex(t, `0000002d 01000029 0069 00 01df 00000007 00000000 00000000 00000014
		0005 746f706963 00000009 546f70696354657374`)
	change := func(at int, b ...byte) []byte {
		c := bytes.Clone(good)
		copy(c[at:], b)
		return c
	}
	var c Command
	require.NoError(t, c.Decode(good))
	for name, frame := range map[string][]byte{
		"short":          anyFrame(Binary, strings.Repeat("\x00", 20), "body"),
		"remark":         change(21, 0, 0, 0, 21),
		"remark < 0":     change(21, 0x80),
		"ext":            change(25, 0, 0, 0, 21),
		"ext too short":  change(25, 0, 0, 0, 19),
		"ext < 0":        change(25, 0xFF),
		"key":            change(29, 0, 30),
		"key < 0":        change(29, 0x80),
		"value":          change(36, 0, 0, 0, 10),
		"value < 0":      change(36, 0x80),
		"half a key":     anyFrame(Binary, string(decodeHex(t, "0069 00 01df 00000007 00000000 00000000 00000001 00")), ""),
		"other encoding": change(4, 2),
	} {
		t.Run(name, func(t *testing.T) {
			var h *HeaderError
			require.ErrorAs(t, c.Decode(frame), &h)
			require.NotEmpty(t, h.Error())
		})
	}
}

func TestBinaryCodesAndValues(t *testing.T) {
	var got Command
	for _, code := range []int32{200050, 200056, 200070, 200079, 200151, 3001, 5001, 0, -1} {
		c := Command{Code: code, Encoding: Binary}
		require.NoError(t, got.Decode(c.Append(nil)))
		require.Equal(t, code, got.Code)
	}
	c := Command{Encoding: Binary, Flag: FlagResponse, Code: 3442, Language: LanguageUnknown, Version: -1, Opaque: -1, Remark: "é"}
	c.Ext.Set("empty", "") // is not seen by readers of this encoding
	c.Ext.Set("", "x")
	c.Ext.Set("k", "v\x01")
	require.NoError(t, got.Decode(c.Append(nil)))
	require.Equal(t, vectorHeader{Code: 3442, Flag: 1, Language: "OTHER", Version: -1, Opaque: -1, Remark: "é",
		Ext: map[string]string{"k": "v\x01"}}, header(&got))

	// From JSON with escapes to binary.
	require.NoError(t, got.Decode(jsonFrame(`{"extFields":{"k":"v\u0001"}}`, "")))
	got.Encoding = Binary
	var again Command
	require.NoError(t, again.Decode(got.Append(nil)))
	value, ok := again.Ext.Get("k")
	require.True(t, ok)
	require.Equal(t, "v\x01", string(value))
}

func TestFrameSize(t *testing.T) {
	const max = 100
	for _, k := range []struct {
		in    string
		n     int
		field string
	}{
		{"", 0, ""},
		{"000000", 0, ""},
		{"00000004", 8, ""},
		{"00000004 000000", 8, ""},
		{"00000004 00000000", 8, ""},
		{"00000004 00000001", 0, "header length"},
		{"00000060 00000000", 100, ""},
		{"00000060 0100005c", 100, ""},
		{"00000060 0100005d", 0, "header length"},
		{"00000061", 0, "length"},
		{"00000003", 0, "length"},
		{"80000000", 0, "length"},
		{"ffffffff 00000000", 0, "length"},
		{"7fffffff 00000000", 0, "length"},
	} {
		n, err := FrameSize(decodeHex(t, k.in), max)
		require.Equal(t, k.n, n, k.in)
		if k.field == "" {
			require.NoError(t, err, k.in)
			continue
		}
		var f *FrameError
		require.ErrorAs(t, err, &f)
		require.ErrorIs(t, err, ErrMalformed)
		require.Equal(t, k.field, f.Field, k.in)
	}
	var c Command
	for _, frame := range [][]byte{nil, {0, 0, 0, 4, 0, 0, 0}, {0, 0, 0, 4, 0, 0, 0, 0, 0}} {
		var f *FrameError
		require.ErrorAs(t, c.Decode(frame), &f)
	}
}

func TestExt(t *testing.T) {
	var e Ext
	_, ok := e.Get("a")
	require.False(t, ok)
	e.Set("a", "1")
	e.SetInt("b", -5)
	e.SetBool("c", true)
	e.SetBytes("d", []byte("\x01"))
	e.Set("a", "longer than before")
	require.Equal(t, 4, e.Len())
	for key, want := range map[string]string{"a": "longer than before", "b": "-5", "c": "true", "d": "\x01"} {
		got, ok := e.Get(key)
		require.True(t, ok)
		require.Equal(t, want, string(got))
	}
	e.Delete("a")
	_, ok = e.Get("a")
	require.False(t, ok)
	want := `{"b":"-5","c":"true","d":"\u0001"}`
	require.Equal(t, want, string(e.appendJSON(nil)))
	e.Set("big", strings.Repeat("x", maxArena+1))
	e.Reset()
	require.Zero(t, e.Len())
	require.Zero(t, cap(e.arena))

	// A long list is sorted too.
	for i := range 200 {
		e.SetInt(string(rune('a'+(i*7)%26))+strings.Repeat("x", i), int64(i))
	}
	keys := []string{}
	require.True(t, json.Valid(e.appendJSON(nil)))
	for _, i := range e.order(nil) {
		keys = append(keys, string(e.At(i).Key))
	}
	require.IsIncreasing(t, keys)
}

func TestAppendJSONString(t *testing.T) {
	for in, want := range map[string]string{
		"": `""`, "abc": `"abc"`, "a\x01b\x02": `"a\u0001b\u0002"`, "\x1f\x00": `"\u001f\u0000"`, "\"\\\n\r\t\b\f/": `"\"\\\n\r\t\b\f/"`,
		"é主😀": `"é主😀"`, "a\xffb": `"a\ufffdb"`, "\u2028": "\"\u2028\"", "\x7f": "\"\x7f\"", "\uFFFD": "\"\uFFFD\"",
	} {
		require.Equal(t, want, string(AppendJSONString(nil, in)))
		require.Equal(t, want, string(AppendJSONString(nil, []byte(in))))
	}
	require.Equal(t, `"\u00e9\ud83d\ude00a\u0001"`, string(appendString(nil, "é😀a\x01", true)))
}

func FuzzFrameSize(f *testing.F) {
	f.Add([]byte{0, 0, 0, 4, 0, 0, 0, 0}, 100)
	f.Add([]byte{0xFF, 0, 0, 4, 0xFF}, 1<<24)
	f.Fuzz(func(t *testing.T, b []byte, max int) {
		n, err := FrameSize(b, max)
		if err != nil {
			var e *FrameError
			if !errors.As(err, &e) || n != 0 {
				t.Fatalf("n %d, error %v", n, err)
			}
			return
		}
		if n == 0 && len(b) >= lengthSize || n != 0 && (n < frameHead || n > max) {
			t.Fatalf("size %d of %x, max %d", n, b, max)
		}
	})
}
