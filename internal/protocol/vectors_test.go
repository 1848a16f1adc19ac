package protocol

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

type vectorHeader struct {
	Code     int32             `json:"code"`
	Language string            `json:"language"`
	Version  int32             `json:"version"`
	Opaque   int32             `json:"opaque"`
	Flag     int32             `json:"flag"`
	Remark   string            `json:"remark"`
	Ext      map[string]string `json:"ext"`
}

type vectorFrame struct {
	Frame     string       `json:"frame"`
	Encoding  string       `json:"encoding"`
	Canonical bool         `json:"canonical"`
	Header    vectorHeader `json:"header"`
	Body      *struct {
		JSON   json.RawMessage `json:"json"`
		Strict *bool           `json:"strict"`
	} `json:"body"`
}

type vector struct {
	ID       string       `json:"id"`
	At       string       `json:"at"`
	From     string       `json:"from"`
	Code     int32        `json:"code"`
	Name     string       `json:"name"`
	Request  *vectorFrame `json:"request"`
	Response *vectorFrame `json:"response"`
}

// vectors gives the recorded exchanges, see testdata/vectors/README.md.
func vectors(t testing.TB) (all []vector) {
	names, err := filepath.Glob("testdata/vectors/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		f, err := os.Open(name)
		require.NoError(t, err)
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var v vector
			require.NoError(t, json.Unmarshal(lines.Bytes(), &v), name)
			all = append(all, v)
		}
		require.NoError(t, lines.Err())
		require.NoError(t, f.Close())
	}
	return all
}

func (v *vector) frames() map[string]*vectorFrame {
	m := map[string]*vectorFrame{}
	if v.Request != nil {
		m["request"] = v.Request
	}
	if v.Response != nil {
		m["response"] = v.Response
	}
	return m
}

func (f *vectorFrame) bytes(t testing.TB) []byte {
	b, err := hex.DecodeString(f.Frame)
	require.NoError(t, err)
	return b
}

// recordedFrame gives the frame of one recorded exchange.
func recordedFrame(t testing.TB, id string) []byte {
	for _, v := range vectors(t) {
		if v.ID == id {
			return v.Request.bytes(t)
		}
	}
	t.Fatalf("no recorded exchange %s", id)
	return nil
}

// header gives what was decoded, in the vectors' form.
func header(c *Command) vectorHeader {
	h := vectorHeader{
		Code: c.Code, Language: c.Language.String(), Version: c.Version, Opaque: c.Opaque, Flag: c.Flag, Remark: c.Remark,
	}
	for i := range c.Ext.Len() {
		if h.Ext == nil {
			h.Ext = map[string]string{}
		}
		f := c.Ext.At(i)
		h.Ext[string(f.Key)] = string(c.Ext.AppendUnescaped(nil, f))
	}
	return h
}

func TestVectorsHeaders(t *testing.T) {
	var c Command
	for _, v := range vectors(t) {
		require.Equal(t, v.Name, ReqName(v.Code))
		for side, f := range v.frames() {
			t.Run(v.ID+"/"+side, func(t *testing.T) {
				frame := f.bytes(t)
				n, err := FrameSize(frame, len(frame))
				require.NoError(t, err)
				require.Equal(t, len(frame), n)
				require.NoError(t, c.Decode(frame))
				require.Equal(t, f.Header, header(&c))
				require.Equal(t, map[string]Encoding{"json": JSON, "binary": Binary}[f.Encoding], c.Encoding)
				require.Equal(t, side == "response", c.IsResponse())
				require.False(t, c.OpaqueMissing)

				again := c.Append(nil)
				made := remake(f, c.Encoding, c.Body, c.Ext.present).Append(nil)
				if f.Canonical {
					require.Equal(t, string(frame), string(again))
					require.Equal(t, string(frame), string(made))
				}
				if c.Encoding == Binary { // only the order of the fields may differ
					require.Len(t, again, len(frame))
				}
				require.Len(t, made, len(again))
				var second Command
				require.NoError(t, second.Decode(again))
				require.Equal(t, f.Header, header(&second))
				require.Equal(t, string(c.Body), string(second.Body))
			})
		}
	}
}

// remake builds a command from the decoded header of a vector.
func remake(f *vectorFrame, encoding Encoding, body []byte, present bool) *Command {
	c := &Command{
		Code: f.Header.Code, Language: ParseLanguage(f.Header.Language), Version: f.Header.Version, Opaque: f.Header.Opaque,
		Flag: f.Header.Flag, Remark: f.Header.Remark, Encoding: encoding, Body: body,
	}
	for key, value := range f.Header.Ext {
		c.Ext.Set(key, value)
	}
	if present {
		c.Ext.present = true
	}
	return c
}
