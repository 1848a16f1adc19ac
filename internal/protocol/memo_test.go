package protocol

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sameDecoding decodes frames one after another with one Decoder, into the same typed
// headers, and compares with what comes out when each is decoded by itself.
func sameDecoding(t *testing.T, frames ...[]byte) (d Decoder) {
	var send SendMessageRequest
	var pull PullMessageRequest
	for i, frame := range frames {
		var want Command
		wantErr := want.Decode(frame)
		got, err := d.Decode(frame)
		require.Equal(t, wantErr, err, "frame %d", i)
		if err != nil {
			continue
		}
		require.Equal(t, header(&want), header(got), "frame %d: %q", i, frame)
		require.Equal(t, want.Body, got.Body)
		require.Equal(t, want.Ext.Len(), got.Ext.Len())
		for k := range want.Ext.Len() {
			a, b := want.Ext.At(k), got.Ext.At(k)
			require.Equal(t, string(a.Key), string(b.Key), "frame %d, field %d", i, k)
			require.Equal(t, string(a.Value), string(b.Value), "frame %d, field %d", i, k)
			require.Equal(t, a.Escaped, b.Escaped, "frame %d, field %d", i, k)
		}
		sameTyped(t, &want.Ext, &got.Ext, &SendMessageRequest{}, &send)
		sameTyped(t, &want.Ext, &got.Ext, &PullMessageRequest{}, &pull)
	}
	return d
}

func sameTyped(t *testing.T, from, fromMemo *Ext, want, got typedHeader) {
	wantErr, err := want.Decode(from), got.Decode(fromMemo)
	require.Equal(t, fmt.Sprint(wantErr), fmt.Sprint(err))
	if err != nil {
		return
	}
	var a, b Ext
	want.Encode(&a)
	got.Encode(&b)
	require.Equal(t, fields(&a), fields(&b))
}

// fields are what an Ext has, in order, unescaped.
func fields(e *Ext) (out []string) {
	for i := range e.Len() {
		f := e.At(i)
		out = append(out, string(f.Key)+"="+string(e.AppendUnescaped(nil, f)))
	}
	return out
}

func memoFrame(format string, args ...any) []byte {
	return anyFrame(JSON, fmt.Sprintf(format, args...), "body")
}

const memoHead = `{"code":310,"extFields":{"a":"group","b":"%s","c":"TBW102","d":"4","e":"%s","f":"0","g":"%d","h":"0","i":"%s","m":"false"},"flag":0,"language":"JAVA","opaque":%d,"serializeTypeCurrentRPC":"JSON","version":%d}`

// TestDecoderMemo changes one thing after another in a header that is remembered.
func TestDecoderMemo(t *testing.T) {
	const key = `UNIQ_KEY\u0001AC110001000018B4AAC2000000000001\u0002WAIT\u0001true\u0002`
	first := memoFrame(memoHead, "topic", "3", 1700000000000, key, 7, 513)
	for name, second := range map[string][]byte{
		"nothing":              first,
		"opaque, longer":       memoFrame(memoHead, "topic", "3", 1700000000000, key, 1000000001, 513),
		"opaque, 32 bits":      memoFrame(memoHead, "topic", "3", 1700000000000, key, 2147483647, 513),
		"opaque, too large":    memoFrame(memoHead, "topic", "3", 1700000000000, key, 2147483648, 513),
		"opaque, negative":     memoFrame(memoHead, "topic", "3", 1700000000000, key, -1, 513),
		"opaque, leading zero": bytes.Replace(first, []byte(`"opaque":7`), []byte(`"opaque":07`), 1),
		"version":              memoFrame(memoHead, "topic", "3", 1700000000000, key, 7, 5),
		"code":                 bytes.Replace(first, []byte(":310"), []byte(":320"), 1),
		"topic":                memoFrame(memoHead, "other", "3", 1700000000000, key, 7, 513),
		"topic, longer":        memoFrame(memoHead, "topic2", "3", 1700000000000, key, 7, 513),
		"topic, none":          memoFrame(memoHead, "", "3", 1700000000000, key, 7, 513),
		"topic, escaped":       memoFrame(memoHead, `t\u006fpic`, "3", 1700000000000, key, 7, 513),
		"queue":                memoFrame(memoHead, "topic", "12", 1700000000123, key, 7, 513),
		"queue, no number":     memoFrame(memoHead, "topic", "x", 1700000000000, key, 7, 513),
		"key":                  memoFrame(memoHead, "topic", "3", 1700000000000, strings.Replace(key, "01\\u0002W", "0A\\u0002W", 1), 7, 513),
		"key, bad escape":      memoFrame(memoHead, "topic", "3", 1700000000000, strings.Replace(key, "u0002W", "u00x2W", 1), 7, 513),
		"key, other escape":    memoFrame(memoHead, "topic", "3", 1700000000000, strings.Replace(key, "u0002W", "u0003W", 1), 7, 513),
		"key, an escape more":  memoFrame(memoHead, "topic", "3", 1700000000000, strings.Replace(key, "AC1100", `\u0041C`, 1), 7, 513),
		"key, an escape less":  memoFrame(memoHead, "topic", "3", 1700000000000, strings.Replace(key, `\u0001tr`, `x23456tr`, 1), 7, 513),
		"key, a quote":         memoFrame(memoHead, "topic", "3", 1700000000000, strings.Replace(key, "AC11", `AC"1`, 1), 7, 513),
		"key, moved quotes":    bytes.Replace(first, []byte(`"h":"0","i"`), []byte(`"h":"0,"i""`), 1),
		"another member":       bytes.Replace(first, []byte(`"m":"false"`), []byte(`"m":"false","n":"b"`), 1),
		"a member less":        bytes.Replace(first, []byte(`,"m":"false"`), nil, 1),
		"a remark":             bytes.Replace(first, []byte(`"serial`), []byte(`"remark":"r","serial`), 1),
		"white space":          bytes.Replace(first, []byte(`"opaque":7`), []byte(`"opaque": 7`), 1),
		"shorter":              memoFrame(memoHead[:len(memoHead)-1], "topic", "3", 1700000000000, key, 7, 513),
		"longer":               memoFrame(memoHead+" x", "topic", "3", 1700000000000, key, 7, 513),
	} {
		t.Run(name, func(t *testing.T) {
			second := fixFrame(second)
			sameDecoding(t, first, second, first, first, second, second, first)
		})
	}
}

// fixFrame makes the two words of a frame agree with a header that was changed.
func fixFrame(frame []byte) []byte {
	return anyFrame(JSON, string(frame[8:len(frame)-len("body")]), "body")
}

// TestDecoderMemoIsUsed keeps the other tests from passing because nothing is ever remembered.
func TestDecoderMemoIsUsed(t *testing.T) {
	var d Decoder
	for i := range 3 {
		c, err := d.Decode(memoFrame(memoHead, "topic", "3", 1700000000000+i, "K", i+1, 513))
		require.NoError(t, err)
		require.Equal(t, i > 0, c.Ext.memo != nil)
		var h SendMessageRequest
		require.NoError(t, h.Decode(&c.Ext))
		require.EqualValues(t, 1700000000000+i, h.BornTimestamp)
	}
}

// TestDecoderMemoOfOddHeaders: what has a member twice, under both of its names, or
// other things that clients do not write.
func TestDecoderMemoOfOddHeaders(t *testing.T) {
	for _, text := range []string{
		`{"code":310,"extFields":{"topic":"long","b":"%d","queueId":"1","e":"2"},"flag":0,"opaque":1}`,
		`{"code":310,"extFields":{"b":"%d","b":"second","e":"2"},"flag":0,"opaque":1}`,
		`{"code":310,"extFields":{"b":"%d","e":2},"flag":0,"opaque":1,"language":"JAVA"}`,
		`{"code":310,"extFields":{"b":"%d","e":"2"},"extFields":{"b":"x","e":"1"},"opaque":1}`,
		`{"code":310,"opaque":1,"extFields":{"b":"%d","e":"2"},"opaque":2,"code":11}`,
		`{"code":310,"opaque":null,"extFields":{"b":"%d","e":"2"},"language":8}`,
		`{"code":310,"opaque":3,"extFields":null,"x":{"y":[%d]},"language":"NO_SUCH"}`,
		`{"code":310,"opaque":3,"extFields":{},"language":"GO","version":1,"n":"%d"}`,
		`{"code":310,"extFields":{"a":"\u0061%d","b":"t\u006fpic","e":"2"},"flag":0,"opaque":1}`,
		` { "code" : 310 , "extFields" : { "b" : "%d" , "e" : "1" } , "opaque" : 3 } `,
	} {
		var frames [][]byte
		for i := range 40 {
			frames = append(frames, memoFrame(text, i/3))
		}
		sameDecoding(t, frames...)
	}
}

func TestDecoderMemoOfManyFields(t *testing.T) {
	for _, n := range []int{39, 40, 41, 70} {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"f%d":"%%[1]d",`, i)
		}
		text := `{"code":310,"extFields":{` + b.String() + `"b":"t","e":"%[1]d"},"opaque":%[1]d}`
		var frames [][]byte
		for i := range 12 {
			frames = append(frames, memoFrame(text, i*3))
		}
		sameDecoding(t, frames...)
	}
}

// TestDecoderMemoAtRandom damages recorded headers at random, again and again with the
// same Decoder.
func TestDecoderMemoAtRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var seeds [][]byte
	for _, v := range vectors(t) {
		for _, vf := range v.frames() {
			if frame := vf.bytes(t); frame[4] == byte(JSON) {
				seeds = append(seeds, frame)
			}
		}
	}
	const alphabet = `"\u0001,:{}[]0129aAe- ` + "\x01\xff"
	for range 300 {
		frame := seeds[r.IntN(len(seeds))]
		frames := [][]byte{frame}
		for range 6 {
			next := bytes.Clone(frame)
			end := 8 + int(next[5])<<16 + int(next[6])<<8 + int(next[7])
			for range r.IntN(3) {
				next[8+r.IntN(end-8)] = alphabet[r.IntN(len(alphabet))]
			}
			frames = append(frames, next, frame)
		}
		sameDecoding(t, frames...)
	}
}

// FuzzDecoder decodes two headers in turn: whatever the one leaves behind must not
// show in the other.
func FuzzDecoder(f *testing.F) {
	text := func(frame []byte) []byte { return frame[8 : len(frame)-len("body")] }
	a := text(memoFrame(memoHead, "topic", "3", 1700000000000, `UNIQ_KEY\u0001AC11\u0002`, 7, 513))
	f.Add(a, text(memoFrame(memoHead, "topic", "14", 1700000000001, `UNIQ_KEY\u0001AC12\u0002`, 1000000001, 513)))
	f.Add(a, bytes.Replace(a, []byte(`AC11`), []byte(`\"\\x`), 1))
	f.Add(a, bytes.Replace(a, []byte(`"h":"0","i"`), []byte(`"h":"0,"i""`), 1))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		x, y := anyFrame(JSON, string(a), "body"), anyFrame(JSON, string(b), "body")
		sameDecoding(t, x, y, x, x, y)
	})
}
