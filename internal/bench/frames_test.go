package bench

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

func TestTemplateMakesSends(t *testing.T) {
	for _, encoding := range []protocol.Encoding{protocol.JSON, protocol.Binary} {
		for _, batch := range []int{1, 3} {
			for _, size := range []int{MinSize, 100} {
				tm, err := newTemplate(templateOptions{
					group: "pg", topic: "some_topic", broker: "broker-a", encoding: encoding, queues: 12, size: size, batch: batch,
				})
				require.NoError(t, err)
				require.Len(t, tm.members, batch)
				keys := map[string]bool{}
				var buf []byte
				for i := range 3 {
					at := len(buf)
					s := sending{
						opaque: opaqueBase + 7 + int32(i), born: 1795973957781, queue: 11,
						mark: mark{run: 9, stream: 2, queue: 11, sequence: uint64(10 * i), time: 1795973957781_000_001},
					}
					buf = tm.append(buf, &s)
					requireSend(t, buf[at:], &s, batch, size, keys)
				}
				require.Len(t, keys, 3*map[int]int{1: 1, 3: 4}[batch], "keys do not repeat")
			}
		}
	}
}

func requireSend(t *testing.T, frame []byte, s *sending, batch, size int, keys map[string]bool) {
	t.Helper()
	n, err := protocol.FrameSize(frame, maxFrame)
	require.NoError(t, err)
	require.Equal(t, len(frame), n)
	var c protocol.Command
	require.NoError(t, c.Decode(frame))
	require.Equal(t, s.opaque, c.Opaque)
	require.Zero(t, c.Flag)
	var h protocol.SendMessageRequest
	require.NoError(t, h.Decode(&c.Ext))
	require.Equal(t, "pg some_topic broker-a", string(h.ProducerGroup)+" "+string(h.Topic)+" "+string(h.Bname))
	require.Equal(t, s.born, h.BornTimestamp)
	require.Equal(t, int32(s.queue), h.QueueId)
	require.Equal(t, batch > 1, h.Batch)
	requireKey(t, c.Ext.Value(h.Properties), keys)
	if batch == 1 {
		require.Equal(t, int32(protocol.ReqSendMessageV2), c.Code)
		requireMark(t, c.Body, s.mark, size)
		return
	}
	require.Equal(t, int32(protocol.ReqSendBatchMessage), c.Code)
	r := message.NewBatchReader(c.Body)
	for i := range batch {
		_, body, props, ok := r.Next()
		require.True(t, ok)
		m := s.mark
		m.sequence += uint64(i)
		requireMark(t, body, m, size)
		requireKey(t, props, keys)
	}
	_, _, _, ok := r.Next()
	require.False(t, ok)
	require.NoError(t, r.Err())
}

func requireKey(t *testing.T, props []byte, keys map[string]bool) {
	t.Helper()
	key, ok := message.Property(props, message.PropertyUniqueKey)
	require.True(t, ok)
	require.Len(t, key, keySize)
	require.False(t, keys[string(key)])
	keys[string(key)] = true
	wait, _ := message.Property(props, message.PropertyWait)
	require.Equal(t, "true", string(wait))
}

func requireMark(t *testing.T, body []byte, want mark, size int) {
	t.Helper()
	require.Len(t, body, size)
	var m mark
	require.NoError(t, m.parse(body))
	require.Equal(t, want, m)
	damaged := append([]byte(nil), body...)
	damaged[len(damaged)-10]++
	require.ErrorIs(t, m.parse(damaged), errDamaged)
}

func TestTemplateRefusesWhatDoesNotFit(t *testing.T) {
	_, err := newTemplate(templateOptions{topic: "t", queues: 1, size: 1 << 20, batch: 16})
	require.ErrorContains(t, err, "a batch of 16 messages of 1048576 bytes")
}

// TestScanReplyAgreesWithDecode goes over everything that real servers have answered.
func TestScanReplyAgreesWithDecode(t *testing.T) {
	files, err := filepath.Glob("../protocol/testdata/vectors/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	scanned := 0
	for _, name := range files {
		f, err := os.Open(name)
		require.NoError(t, err)
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var v struct {
				ID       string
				Response *struct{ Frame string }
			}
			require.NoError(t, json.Unmarshal(lines.Bytes(), &v))
			if v.Response == nil {
				continue
			}
			frame, err := hex.DecodeString(v.Response.Frame)
			require.NoError(t, err)
			r, ok := scanReply(frame)
			require.True(t, ok, v.ID)
			var c protocol.Command
			require.NoError(t, c.Decode(frame))
			require.Equal(t, reply{opaque: c.Opaque, code: c.Code}, r, v.ID)
			scanned++
		}
		require.NoError(t, lines.Err())
	}
	require.Greater(t, scanned, 100)
}

func FuzzScanReply(f *testing.F) {
	for _, encoding := range []protocol.Encoding{protocol.JSON, protocol.Binary} {
		c := protocol.Command{Code: 2, Opaque: 1 << 30, Flag: protocol.FlagResponse, Remark: `"opaque":1,`, Encoding: encoding}
		c.Ext.Set("opaque", "5")
		f.Add(c.Append(nil))
		f.Add((&protocol.Command{Encoding: encoding}).Append(nil))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		r, ok := scanReply(frame)
		var c protocol.Command
		// Servers write each key once and in order; what a server does not write may be read otherwise.
		if ok && c.Decode(frame) == nil && string(c.Append(nil)) == string(frame) {
			require.Equal(t, reply{opaque: c.Opaque, code: c.Code}, r)
		}
	})
}

func FuzzMark(f *testing.F) {
	body, crc := filler(50)
	body = append(body, make([]byte, markSize)...)
	(&mark{run: 1, sequence: 2}).put(body, crc)
	f.Add(body)
	f.Fuzz(func(t *testing.T, b []byte) {
		var m mark
		if m.parse(b) != nil {
			return
		}
		again := append([]byte(nil), b...)
		m.put(again, crc32.Checksum(b[:len(b)-markSize], castagnoli))
		require.Equal(t, b, again)
	})
}

func TestNumbersAreWrittenInPlace(t *testing.T) {
	b := []byte("xxxxx")
	putDecimal(b, 1234)
	require.Equal(t, "01234", string(b))
	putDecimal(b[:1], 7)
	require.Equal(t, "71234", string(b))
	putHex(b, 0xABC)
	require.Equal(t, "00ABC", string(b))
	for text, want := range map[string]int32{"0,": 0, "12}": 12, "2147483647,": 1<<31 - 1} {
		got, ok := leadingInt([]byte(text))
		require.True(t, ok, text)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "12", "-1,", "x", "2147483648,", "12345678901,", `"1"`, "1.5,"} {
		_, ok := leadingInt([]byte(text))
		require.False(t, ok, text)
	}
}
