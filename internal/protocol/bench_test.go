package protocol

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func benchmarkDecode(b *testing.B, frame []byte) {
	var c Command
	require.NoError(b, c.Decode(frame))
	b.ReportAllocs()
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		if err := c.Decode(frame); err != nil {
			b.Fatal(err)
		}
	}
}

// The headers of sends as the Java client makes them.
func BenchmarkDecodeJSON(b *testing.B)   { benchmarkDecode(b, recordedFrame(b, "java-send/2")) }
func BenchmarkDecodeBinary(b *testing.B) { benchmarkDecode(b, recordedFrame(b, "java-send-binary/3")) }

func benchmarkAppend(b *testing.B, frame []byte) {
	var c Command
	require.NoError(b, c.Decode(frame))
	dst := c.Append(nil)
	b.ReportAllocs()
	for b.Loop() {
		dst = c.Append(dst[:0])
	}
}

func BenchmarkAppendJSON(b *testing.B)   { benchmarkAppend(b, recordedFrame(b, "java-send/2")) }
func BenchmarkAppendBinary(b *testing.B) { benchmarkAppend(b, recordedFrame(b, "java-send-binary/3")) }

func TestDecodeDoesNotAllocate(t *testing.T) {
	var c Command
	frames := [][]byte{recordedFrame(t, "java-send/2"), recordedFrame(t, "java-send-binary/3"), recordedFrame(t, "go-send/3")}
	dst := make([]byte, 0, 4096)
	props := make([]byte, 0, 4096)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, frame := range frames {
			if err := c.Decode(frame); err != nil {
				panic(err)
			}
			for i := range c.Ext.Len() {
				props = c.Ext.AppendUnescaped(props[:0], c.Ext.At(i))
			}
			c.Ext.Get("i")
			dst = c.Append(dst[:0])
		}
	}))
}

func BenchmarkSendHeader(b *testing.B) {
	var c Command
	var h SendMessageRequest
	frame := recordedFrame(b, "java-send/2")
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Decode(frame); err != nil {
			b.Fatal(err)
		}
		if err := h.Decode(&c.Ext); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseHeartbeat(b *testing.B) {
	var c Command
	require.NoError(b, c.Decode(recordedFrame(b, "java-broadcast/3")))
	require.Equal(b, int32(ReqHeartBeat), c.Code)
	b.ReportAllocs()
	b.SetBytes(int64(len(c.Body)))
	for b.Loop() {
		if _, err := ParseHeartbeat(c.Body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendRoute(b *testing.B) {
	route := &TopicRouteData{
		BrokerDatas: []BrokerData{{BrokerAddrs: map[int64]string{0: "127.0.0.1:10911"}, BrokerName: "b", Cluster: "c"}},
		QueueDatas:  []QueueData{{BrokerName: "b", Perm: 6, ReadQueueNums: 4, WriteQueueNums: 4}},
	}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendStandardJSON(dst[:0], route)
	}
}

// Headers of one sender: number, key and time differ, as they do on the wire.
func BenchmarkDecoder(b *testing.B) {
	var frames [][]byte
	for _, name := range []string{"java-send/2", "java-send/2"} {
		frames = append(frames, recordedFrame(b, name))
	}
	var d Decoder
	var c Command
	require.NoError(b, c.Decode(frames[0]))
	c.Opaque += 17
	props, _ := c.Ext.Get("i")
	props = append([]byte(nil), props...)
	at := bytes.Index(props, []byte("UNIQ_KEY\x01"))
	require.Positive(b, at)
	copy(props[at+37:], "0A7")
	c.Ext.SetBytes("i", props)
	frames[1] = c.Append(nil)
	b.ReportAllocs()
	b.SetBytes(int64(len(frames[0])))
	for i := 0; b.Loop(); i++ {
		if _, err := d.Decode(frames[i&1]); err != nil {
			b.Fatal(err)
		}
	}
}
