package key

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"sync/atomic"

	"github.com/metaqio/metaq/internal/kv"
	"github.com/metaqio/metaq/message"
)

// A run's file (docs/formats/views.md):
//
//	header, 64 bytes
//	entries, 10 bytes each, by hash and position: hash (48 bits), position - from u32
//	table: for each value of the hash's upper bits the number u32 of its first entry, and the count
const (
	headerSize = 64
	entrySize  = 10
	runMagic   = "MQKEYRUN"
	runVersion = 1

	bucketEntries = 64      // in a bucket, about
	maxRange      = 1 << 32 // bytes of log that a run may be about
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// span is what is known of a run without its file.
type span struct {
	From, To    message.Position // of the log: From <= position < To
	Count       uint64
	First, Last int64 // store times of the log, ms
}

func (s *span) name() string { return fmt.Sprintf("%020d-%020d.keys", s.From, s.To) }

// bucketBits is how many upper bits of the hash choose a bucket of the table.
func (s *span) bucketBits() int { return bits.Len64(s.Count / bucketEntries) }

func (s *span) header() []byte {
	b := make([]byte, headerSize)
	be := binary.BigEndian
	copy(b, runMagic)
	be.PutUint32(b[8:], runVersion)
	be.PutUint32(b[12:], uint32(s.bucketBits()))
	be.PutUint64(b[16:], s.Count)
	be.PutUint64(b[24:], uint64(s.From))
	be.PutUint64(b[32:], uint64(s.To))
	be.PutUint64(b[40:], uint64(s.First))
	be.PutUint64(b[48:], uint64(s.Last))
	be.PutUint32(b[56:], crc32.Checksum(b[:56], castagnoli))
	return b
}

// write writes the file of a run whose entries come from a source.
func (s *span) write(w io.Writer, from source) error {
	if _, err := w.Write(s.header()); err != nil {
		return err
	}
	shift := fileBits - s.bucketBits()
	table := make([]byte, 0, 4<<s.bucketBits()+4)
	n := uint64(0)
	for ; ; n++ {
		hash, pos, ok, err := from.next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if n == s.Count || pos < s.From || pos >= s.To {
			return fmt.Errorf("%s: entry %d of %d is for position %d", s.name(), n, s.Count, pos)
		}
		for uint64(len(table)/4) <= hash>>shift {
			table = binary.BigEndian.AppendUint32(table, uint32(n))
		}
		var b [entrySize]byte
		putEntry(b[:], hash, pos, s.From)
		if _, err := w.Write(b[:]); err != nil {
			return err
		}
	}
	if n != s.Count {
		return fmt.Errorf("%s: %d entries instead of %d", s.name(), n, s.Count)
	}
	for len(table) < 4<<s.bucketBits()+4 {
		table = binary.BigEndian.AppendUint32(table, uint32(n))
	}
	_, err := w.Write(table)
	return err
}

// run is a file that is in use. It counts who uses it: a search may still read a run
// that has been merged into another.
type run struct {
	span
	file  kv.File
	store *kv.Store
	users atomic.Int32
	dead  atomic.Bool // the file is removed with its last user
	// damaged runs are not merged. Who writes checkpoints has it.
	damaged bool
}

func openRun(store *kv.Store, s span) (*run, error) {
	f, err := store.OpenFile(s.name())
	if err != nil {
		return nil, err
	}
	var b [headerSize]byte
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", s.name(), err), f.Close())
	}
	if string(b[:]) != string(s.header()) {
		return nil, errors.Join(fmt.Errorf("%s is damaged, or of another version: its header is not the one that was written", s.name()), f.Close())
	}
	r := &run{span: s, file: f, store: store}
	r.users.Store(1)
	return r, nil
}

func (r *run) release() error {
	if r.users.Add(-1) > 0 {
		return nil
	}
	err := r.file.Close()
	if r.dead.Load() {
		err = errors.Join(err, r.store.RemoveFile(r.name()))
	}
	return err
}

func (r *run) parse(b []byte) (hash uint64, pos message.Position) {
	return binary.BigEndian.Uint64(b) >> 16, r.From + message.Position(binary.BigEndian.Uint32(b[6:]))
}

// bucket says which entries have the upper bits of a hash.
func (r *run) bucket(hash uint64) (from, to uint64, err error) {
	var b [8]byte
	at := headerSize + int64(r.Count)*entrySize + 4*int64(hash>>(fileBits-r.bucketBits()))
	if _, err := r.file.ReadAt(b[:], at); err != nil {
		return 0, 0, fmt.Errorf("%s: table: %w", r.name(), err)
	}
	from, to = uint64(binary.BigEndian.Uint32(b[:])), uint64(binary.BigEndian.Uint32(b[4:]))
	if from > to || to > r.Count {
		return 0, 0, fmt.Errorf("%s: its table is damaged", r.name())
	}
	return from, to, nil
}

// readStep is how many entries are read at once.
const readStep = 256

// each calls f for the positions of a hash, the newest first, until it returns false.
func (r *run) each(hash uint64, f func(message.Position) bool) (more bool, err error) {
	from, to, err := r.bucket(hash)
	if err != nil {
		return false, err
	}
	var buf [readStep * entrySize]byte
	read := func(i, n uint64) ([]byte, error) {
		b := buf[:n*entrySize]
		if _, err := r.file.ReadAt(b, headerSize+int64(i)*entrySize); err != nil {
			return nil, fmt.Errorf("%s: entries: %w", r.name(), err)
		}
		return b, nil
	}
	for lo := from; to-lo > readStep; { // a key that many messages have, or its neighbours
		mid := lo + (to-lo)/2
		b, err := read(mid, 1)
		if err != nil {
			return false, err
		}
		if h, _ := r.parse(b); h > hash {
			to = mid
		} else {
			lo = mid
		}
	}
	for to > from {
		n := min(to-from, readStep)
		b, err := read(to-n, n)
		if err != nil {
			return false, err
		}
		for ; len(b) > 0; b = b[:len(b)-entrySize] {
			h, pos := r.parse(b[len(b)-entrySize:])
			if h < hash {
				return true, nil
			}
			if h == hash && !f(pos) {
				return false, nil
			}
		}
		to -= n
	}
	return true, nil
}
