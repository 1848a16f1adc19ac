package protocol

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A typedHeader is what the generator makes.
type typedHeader interface {
	Decode(e *Ext) error
	Encode(e *Ext)
}

type shortHeader interface{ EncodeShort(e *Ext) }

// extras are ext fields that belong to no header: what clients add to every request, and
// what the server in front of a handler reads.
var extras = map[string]bool{
	"ReqT": true, "AccessKey": true, "Signature": true, "SecurityToken": true, "OnsChannel": true, "ns": true, "nsd": true,
	"oway": true, "bname": true, "lo": true,
}

// TestVectorsTypedHeaders decodes the ext fields of all recorded frames into their typed
// headers, which must know every one of them, and encodes them again.
func TestVectorsTypedHeaders(t *testing.T) {
	seen := map[int32]bool{}
	for _, v := range vectors(t) {
		for side, f := range v.frames() {
			table := map[string]map[int32]func() typedHeader{"request": requestHeaders, "response": responseHeaders}[side]
			var c Command
			require.NoError(t, c.Decode(f.bytes(t)))
			make := table[v.Code]
			if make == nil {
				for key := range f.Header.Ext {
					require.True(t, extras[key] || key == "MSG_REGION" || key == "TRACE_ON", "%s %s %s", v.ID, v.Name, key)
				}
				continue
			}
			if side == "response" && f.Header.Ext == nil {
				continue // errors have no header
			}
			h := make()
			require.NoError(t, h.Decode(&c.Ext), v.ID)
			var again Ext
			if _, ok := c.Ext.Get("a"); ok && v.Code >= 310 && v.Code <= 325 {
				h.(shortHeader).EncodeShort(&again)
			} else {
				h.Encode(&again)
			}
			for key, want := range f.Header.Ext {
				got, ok := again.Get(key)
				if ok {
					require.Equal(t, want, string(got), "%s %s", v.ID, key)
					continue
				}
				zero := want == "" || want == "0" || want == "false" || want == "-1" || want == "true" && (key == "committed" || key == "lo")
				require.True(t, zero || extras[key] || key == "MSG_REGION", "%s %s: %s=%s is lost", v.ID, v.Name, key, want)
			}
			second := make()
			require.NoError(t, second.Decode(&again))
			if side == "request" {
				seen[v.Code] = true
			}
		}
	}
	require.Greater(t, len(seen), 50)
}

// TestTypedHeadersRoundTrip fills every header with values and reads back what it writes.
func TestTypedHeadersRoundTrip(t *testing.T) {
	for side, table := range map[string]map[int32]func() typedHeader{"request": requestHeaders, "response": responseHeaders} {
		for code, make := range table {
			t.Run(side+" "+ReqName(code), func(t *testing.T) {
				for name, encode := range map[string]func(h typedHeader, e *Ext){
					"long": func(h typedHeader, e *Ext) { h.Encode(e) },
					"short": func(h typedHeader, e *Ext) {
						if s, ok := h.(shortHeader); ok {
							s.EncodeShort(e)
						} else {
							h.Encode(e)
						}
					},
				} {
					h := make()
					fill(reflect.ValueOf(h).Elem())
					for _, encoding := range []Encoding{JSON, Binary} {
						c := Command{Code: code, Encoding: encoding}
						encode(h, &c.Ext)
						var got Command
						require.NoError(t, got.Decode(c.Append(nil)))
						again := make()
						require.NoError(t, again.Decode(&got.Ext))
						unify(&got.Ext, reflect.ValueOf(again).Elem())
						require.Equal(t, h, again, name)
					}
				}
			})
		}
	}
}

// fill gives every field a value that is neither zero nor a default.
func fill(v reflect.Value) {
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		if !f.CanSet() {
			continue // what a hot header remembers
		}
		switch f.Kind() {
		case reflect.String:
			f.SetString("text of " + name + "\x01é")
		case reflect.Slice:
			f.SetBytes([]byte("bytes of " + name))
		case reflect.Int32, reflect.Int64:
			f.SetInt(int64(-100 - i))
		case reflect.Bool:
			f.SetBool(name != "Lo" && name != "Committed" && name != "SetZeroIfNotFound")
		case reflect.Pointer:
			f.Set(reflect.ValueOf(&Field{Value: []byte("K\x01v\x02")}))
		}
	}
}

// unify makes raw fields comparable: only their meaning counts.
func unify(e *Ext, v reflect.Value) {
	for _, x := range v.Fields() {
		if !x.CanSet() {
			continue
		}
		if f, ok := reflect.TypeAssert[*Field](x); ok {
			x.Set(reflect.ValueOf(&Field{Value: e.AppendUnescaped(nil, f)}))
		}
	}
}

func TestHeaderErrors(t *testing.T) {
	decode := func(h typedHeader, fields ...string) error {
		var e Ext
		for i := 0; i < len(fields); i += 2 {
			e.Set(fields[i], fields[i+1])
		}
		return h.Decode(&e)
	}
	for _, k := range []struct {
		h      typedHeader
		fields []string
		want   string
	}{
		{&PullMessageRequest{}, nil, "header field consumerGroup is missing"},
		{&PullMessageRequest{}, []string{"consumerGroup", "g", "topic", ""}, "header field topic is missing"},
		{&PullMessageRequest{}, []string{"consumerGroup", "g", "topic", "t", "queueId", "1"}, "header field queueOffset is missing"},
		{&PullMessageRequest{}, []string{"queueId", "x"}, `header field queueId is not a 32-bit integer: "x"`},
		{&PullMessageRequest{}, []string{"queueId", "2147483648"}, `header field queueId is not a 32-bit integer: "2147483648"`},
		{&PullMessageRequest{}, []string{"queueId", ""}, `header field queueId is not a 32-bit integer`},
		{&SendMessageRequest{}, []string{"e", "-"}, `header field queueId is not a 32-bit integer: "-"`},
		{&PullMessageRequest{}, []string{"queueOffset", "9223372036854775808"}, `header field queueOffset is not a 64-bit integer: "9223372036854775808"`},
		{&PullMessageRequest{}, []string{"queueOffset", strings.Repeat("9", 100)}, `header field queueOffset is not a 64-bit integer: "` + strings.Repeat("9", 64) + `…"`},
	} {
		err := decode(k.h, k.fields...)
		require.EqualError(t, err, k.want)
		require.ErrorIs(t, err, ErrMalformed)
	}
}

func TestHeaderDefaults(t *testing.T) {
	var e Ext
	e.Set("topic", "t")
	e.Set("group", "g")
	var reset ResetOffsetRequest
	require.NoError(t, reset.Decode(&e))
	require.Equal(t, ResetOffsetRequest{Topic: "t", Group: "g", QueueId: -1, Offset: -1}, reset)

	e.Reset()
	e.Set("consumerGroup", "g")
	e.Set("topic", "t")
	e.Set("queueId", "+3")
	var query QueryConsumerOffsetRequest
	require.NoError(t, query.Decode(&e))
	require.True(t, query.SetZeroIfNotFound)
	require.True(t, query.Lo)
	require.Equal(t, int32(3), query.QueueId)
	e.Set("setZeroIfNotFound", "FALSE")
	require.NoError(t, query.Decode(&e))
	require.False(t, query.SetZeroIfNotFound)

	var update UpdateConsumerOffsetRequest
	require.NoError(t, update.Decode(&e))
	require.True(t, update.HasQueueId)
	require.False(t, update.HasCommitOffset)

	var del DeleteSubscriptionGroupRequest
	e.Reset()
	e.Set("groupName", "g")
	e.Set("removeOffset", "TRUE") // a 4.x tool
	require.NoError(t, del.Decode(&e))
	require.True(t, del.CleanOffset)
}

// The short names of SEND_MESSAGE_V2 come from real frames in the vectors; this one has
// numbers where other clients have strings, as the C++ client sends them.
func TestHeaderOfNumbers(t *testing.T) {
	var c Command
	require.NoError(t, c.Decode(jsonFrame(`{"code":310,"extFields":{"a":"g","b":"t","d":4,"e":-1,"f":0,"h":7,"k":false,"l":3,"m":true,"i":"K\u0001v\u0002"}}`+"\n", "")))
	var h SendMessageRequest
	require.NoError(t, h.Decode(&c.Ext))
	require.Equal(t, "t", string(h.Topic))
	require.Equal(t, []int32{4, -1, 7, 3}, []int32{h.DefaultTopicQueueNums, h.QueueId, h.Flag, h.MaxReconsumeTimes})
	require.True(t, h.Batch)
	require.True(t, h.HasMaxReconsumeTimes)
	require.True(t, h.Properties.Escaped)
	require.Equal(t, "K\x01v\x02", string(c.Ext.AppendUnescaped(nil, h.Properties)))
}

func TestNames(t *testing.T) {
	require.Equal(t, "SEND_MESSAGE", ReqName(ReqSendMessage))
	require.Equal(t, "BATCH_ACK_MESSAGE", ReqName(200151))
	require.Equal(t, "31337", ReqName(31337))
	require.Equal(t, "PULL_NOT_FOUND", RespName(RespPullNotFound))
	require.Equal(t, "-1", RespName(-1))
}
