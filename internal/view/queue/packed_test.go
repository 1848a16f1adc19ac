package queue

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/message"
)

func packedChunk(entries []Entry) (c *chunk, packed []byte) {
	c = new(chunk)
	for i, e := range entries {
		c.put(i, e.Position, e.Size, e.Tag)
	}
	return c, c.pack(nil, len(entries))
}

func TestPacked(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		entries := make([]Entry, 1+r.IntN(chunkEntries))
		pos := message.Position(r.Int64N(1 << 50))
		for i := range entries {
			pos += 1 + message.Position(r.Int64N(1<<r.IntN(40)))
			entries[i] = Entry{Position: pos, Size: 300}
			switch round % 3 {
			case 1:
				entries[i].Size, entries[i].Tag = r.Int32(), int64(int32(r.Uint32()))
			case 2:
				entries[i].Tag = int64(r.Uint64())
			}
		}
		c, packed := packedChunk(entries)
		for skip := range len(entries) {
			got := make([]Entry, chunkEntries)
			n, err := unpack(packed, skip, got)
			require.NoError(t, err)
			require.Equal(t, entries[skip:], got[:n])
			n, err = unpack(packed, skip, got[:1])
			require.NoError(t, err)
			require.Equal(t, entries[skip:skip+1], got[:n])
		}
		var again chunk
		n, err := again.load(packed)
		require.NoError(t, err)
		require.Equal(t, len(entries), n)
		require.Equal(t, *c, again)
	}
}

// TestPackedSize keeps an eye on what the packing is for.
func TestPackedSize(t *testing.T) {
	entries := make([]Entry, chunkEntries)
	for i := range entries { // 16 queues in turn
		entries[i] = Entry{Position: message.Position(1<<40 + i*16*290), Size: 290}
	}
	_, packed := packedChunk(entries)
	require.Less(t, len(packed), 4*chunkEntries)
}

func TestPackedExtremes(t *testing.T) {
	entries := []Entry{
		{Position: 0, Size: 1, Tag: math.MinInt64},
		{Position: 1, Size: math.MaxInt32, Tag: math.MaxInt64},
		{Position: 1 << 61, Size: 0, Tag: -1},
	}
	_, packed := packedChunk(entries)
	got := make([]Entry, 4)
	n, err := unpack(packed, 0, got)
	require.NoError(t, err)
	require.Equal(t, entries, got[:n])
	for i := range packed {
		if n, err := unpack(packed[:i], 0, got); err == nil {
			require.Equal(t, entries[:n], got[:n], "cut at %d", i)
		}
	}
}

// FuzzUnpack: no bytes make it fail other than by an error, and what it accepts is
// packed the same way again, but for numbers that were not written the short way.
func FuzzUnpack(f *testing.F) {
	_, packed := packedChunk([]Entry{{Position: 5, Size: 290}, {Position: 300, Size: 290, Tag: -7}})
	f.Add(packed, 0)
	f.Add([]byte{0xff}, 1)
	f.Fuzz(func(t *testing.T, b []byte, skip int) {
		dst := make([]Entry, chunkEntries)
		n, err := unpack(b, max(skip, 0)%chunkEntries, dst)
		if err != nil {
			require.ErrorIs(t, err, errPacked)
			return
		}
		for _, e := range dst[:n] {
			if e.Position < 0 || e.Position >= 1<<61 {
				return
			}
		}
		for i := 1; i < n; i++ {
			if dst[i].Position < dst[i-1].Position {
				return
			}
		}
		_, again := packedChunk(dst[:n])
		got := make([]Entry, chunkEntries)
		k, err := unpack(again, 0, got)
		require.NoError(t, err)
		require.Equal(t, dst[:n], got[:k])
	})
}

func BenchmarkPack(b *testing.B) {
	entries := make([]Entry, chunkEntries)
	for i := range entries {
		entries[i] = Entry{Position: message.Position(1<<40 + i*16*290), Size: 290}
	}
	c, packed := packedChunk(entries)
	b.Run("pack", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			packed = c.pack(packed[:0], chunkEntries)
		}
	})
	b.Run("unpack", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := unpack(packed, 0, entries); err != nil {
				b.Fatal(err)
			}
		}
	})
}
