package commitlog

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/message"
)

var rewrite = flag.Bool("rewrite", false, "write what the stories in testdata print into them; read the difference before you commit it")

// TestStories plays testdata/*.txt: commands, a line of dashes, and what they print. The commands are the methods of story.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		eachRing(t, func(t *testing.T, plain bool) {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				s := &story{t: t, fs: vfs.NewCrashableMem(), plain: plain}
				defer s.stop()
				got := s.play(string(text))
				if *rewrite {
					require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
					return
				}
				require.Equal(t, string(text), got)
			})
		})
	}
}

type story struct {
	t     *testing.T
	fs    *vfs.MemFS
	plain bool
	log   *Log
	out   strings.Builder
}

// play runs each block of a story and returns the story with what was printed. A block is commands, "----", expectation; blank lines part blocks.
func (s *story) play(text string) string {
	var all strings.Builder
	for i, block := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		if i > 0 {
			all.WriteString("\n")
		}
		commands, _, found := strings.Cut(block+"\n", "----\n")
		all.WriteString(commands)
		if !found { // a comment
			continue
		}
		s.out.Reset()
		for line := range strings.SplitSeq(strings.TrimSpace(commands), "\n") {
			if !strings.HasPrefix(line, "#") {
				s.command(strings.Fields(line))
			}
		}
		all.WriteString("----\n" + s.out.String())
	}
	return all.String()
}

func (s *story) stop() {
	if s.log != nil {
		require.NoError(s.t, s.log.Close())
		s.log = nil
	}
}

// args are "name=number" words.
type args map[string]int64

func (a args) or(name string, otherwise int64) int64 {
	if v, ok := a[name]; ok {
		return v
	}
	return otherwise
}

func (s *story) command(words []string) {
	a := args{}
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		n, err := strconv.ParseInt(value, 0, 64)
		require.NoError(s.t, err, "argument %s", w)
		a[name] = n
	}
	commands := map[string]func(args) error{
		"open": s.open, "add": s.add, "write": s.write, "sync": func(args) error { return s.log.Sync() },
		"rollback": func(a args) error { return s.log.Rollback(message.Position(a["to"])) },
		"truncate": func(a args) error { return s.log.Truncate(message.Position(a["to"])) },
		"drop":     s.drop, "kill": func(args) error { s.stop(); return nil }, "crash": s.crash, "damage": s.damage, "copy": s.copy, "remove": s.remove,
		"frames": s.frames, "positions": s.positions, "segments": s.segments, "verify": s.verify,
	}
	run, ok := commands[words[0]]
	require.True(s.t, ok, "command %q", words[0])
	if s.log == nil && !slices.Contains([]string{"open", "kill", "crash", "damage", "copy", "remove", "verify"}, words[0]) {
		fmt.Fprintf(&s.out, "%s: no log is open\n", words[0])
		return
	}
	if err := run(a); err != nil {
		fmt.Fprintf(&s.out, "%s: %v\n", words[0], err)
	}
}

// open opens and recovers the log.
func (s *story) open(a args) error {
	o := small(s.fs, s.plain)
	o.RingBytes = 1 << 20
	l, frames, r, err := tryOpen(o, message.Position(a["from"]))
	if err != nil {
		return err
	}
	s.log = l
	fmt.Fprintf(&s.out, "tail %d, %d frames in %d segments", r.Tail, r.Frames, r.Segments)
	if r.Frames > 0 {
		fmt.Fprintf(&s.out, ", entries %d to %d of term %d", frames[0].Index, r.LastIndex, r.LastTerm)
	}
	if r.Torn {
		fmt.Fprintf(&s.out, "; cut %d bytes with %d frames: %s", r.CutBytes, r.CutFrames, r.Why)
	}
	fmt.Fprintln(&s.out)
	return nil
}

// write writes, and waits for the next segment if that makes it due, so that the story is always the same.
func (s *story) write(args) error {
	err := s.log.Write()
	settle(s.log)
	return err
}

// add seals n entries from index on.
func (s *story) add(a args) error {
	first := uint64(a["index"])
	for i := first; i < first+uint64(a.or("n", 1)); i++ {
		buf, pos, err := s.log.Reserve(int(a["size"]))
		if err != nil {
			return err
		}
		copy(buf[HeaderSize:], payload(i, len(buf)-HeaderSize))
		s.log.Seal(buf, Header{Kind: KindMessages, Term: uint64(a.or("term", 1)), Index: i, Time: a.or("time", int64(i)), Flags: uint32(a["async"])})
		fmt.Fprintf(&s.out, "entry %d at %d\n", i, pos)
	}
	return nil
}

func (s *story) drop(a args) error {
	n, err := s.log.Drop(message.Position(a["before"]))
	fmt.Fprintf(&s.out, "dropped %d, start %d\n", n, s.log.Start())
	return err
}

// crash is a power cut: of what was not synced, keep percent of the blocks survive.
func (s *story) crash(a args) error {
	fs := s.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: int(a["keep"]), RNG: rand.New(rand.NewPCG(uint64(a["seed"]), 0))})
	s.stop()
	s.fs = fs
	return nil
}

func (s *story) edit(pos int64, change func(b []byte) []byte) error {
	const size = 64 << 10
	path := s.fs.PathJoin("log", segmentName(message.Position(pos/size*size)))
	f, err := s.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, size)
	n, _ := f.ReadAt(b, 0)
	b = change(b[:max(n, int(pos%size))])
	if _, err := f.WriteAt(b, 0); err != nil {
		return err
	}
	return f.Sync()
}

// damage changes len bytes at a position: exclusive or with xor, or zeros.
func (s *story) damage(a args) error {
	return s.edit(a["at"], func(b []byte) []byte {
		at := a["at"] % (64 << 10)
		for i := at; i < at+a.or("len", 1); i++ {
			if x, ok := a["xor"]; ok {
				b[i] ^= byte(x)
			} else {
				b[i] = 0
			}
		}
		return b
	})
}

// copy copies len bytes within a segment.
func (s *story) copy(a args) error {
	return s.edit(a["at"], func(b []byte) []byte {
		from, to, n := a["at"]%(64<<10), a["to"]%(64<<10), a["len"]
		part := bytes.Clone(b[from : from+n])
		b = append(b, make([]byte, max(0, int(to+n)-len(b)))...)
		copy(b[to:], part)
		return b
	})
}

// remove removes the segment that begins at a position.
func (s *story) remove(a args) error {
	return s.fs.Remove(s.fs.PathJoin("log", segmentName(message.Position(a["at"]))))
}

func (s *story) frames(a args) error {
	return s.log.Iterate(message.Position(a.or("from", int64(s.log.Start()))), func(f Frame) error {
		require.Equal(s.t, payload(f.Index, len(f.Payload)), f.Payload)
		fmt.Fprintf(&s.out, "%d: entry %d of term %d, %d bytes, group %d\n", f.Position, f.Index, f.Term, f.Size, f.Group)
		return nil
	})
}

func (s *story) positions(args) error {
	fmt.Fprintf(&s.out, "start %d, synced %d, written %d, tail %d\n", s.log.Start(), s.log.Synced(), s.log.Written(), s.log.Tail())
	return nil
}

func (s *story) segments(args) error {
	for _, i := range s.log.Segments() {
		fmt.Fprintf(&s.out, "%d: used %d, first entry %d, times %d to %d\n", i.Start, i.Used, i.FirstIndex, i.FirstTime, i.LastTime)
	}
	names, err := s.fs.List("log")
	slices.Sort(names)
	fmt.Fprintln(&s.out, strings.Join(names, " "))
	return err
}

func (s *story) verify(args) error {
	r, err := Verify("log", s.fs, nil)
	fmt.Fprintf(&s.out, "%d segments, entries %d to %d, positions %d to %d, %d behind, frames %v\n",
		r.Segments, r.FirstIndex, r.LastIndex, r.Start, r.Tail, r.Behind, r.Frames)
	for _, p := range r.Problems {
		fmt.Fprintln(&s.out, p)
	}
	return err
}
