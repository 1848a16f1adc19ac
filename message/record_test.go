package message

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	require.NoError(t, err)
	return b
}

// The stored record of the protocol's worked example.
const exampleHex = `00000073 daa320a7 3610a686 00000003 00000000 000000000000000c 0000000000001000 00000000
	0000018bcfe56800 7f000001 0000c350 0000018bcfe56801 0a000001 00002a9f 00000000 0000000000000000
	00000005 68656c6c6f 09 546f70696354657374 000a 54414753 01 54616741 02`

func example() Record {
	return Record{
		Topic: []byte("TopicTest"), Body: []byte("hello"), Properties: []byte("TAGS\x01TagA\x02"),
		QueueID: 3, QueueOffset: 12, Position: 4096, BodyCRC: 0x3610A686,
		BornTime: 1700000000000, StoreTime: 1700000000001,
		BornHost:  netip.MustParseAddrPort("127.0.0.1:50000"),
		StoreHost: netip.MustParseAddrPort("10.0.0.1:10911"),
	}
}

var compareAddr = cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })

func TestRecordExample(t *testing.T) {
	want := unhex(t, exampleHex)
	r := example()
	require.Equal(t, want, AppendRecord(nil, &r))

	var got Record
	n, err := got.Parse(append(bytes.Clone(want), 1, 2, 3))
	require.NoError(t, err)
	require.Equal(t, len(want), n)
	require.NoError(t, got.CheckBody())
	require.Empty(t, cmp.Diff(r, got, compareAddr))

	got.Body[0]++ // aliases a clone of want
	require.ErrorIs(t, got.CheckBody(), ErrMalformed)
}

func TestRecordHolesArePatched(t *testing.T) {
	want := unhex(t, exampleHex)
	r := example()
	r.QueueOffset, r.Position, r.StoreTime = 0, 0, 0
	rec := AppendRecord([]byte("before"), &r)[len("before"):]
	require.Equal(t, 56, StoreTimeAt(rec))
	Patch(rec, 12, 4096, 1700000000001)
	require.Equal(t, want, rec)
}

func TestRecordInPlace(t *testing.T) {
	r := example()
	start := len("before")
	dst := BeginRecord([]byte("before"), &r)
	props := len(dst)
	dst = AppendPropertyAt(dst, props, PropertyTags, "TagA")
	dst, err := EndRecord(dst, start, props)
	require.NoError(t, err)
	require.Equal(t, unhex(t, exampleHex), dst[start:])

	dst = BeginRecord([]byte("before"), &r)
	props = len(dst)
	dst = append(dst, make([]byte, MaxProperties+1)...)
	dst, err = EndRecord(dst, start, props)
	var limit *LimitError
	require.ErrorAs(t, err, &limit)
	require.ErrorIs(t, err, ErrTooLarge)
	require.Equal(t, LimitError{What: "properties", Actual: 32768, Limit: 32767}, *limit)
	require.Equal(t, "before", string(dst))
}

func TestRecordAddresses(t *testing.T) {
	v6, mapped := netip.MustParseAddrPort("[2001:db8::1]:1"), netip.MustParseAddrPort("[::ffff:10.0.0.1]:2")
	for _, c := range []struct {
		name         string
		born, store  netip.AddrPort
		flag         int32
		size, timeAt int
	}{
		{"none", netip.AddrPort{}, netip.AddrPort{}, 0, 91, 56},
		{"mapped", mapped, mapped, 0, 91, 56},
		{"born", v6, mapped, FlagBornHostV6, 103, 68},
		{"store", mapped, v6, FlagStoreHostV6, 103, 56},
		{"both", v6, v6, FlagBornHostV6 | FlagStoreHostV6, 115, 68},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The bits of the input are wrong on purpose.
			r := Record{SysFlag: FlagCompressed | hostMask&^c.flag, BornHost: c.born, StoreHost: c.store, StoreTime: 7}
			b := AppendRecord(nil, &r)
			require.Len(t, b, c.size)
			require.Equal(t, c.timeAt, StoreTimeAt(b))
			var got Record
			n, err := got.Parse(b)
			require.NoError(t, err)
			require.Equal(t, c.size, n)
			require.Equal(t, FlagCompressed|c.flag, got.SysFlag)
			require.Equal(t, int64(7), got.StoreTime)
			if c.born.IsValid() {
				require.Equal(t, netip.AddrPortFrom(c.born.Addr().Unmap(), c.born.Port()), got.BornHost)
				require.Equal(t, netip.AddrPortFrom(c.store.Addr().Unmap(), c.store.Port()), got.StoreHost)
			}
			require.Equal(t, b, AppendRecord(nil, &got))
		})
	}
}

func TestRecordVersions(t *testing.T) {
	for n, magic := range map[int]string{0: "daa320a7", 127: "daa320a7", 128: "daa320ab", 255: "daa320ab"} {
		r := example()
		r.Topic = bytes.Repeat([]byte("t"), n)
		b := AppendRecord(nil, &r)
		require.Equal(t, magic, hex.EncodeToString(b[4:8]))
		var got Record
		_, err := got.Parse(b)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(r, got, compareAddr))
	}
}

func TestRecordCheck(t *testing.T) {
	r := example()
	require.NoError(t, r.Check())
	r.Topic = make([]byte, MaxLongTopic+1)
	require.EqualError(t, r.Check(), "topic: 256 is over the limit of 255")
	r.Topic, r.Properties = nil, make([]byte, MaxProperties+1)
	require.ErrorIs(t, r.Check(), ErrTooLarge)
	require.Panics(t, func() { AppendRecord(nil, &r) })
	r.Topic = make([]byte, 1<<15)
	require.Panics(t, func() { AppendRecord(nil, &r) })
}

func TestRecordParseErrors(t *testing.T) {
	good := unhex(t, exampleHex)
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
		{"empty", nil, "available bytes", ErrShort},
		{"head only", good[:7], "available bytes", ErrShort},
		{"cut", good[:len(good)-1], "total size", ErrShort},
		{"magic", change(4, 0), "magic", ErrMalformed},
		{"blank of a file's end", change(4, 0xCB, 0xD4, 0x31, 0x94), "magic", ErrMalformed},
		{"tiny", change(0, 0, 0, 0, 90), "total size", ErrMalformed},
		{"negative", change(0, 0xFF), "total size", ErrMalformed},
		{"flags make the fixed part longer", append(change(0, 0, 0, 0, 91)[:39], append([]byte{0x30}, good[40:]...)...), "total size", ErrMalformed},
		{"born port", change(52, 1), "port", ErrMalformed},
		{"store port", change(68, 0xFF), "port", ErrMalformed},
		{"negative body", change(84, 0xFF), "body length", ErrMalformed},
		{"long body", change(84, 0, 0, 0, 28), "body length", ErrMalformed},
		{"body to the end", change(84, 0, 0, 0, 27), "body length", ErrMalformed},
		{"V1 topic over 127", change(93, 128), "topic length", ErrMalformed},
		{"long topic", change(93, 22), "topic length", ErrMalformed},
		{"topic to the end", change(93, 21), "topic length", ErrMalformed},
		{"short properties", change(103, 0, 9), "properties length", ErrMalformed},
		{"negative properties", change(103, 0x80, 0), "properties length", ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r Record
			_, err := r.Parse(c.in)
			var format *FormatError
			require.ErrorAs(t, err, &format)
			require.Equal(t, c.field, format.Field, err)
			require.ErrorIs(t, err, c.kind)
			require.Contains(t, err.Error(), c.field)
		})
	}
}

func FuzzRecordParse(f *testing.F) {
	f.Add(unhex(f, exampleHex))
	r := example()
	r.Topic = bytes.Repeat([]byte("t"), 200)
	r.BornHost = netip.MustParseAddrPort("[2001:db8::1]:1")
	f.Add(AppendRecord(nil, &r))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Record
		n, err := r.Parse(b)
		if err != nil {
			if _, ok := errors.AsType[*FormatError](err); !ok {
				t.Fatalf("error of another type: %v", err)
			}
			return
		}
		if n > len(b) {
			t.Fatalf("size %d of %d bytes", n, len(b))
		}
		// What was parsed must survive a round trip.
		var again Record
		again2 := AppendRecord(nil, &r)
		if _, err := again.Parse(again2); err != nil {
			t.Fatalf("parse again: %v", err)
		}
		r.BodyCRC = again.BodyCRC // a body is not checked by Parse
		r.SysFlag = r.SysFlag&^hostMask | again.SysFlag&hostMask
		if d := cmp.Diff(r, again, compareAddr); d != "" {
			t.Fatal(d)
		}
	})
}

func BenchmarkAppendRecord(b *testing.B) {
	r := example()
	r.Body = make([]byte, 1024)
	r.Properties = []byte("KEYS\x01k0\x02UNIQ_KEY\x01C0000202168B4E0E2F2A93FCA0A40000\x02WAIT\x01true\x02TAGS\x01TagA\x02")
	dst := AppendRecord(nil, &r)
	b.ReportAllocs()
	b.SetBytes(int64(len(dst)))
	for b.Loop() {
		dst = AppendRecord(dst[:0], &r)
	}
}

func BenchmarkRecordParse(b *testing.B) {
	r := example()
	r.Body = make([]byte, 1024)
	rec := AppendRecord(nil, &r)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Parse(rec); err != nil {
			b.Fatal(err)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	r := example()
	dst := AppendRecord(nil, &r)
	props := r.Properties
	batch := AppendBatchMember(nil, 1, r.Body, props)
	key := AppendUniqueKey(nil)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		dst = AppendRecord(dst[:0], &r)
		if _, err := r.Parse(dst); err != nil {
			panic(err)
		}
		if _, ok := Property(props, PropertyTags); !ok {
			panic("no tags")
		}
		for name, value := range Properties(props) {
			_, _ = name, TagHash(value)
		}
		br := NewBatchReader(batch)
		if _, _, _, ok := br.Next(); !ok {
			panic("no member")
		}
		key = AppendUniqueKey(key[:0])
		key = AppendOffsetID(key[:0], r.StoreHost, r.Position)
	}))
}
