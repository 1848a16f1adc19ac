package remotingdoor_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/message"
)

// remoting.md §4.6: members one by one, one after the other; the answer names them all.
func TestABatchIsStoredMemberByMember(t *testing.T) {
	everyWay(t, rigOptions{}, func(t *testing.T, _ *rig, c *client) {
		c.makeTopic("T", 2)
		c.mustSend("T", 1, "before", "")
		body := batch(
			batchMember{1, "a", props("UNIQ_KEY", "K1", "TAGS", "TagA")},
			batchMember{2, "", "KEYS\x01k\x02TAGS\x01TagB"}, // without the last separator (C035)
			batchMember{3, "c", ""},
		)
		f := batchFields("T", 1, props("UNIQ_KEY", "KB", "WAIT", "true"))
		a := c.ok(protocol.ReqSendBatchMessage, f, body)
		require.Equal(t, "1", value(a, "queueId"))
		require.Equal(t, "1", value(a, "queueOffset"), "of the first")
		require.Equal(t, "KB", value(a, "transactionId"))
		ids := strings.Split(value(a, "msgId"), ",")
		require.Len(t, ids, 3)

		rs := c.read("T", 1, 1)
		require.Equal(t, []string{"a", "", "c"}, bodies(rs))
		for i, r := range rs {
			require.Equal(t, message.QueueOffset(i+1), r.QueueOffset)
			require.Equal(t, int32(i+1), r.Flag)
			_, pos, err := message.ParseOffsetID(ids[i])
			require.NoError(t, err)
			require.Equal(t, pos, r.Position)
			require.NotContains(t, properties(r), "CLUSTER", "neither this nor region and trace switch are for members")
			require.NotContains(t, properties(r), "MSG_REGION")
		}
		require.Equal(t, "K1", properties(rs[0])["UNIQ_KEY"], "each keeps its own (C026)")
		require.Len(t, properties(rs[1])["UNIQ_KEY"], 32, "or gets one")
		require.Equal(t, "TagB", properties(rs[1])["TAGS"])

		found := records(t, c.pull("G", "T", 1, 0, ext{"subscription": "TagB"}).Body)
		require.Len(t, found, 1)
		require.Equal(t, message.QueueOffset(2), found[0].QueueOffset)
	})
}

// remoting.md §4.6: the header tells a batch, not the code.
func TestABatchIsKnownByItsHeader(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	c.makeTopic("T", 1)
	body := batch(batchMember{0, "a", ""}, batchMember{0, "b", ""})
	c.ok(protocol.ReqSendMessage, batchFields("T", 0, ""), body)
	require.Len(t, c.read("T", 0, 0), 2)
	c.ok(protocol.ReqSendBatchMessage, sendFields("T", 0, "", nil), body)
	rs := c.read("T", 0, 2)
	require.Len(t, rs, 1)
	require.Equal(t, body, rs[0].Body)
}

// remoting.md §6.3: a batch makes its topic like any send.
func TestABatchMakesItsTopic(t *testing.T) {
	r := start(t, rigOptions{})
	c := r.client(t)
	a := c.ok(protocol.ReqSendBatchMessage, batchFields("New", 0, props("UNIQ_KEY", "KB")), batch(batchMember{0, "a", ""}, batchMember{0, "b", ""}))
	require.Equal(t, "KB", value(a, "transactionId"))
	require.Len(t, strings.Split(value(a, "msgId"), ","), 2)
	require.Equal(t, []string{"a", "b"}, bodies(c.read("New", 0, 0)))
}

// remoting.md §4.6, C022, C030, C302: all of a batch or nothing of it.
func TestABadBatchIsRefusedWhole(t *testing.T) {
	r := start(t, rigOptions{shard: func(o *shard.Options) { o.RingBytes, o.SegmentBytes = 64<<20, 64<<20 }})
	c := r.client(t)
	c.makeTopic("T", 1)
	good := batch(batchMember{0, "good", ""})
	big := func(n int) []byte {
		p := props("a", strings.Repeat("v", n-3))
		return appendBatchMember(good, 0, "x", p, len(p))
	}
	var many []byte
	for range message.MaxBatch + 1 {
		many = appendBatchMember(many, 0, "", "", 0)
	}
	var zipped bytes.Buffer
	z := zlib.NewWriter(&zipped)
	_, err := z.Write(batch(batchMember{0, "a", ""}, batchMember{0, "b", ""}))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	long := message.RetryTopic(strings.Repeat("g", 120)) // 127 bytes
	longer := message.DLQTopic(strings.Repeat("g", 123))
	for _, test := range []struct {
		name, topic string
		body        []byte
		remark      []string
	}{
		{"empty", "T", nil, []string{"no message"}},
		{"cut in the size", "T", append(bytes.Clone(good), 0, 0), []string{"message 2"}},
		{"cut in the body", "T", append(bytes.Clone(good), good[:len(good)-4]...), []string{"message 2"}},
		{"size of zero", "T", append(bytes.Clone(good), make([]byte, 22)...), []string{"message 2", "size"}},
		{"negative size", "T", append(bytes.Clone(good), bytes.Repeat([]byte{0xff}, 22)...), []string{"message 2", "size"}},
		{"body longer than the member", "T", corrupt(good, 16, 0x7f), []string{"message 1", "body length"}},
		{"properties longer than the member", "T", corrupt(good, len(good)-1, 9), []string{"message 1", "properties length"}},
		{"properties of 32768 bytes", "T", big(32768), []string{"message 2", "32768", "32767"}},
		{"properties of 40000 bytes", "T", big(40000), []string{"message 2", "40000", "32767"}},
		{"properties of 65546 bytes", "T", big(65546), []string{"message 2", "65546", "32767"}},
		{"too many members", "T", many, []string{"32767"}},
		{"whole body compressed", "T", zipped.Bytes(), []string{"message 1"}},
		{"retry topic", long, good, []string{"retry"}},
		{"name that is too long for batches", longer, good, []string{"127"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 2 { // also when the topic is there already
				a := c.call(protocol.ReqSendBatchMessage, batchFields(test.topic, 0, ""), test.body)
				require.Equal(t, int32(13), a.Code, a.Remark)
				for _, part := range test.remark {
					require.Contains(t, a.Remark, part)
				}
			}
		})
	}
	require.Empty(t, c.read("T", 0, 0), "nothing of them is stored")
	c.mustSend("T", 0, "next", "")
}

func corrupt(b []byte, at int, to byte) []byte {
	b = bytes.Clone(b)
	b[at] = to
	return b
}

// C302: the largest number of members is stored, and the queue goes on from there.
func TestABatchOfTheLargestNumberOfMembersIsStored(t *testing.T) {
	r := start(t, rigOptions{shard: func(o *shard.Options) { o.RingBytes, o.SegmentBytes = 128<<20, 128<<20 }})
	c := r.client(t)
	c.makeTopic("T", 1)
	var many []byte
	for range message.MaxBatch {
		many = appendBatchMember(many, 0, "", props("UNIQ_KEY", "K"), len(props("UNIQ_KEY", "K")))
	}
	a := c.ok(protocol.ReqSendBatchMessage, batchFields("T", 0, ""), many)
	require.Equal(t, "0", value(a, "queueOffset"))
	require.Equal(t, message.MaxBatch, 1+strings.Count(value(a, "msgId"), ","))
	require.Equal(t, int64(message.MaxBatch), c.mustSend("T", 0, "next", ""))
	require.Len(t, c.read("T", 0, message.MaxBatch-1), 2)
}

// semantics §26: the whole of a batch is limited like a body.
func TestABatchIsLimitedAsABodyIs(t *testing.T) {
	r := start(t, rigOptions{config: func(c *broker.Config) { c.MaxMessageBytes = 1000 }})
	c := r.client(t)
	c.makeTopic("T", 1)
	member := batchMember{0, strings.Repeat("x", 478), ""} // 500 bytes
	require.Equal(t, int32(0), c.call(protocol.ReqSendBatchMessage, batchFields("T", 0, ""), batch(member, member)).Code)
	a := c.call(protocol.ReqSendBatchMessage, batchFields("T", 0, ""), batch(member, member, batchMember{}))
	require.Equal(t, int32(13), a.Code)
	require.Contains(t, a.Remark, "1000")
}

// architecture §2: what one client sends must not make what others send in the same pass fail.
func TestBigBodiesInOnePassDoNotHinderEachOther(t *testing.T) {
	const ring = 4 << 20 // frames have up to an eighth of it
	r := start(t, rigOptions{shard: func(o *shard.Options) { o.RingBytes, o.SegmentBytes = ring, ring }})
	c := r.client(t)
	c.makeTopic("T", 1)
	body := bytes.Repeat([]byte("x"), ring/8-64<<10)
	var answers []<-chan *protocol.Command
	for i := range 12 {
		if i%3 == 0 {
			answers = append(answers, c.later(protocol.ReqSendMessage, sendFields("T", 0, "", nil), body))
			continue
		}
		answers = append(answers, c.later(protocol.ReqSendMessage, sendFields("T", 0, "", nil), []byte(fmt.Sprint(i))))
	}
	for i, a := range answers {
		got := wait(t, a)
		require.Equal(t, int32(0), got.Code, got.Remark)
		require.Equal(t, fmt.Sprint(i), value(got, "queueOffset"), "in the order in which they were sent")
	}
	var many []byte
	for range 20_000 { // few bytes, but many records
		many = appendBatchMember(many, 0, "", "", 0)
	}
	small := c.later(protocol.ReqSendMessage, sendFields("T", 0, "", nil), []byte("small"))
	huge := c.later(protocol.ReqSendBatchMessage, batchFields("T", 0, ""), many)
	require.Equal(t, int32(0), wait(t, small).Code)
	a := wait(t, huge)
	require.Equal(t, int32(13), a.Code)
	require.Contains(t, a.Remark, "ring-bytes")
}
