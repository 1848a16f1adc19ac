package protocol

import (
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
		dst = AppendRoute(dst[:0], route, ServerVersion, false)
	}
}
