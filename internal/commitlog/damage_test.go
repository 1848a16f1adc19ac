package commitlog

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/message"
)

// contents are all files of a log.
func contents(t testing.TB, fs vfs.FS) map[string]string {
	names, err := fs.List("log")
	require.NoError(t, err)
	all := map[string]string{}
	for _, name := range names {
		f, err := fs.Open(fs.PathJoin("log", name))
		require.NoError(t, err)
		b, err := io.ReadAll(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		all[name] = string(b)
	}
	return all
}

// flip inverts bits of the byte at a position.
func flip(t testing.TB, fs vfs.FS, pos message.Position, bits byte) {
	start := pos / (64 << 10) * (64 << 10)
	f, err := fs.OpenReadWrite(fs.PathJoin("log", segmentName(start)), vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	var b [1]byte
	_, err = f.ReadAt(b[:], int64(pos-start))
	require.NoError(t, err)
	b[0] ^= bits
	_, err = f.WriteAt(b[:], int64(pos-start))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// groups writes a log of groups, each synced before the next, and returns where its frames are; the last group begins at last.
func groups(t testing.TB, o Options, n int) (all []sealed, last message.Position) {
	l, _, _, err := tryOpen(o, 0)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	for range n {
		last = l.Tail()
		for range 1 + rng.IntN(3) {
			e := sealed{term: 1, index: uint64(len(all) + 1), size: rng.IntN(3000)}
			e.pos = add(t, l, 1, e.index, e.size)
			all = append(all, e)
		}
		require.NoError(t, l.Write())
		require.NoError(t, l.Sync())
	}
	require.NoError(t, l.Close())
	return all, last
}

func TestDamageInTheMiddleIsReportedWithItsPlaceAndNothingIsChanged(t *testing.T) {
	fs := vfs.NewMem()
	o := small(fs, false)
	all, last := groups(t, o, 60)
	rng := rand.New(rand.NewPCG(3, 4))
	for i, e := range all[:len(all)-1] {
		at := e.pos + message.Position(rng.IntN(HeaderSize+e.size))
		if i%2 == 0 { // every second time in the header
			at = e.pos + message.Position(rng.IntN(HeaderSize))
		}
		bits := byte(1 << rng.IntN(8))
		flip(t, fs, at, bits)
		before := contents(t, fs)
		l, _, _, err := tryOpen(o, 0)
		var damage *CorruptError
		if e.pos >= last { // nothing was written after it had been synced
			require.NoError(t, err)
			require.NoError(t, l.Close())
			return
		}
		require.ErrorAs(t, err, &damage, "entry %d, byte %d", e.index, at-e.pos)
		require.Equal(t, e.pos, damage.Position)
		require.Equal(t, "log/"+segmentName(e.pos/(64<<10)*(64<<10)), damage.File)
		require.Equal(t, before, contents(t, fs))
		report, err := Verify("log", fs, nil)
		require.NoError(t, err)
		require.NotEmpty(t, report.Problems)
		require.Equal(t, e.pos, report.Problems[0].Position)
		require.EqualValues(t, len(all), report.LastIndex)
		flip(t, fs, at, bits)
	}
}

func TestLostSegmentContentsAreDamage(t *testing.T) {
	fs := vfs.NewMem()
	o := small(fs, false)
	all, _ := groups(t, o, 80)
	f, err := fs.Create("log/"+segmentName(64<<10), vfs.WriteCategoryUnspecified) // an empty file where a segment was
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, _, _, err = tryOpen(o, 0)
	var damage *CorruptError
	require.ErrorAs(t, err, &damage)
	require.EqualValues(t, 64<<10, damage.Position)
	i := slices.IndexFunc(all, func(e sealed) bool { return e.pos >= 128<<10 })
	l, frames, _, err := tryOpen(o, all[i].pos)
	require.NoError(t, err, "what lies below the start of recovery is not looked at")
	require.Len(t, frames, len(all)-i)
	require.NoError(t, l.Close())
}

// forge writes an entry with a right CRC at a position.
func forge(t *testing.T, fs vfs.FS, h Header, change func(b []byte)) {
	b := make([]byte, HeaderSize+20)
	h.Size = len(b)
	h.put(b)
	change(b)
	binary.BigEndian.PutUint32(b[atCRC:], checksum(b))
	f, err := fs.OpenReadWrite(fs.PathJoin("log", segmentName(0)), vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.WriteAt(b, int64(h.Position))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestFramesOfANewerProgramAreNotCut(t *testing.T) {
	for name, change := range map[string]func(b []byte){
		"version 2": func(b []byte) { b[atVersion] = 2 }, "kind 6": func(b []byte) { b[atKind] = 6 }, "kind 0": func(b []byte) { b[atKind] = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			all, _ := groups(t, small(fs, false), 3)
			last := all[len(all)-1]
			end := last.pos + message.Position(HeaderSize+last.size)
			forge(t, fs, Header{Kind: KindMessages, Term: 1, Index: last.index + 1, Position: end}, change)
			before := contents(t, fs)
			_, _, _, err := tryOpen(small(fs, false), 0)
			var damage *CorruptError
			require.ErrorAs(t, err, &damage)
			require.Equal(t, end, damage.Position)
			require.Contains(t, damage.Why, "this program")
			require.Equal(t, before, contents(t, fs))
			report, err := Verify("log", fs, nil)
			require.NoError(t, err)
			require.Len(t, report.Problems, 1)
		})
	}
}

func TestEntriesOutOfOrderEndTheLog(t *testing.T) {
	for name, h := range map[string]Header{"gap": {Term: 1, Index: 1}, "again": {Term: 1, Index: ^uint64(0)}, "older term": {Index: 0}, "no index": {Term: 1, Index: 1 << 63}} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			all, _ := groups(t, small(fs, false), 3)
			last := all[len(all)-1]
			h.Kind, h.Position = KindCommands, last.pos+message.Position(HeaderSize+last.size)
			if h.Index += last.index + 1; name == "no index" {
				h.Index = 0
			}
			forge(t, fs, h, func([]byte) {})
			report, err := Verify("log", fs, nil)
			require.NoError(t, err)
			require.Len(t, report.Problems, 1)
			l, frames, r, err := tryOpen(small(fs, false), 0)
			require.NoError(t, err)
			require.Len(t, frames, len(all))
			require.True(t, r.Torn)
			require.NotEmpty(t, r.Why)
			require.NoError(t, l.Close())
		})
	}
}
