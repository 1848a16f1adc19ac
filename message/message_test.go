package message

import (
	"bytes"
	"encoding/binary"
	"math"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTagHash(t *testing.T) {
	for tag, want := range map[string]int32{
		"": 0, "TagA": 2598919, "TagB": 2598920,
		"é":      0xE9,
		"标签":     0x6807*31 + 0x7B7E,
		"😀":      0xD83D*31 + 0xDE00,
		"a\xff":  'a'*31 + 0xFFFD,
		"aé":     'a'*31 + 0xE9,
		"\u007f": 0x7F,
	} {
		require.Equal(t, want, TagHash([]byte(tag)), "%q", tag)
	}
	// 31^n overflows; by the definition, in 32 bits.
	var h int32
	for range 100 {
		h = 31*h + 'z'
	}
	require.Equal(t, h, TagHash([]byte(strings.Repeat("z", 100))))
}

func TestProperty(t *testing.T) {
	for _, c := range []struct {
		props, name, want string
		ok                bool
	}{
		{"", "TAGS", "", false},
		{"TAGS\x01a\x02", "TAGS", "a", true},
		{"TAGS\x01a", "TAGS", "a", true},
		{"K\x01v\x02TAGS\x01a\x02", "TAGS", "a", true},
		{"XTAGS\x01x\x02TAGS\x01a\x02", "TAGS", "a", true},
		{"TAGSX\x01x\x02TAGS\x01a\x02", "TAGS", "a", true},
		{"TAGS\x01a\x02TAGS\x01b\x02", "TAGS", "b", true},
		{"TAGS\x01a\x01b\x02", "TAGS", "a\x01b", true},
		{"TAGS\x01\x02", "TAGS", "", false},
		{"TAGS\x02", "TAGS", "", false},
		{"\x02\x02TAGS\x01a\x02", "TAGS", "a", true},
		{"\x01a\x02", "", "", false},
		{"k\x01TAGS\x01a\x02", "TAGS", "", false},
	} {
		got, ok := Property([]byte(c.props), c.name)
		require.Equal(t, c.ok, ok, "%q", c.props)
		require.Equal(t, c.want, string(got), "%q", c.props)
	}
}

func TestAppendProperty(t *testing.T) {
	for in, want := range map[string]string{
		"":                "TAGS\x01a\x02",
		"K\x01v\x02":      "K\x01v\x02TAGS\x01a\x02",
		"K\x01v":          "K\x01v\x02TAGS\x01a\x02", // some clients leave the last separator out
		"TAGS\x01old\x02": "TAGS\x01old\x02TAGS\x01a\x02",
	} {
		got := AppendProperty([]byte(in), "TAGS", "a")
		require.Equal(t, want, string(got))
		value, ok := Property(got, "TAGS")
		require.True(t, ok)
		require.Equal(t, "a", string(value))
	}
	require.Equal(t, "K\x01v", string(AppendProperty([]byte("K\x01v"), "TAGS", "")))
	require.Equal(t, "headTAGS\x01a\x02", string(AppendPropertyAt([]byte("head"), 4, "TAGS", "a")))
}

func TestValidProperty(t *testing.T) {
	require.True(t, ValidProperty("a", "b"))
	for _, c := range [][2]string{{"", "b"}, {"a", ""}, {"a\x01", "b"}, {"a", "b\x02"}} {
		require.False(t, ValidProperty(c[0], c[1]), "%q", c)
	}
}

func TestAppendWithout(t *testing.T) {
	for in, want := range map[string]string{
		"":                                      "",
		"A\x01a\x02POP_CK\x01x\x02B\x01b":       "A\x01a\x02B\x01b",
		"POP_CK\x01x\x02POP_CK\x01y":            "",
		"POP_CK_OFFSET\x01x\x02XPOP_CK\x01y":    "POP_CK_OFFSET\x01x\x02XPOP_CK\x01y",
		"POP_CK\x01\x02odd\x02C\x01POP_CK\x01z": "odd\x02C\x01POP_CK\x01z",
	} {
		require.Equal(t, want, string(AppendWithout(nil, []byte(in), "POP_CK")), "%q", in)
	}
}

func FuzzProperties(f *testing.F) {
	f.Add([]byte("TAGS\x01a\x02KEYS\x01b"))
	f.Add([]byte("TAGS\x01\x02\x01\x02TAGS\x01\x01"))
	f.Fuzz(func(t *testing.T, props []byte) {
		var want []byte
		found := false
		for name, value := range Properties(props) {
			if string(name) == "TAGS" {
				want, found = value, true
			}
		}
		got, ok := Property(props, "TAGS")
		if ok != found || !bytes.Equal(got, want) {
			t.Fatalf("Property %q %v, Properties %q %v", got, ok, want, found)
		}
		if _, ok := Property(AppendWithout(nil, props, "TAGS"), "TAGS"); ok {
			t.Fatal("still there after AppendWithout")
		}
	})
}

func TestBatchExample(t *testing.T) {
	body := unhex(t, `00000021 00000000 00000000 00000000 00000001 61 000a 54414753 01 54616741 02
		00000018 00000000 00000000 00000000 00000002 6263 0000`)
	require.Len(t, body, 57)
	r := NewBatchReader(body)
	_, data, props, ok := r.Next()
	require.True(t, ok)
	require.Equal(t, "a", string(data))
	require.Equal(t, "TAGS\x01TagA\x02", string(props))
	_, data, props, ok = r.Next()
	require.True(t, ok)
	require.Equal(t, "bc", string(data))
	require.Empty(t, props)
	_, _, _, ok = r.Next()
	require.False(t, ok)
	require.NoError(t, r.Err())

	again := AppendBatchMember(nil, 0, []byte("a"), []byte("TAGS\x01TagA\x02"))
	require.Equal(t, body, AppendBatchMember(again, 0, []byte("bc"), nil))
}

func TestBatchErrors(t *testing.T) {
	good := AppendBatchMember(nil, 1, []byte("body"), []byte("A\x01b\x02"))
	change := func(at int, b ...byte) []byte {
		c := bytes.Clone(good)
		copy(c[at:], b)
		return c
	}
	for _, c := range []struct {
		name  string
		in    []byte
		field string
		kind  error
	}{
		{"cut in the head", good[:21], "available bytes", ErrShort},
		{"cut", good[:len(good)-1], "size", ErrShort},
		{"small", change(0, 0, 0, 0, 21), "size", ErrMalformed},
		{"negative", change(0, 0x80), "size", ErrMalformed},
		{"negative body", change(16, 0x80), "body length", ErrMalformed},
		{"long body", change(16, 0, 0, 0, 9), "body length", ErrMalformed},
		{"properties", change(24, 0, 3), "properties length", ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewBatchReader(append(bytes.Clone(good), c.in...))
			_, _, _, ok := r.Next()
			require.True(t, ok)
			for range 2 {
				_, _, _, ok = r.Next()
				require.False(t, ok)
				var format *FormatError
				require.ErrorAs(t, r.Err(), &format)
				require.Equal(t, c.field, format.Field)
				require.ErrorIs(t, r.Err(), c.kind)
			}
		})
	}
	r := NewBatchReader(bytes.Repeat(good, MaxBatch+1))
	for range MaxBatch {
		_, _, _, ok := r.Next()
		require.True(t, ok)
	}
	_, _, _, ok := r.Next()
	require.False(t, ok)
	require.EqualError(t, r.Err(), "batch members: 32768 is over the limit of 32767")
}

func FuzzBatchReader(f *testing.F) {
	f.Add(AppendBatchMember(AppendBatchMember(nil, 1, []byte("body"), []byte("A\x01b\x02")), 0, nil, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewBatchReader(b)
		var again []byte
		for {
			flag, body, props, ok := r.Next()
			if !ok {
				break
			}
			again = AppendBatchMember(again, flag, body, props)
		}
		if r.Err() == nil && len(again) != len(b) {
			t.Fatalf("%d bytes of %d walked", len(again), len(b))
		}
	})
}

func TestOffsetID(t *testing.T) {
	host := netip.MustParseAddrPort("10.0.0.1:10911")
	require.Equal(t, "0A00000100002A9F0000000000001000", string(AppendOffsetID(nil, host, 4096)))
	for _, h := range []string{"10.0.0.1:10911", "[2001:db8::1]:65535"} {
		host := netip.MustParseAddrPort(h)
		id := string(AppendOffsetID([]byte("x"), host, math.MaxInt64))[1:]
		for _, s := range []string{id, strings.ToLower(id)} {
			got, p, err := ParseOffsetID(s)
			require.NoError(t, err)
			require.Equal(t, host, got)
			require.Equal(t, Position(math.MaxInt64), p)
		}
	}
	for bad, field := range map[string]string{
		"":                                 "characters",
		"0A00000100002A9F000000000000100":  "characters",
		"0A00000100002A9F000000000000100G": "hex digits",
		"0A00000100012A9F0000000000001000": "port",
		"0A00000100002A9F8000000000001000": "position",
	} {
		_, _, err := ParseOffsetID(bad)
		var format *FormatError
		require.ErrorAs(t, err, &format)
		require.Equal(t, field, format.Field)
	}
}

func FuzzParseOffsetID(f *testing.F) {
	f.Add("0A00000100002A9F0000000000001000")
	f.Fuzz(func(t *testing.T, s string) {
		host, p, err := ParseOffsetID(s)
		if err != nil {
			return
		}
		h, q, err := ParseOffsetID(string(AppendOffsetID(nil, host, p)))
		if err != nil || h != host || p != q {
			t.Fatalf("%v %v %v, again %v %v", host, p, err, h, q)
		}
	})
}

func TestUniqueKeyLayout(t *testing.T) {
	k := newKeySource()
	now := time.Date(2026, 11, 30, 21, 5, 6, 7e6, time.Local)
	key := string(k.append(nil, now))
	require.Regexp(t, "^[0-9A-F]{32}$", key)
	b := unhex(t, key)
	require.Equal(t, uint16(os.Getpid()), binary.BigEndian.Uint16(b[4:]))
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.Local)
	require.Equal(t, uint32(now.Sub(start).Milliseconds()), binary.BigEndian.Uint32(b[10:]))
}

func TestUniqueKeysNeverRepeat(t *testing.T) {
	k := newKeySource()
	seen := map[string]bool{}
	add := func(now time.Time, n int) {
		for range n {
			key := string(k.append(nil, now))
			require.False(t, seen[key])
			seen[key] = true
		}
	}
	now := time.Date(2026, 11, 30, 23, 59, 59, 999e6, time.Local)
	add(now, 100)
	add(now.Add(-time.Hour), 1<<16+100) // the clock went back, and the counter runs over into the next month
	start := now.Add(time.Millisecond)
	add(start, 100)
	add(start.AddDate(0, 1, 0), 100) // the same time in another month
}

func TestUniqueKeysConcurrently(t *testing.T) {
	const workers, each = 8, 2000
	all := make([][]string, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range each {
				all[w] = append(all[w], NewUniqueKey())
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, some := range all {
		for _, key := range some {
			seen[key] = true
		}
	}
	require.Len(t, seen, workers*each)
}

func TestNames(t *testing.T) {
	long := func(prefix string, n int) string { return prefix + strings.Repeat("x", n-len(prefix)) }
	for _, good := range []string{"a", "%RETRY%g", "a|b-c_d%9", long("", 127), long(RetryPrefix, 255), long(DLQPrefix, 255)} {
		require.NoError(t, ValidTopic(good))
	}
	for bad, limit := range map[string]int{
		"": 0, " ": 0, "a b": 0, "a.b": 0, "é": 0, "a+b": 0, "a\x00": 0,
		long("", 128): 127, long(RetryPrefix, 256): 255, long(DLQPrefix, 256): 255,
	} {
		err := ValidTopic(bad)
		var name *NameError
		require.ErrorAs(t, err, &name)
		require.ErrorIs(t, err, ErrBadName)
		require.Equal(t, "topic", name.Kind)
		require.Equal(t, bad, name.Name)
		require.Equal(t, limit, name.Limit)
		if limit > 0 {
			require.Contains(t, err.Error(), strconv.Itoa(len(bad))+" bytes, limit "+strconv.Itoa(limit))
		}
	}
	require.NoError(t, ValidGroup(long("", 120)))
	require.ErrorIs(t, ValidGroup(long("", 121)), ErrBadName)

	require.Equal(t, "%RETRY%g", RetryTopic("g"))
	require.Equal(t, "%DLQ%g", DLQTopic("g"))
	require.Equal(t, "c_REPLY_TOPIC", ReplyTopic("c"))
	require.Equal(t, "%RETRY%g_t", PopRetryTopic("g", "t"))
	require.Equal(t, "%RETRY%g+t", PopRetryTopicV2("g", "t"))
	require.True(t, IsRetryTopic("%RETRY%g"))
	require.True(t, IsDLQTopic("%DLQ%g"))
	group, ok := GroupOfRetryTopic("%RETRY%g")
	require.True(t, ok)
	require.Equal(t, "g", group)
	_, ok = GroupOfRetryTopic("g")
	require.False(t, ok)
}

func TestSystemNames(t *testing.T) {
	for topic, forbidden := range map[string]bool{
		"TBW102": false, "BenchmarkTest": false, "RMQ_SYS_TRACE_TOPIC": false, "rmq_sys_wheel_timer": false,
		"CHECKPOINT_TOPIC": false, "SCHEDULE_TOPIC_XXXX": true, "RMQ_SYS_TRANS_HALF_TOPIC": true,
		"RMQ_SYS_TRANS_OP_HALF_TOPIC": true, "TRANS_CHECK_MAX_TIME_TOPIC": true, "SELF_TEST_TOPIC": true,
		"OFFSET_MOVED_EVENT": true, "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC": false,
	} {
		require.True(t, IsSystemTopic(topic), topic)
		require.Equal(t, forbidden, SendForbidden(topic), topic)
	}
	require.False(t, IsSystemTopic("%RETRY%g"))
	require.False(t, IsSystemTopic("orders"))
	require.True(t, IsSystemGroup("CID_RMQ_SYS_TRANS"))
	require.False(t, IsSystemGroup("CID_RMQ"))
	require.True(t, IsPredefinedGroup("TOOLS_CONSUMER"))
	require.False(t, IsPredefinedGroup("CG"))
}

func BenchmarkProperty(b *testing.B) {
	props := []byte("KEYS\x01k0\x02UNIQ_KEY\x01C0000202168B4E0E2F2A93FCA0A40000\x02WAIT\x01true\x02TAGS\x01TagA\x02")
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Property(props, PropertyTags); !ok {
			b.Fatal("not found")
		}
	}
}

func BenchmarkTagHash(b *testing.B) {
	tag := []byte("TagA")
	b.ReportAllocs()
	for b.Loop() {
		TagHash(tag)
	}
}

func BenchmarkAppendUniqueKey(b *testing.B) {
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		var dst []byte
		for pb.Next() {
			dst = AppendUniqueKey(dst[:0])
		}
	})
}
