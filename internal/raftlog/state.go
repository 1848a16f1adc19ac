package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	iofs "io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// state file: two slots, written in turn; the valid one with the higher sequence counts
// 0     ┌───────────────────┬──────────────┬──────────┬──────────┬────────────────┐
//
//	│ magic "MQRS" u32  │ sequence u64 │ term u64 │ vote u64 │ CRC-32C u32    │  32 bytes, big-endian,
//
// 4096  ├───────────────────┼──────────────┼──────────┼──────────┼────────────────┤  CRC over the 28 before it
//
//	│ the other slot    │              │          │          │                │
//	└───────────────────┴──────────────┴──────────┴──────────┴────────────────┘
const (
	stateMagic  = 0x4d515253
	slotSize    = 32
	slotSpacing = 4096
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrState marks a state file in which no slot is valid: going on could vote twice in a term.
var ErrState = errors.New("no valid term and vote")

// state is the durable term and vote of a node.
type state struct {
	file     vfs.File
	path     string
	sequence uint64
	term     uint64
	vote     uint64
}

// openState reads the state file, or makes one with term 0.
func openState(fs vfs.FS, path string) (*state, error) {
	_, err := fs.Stat(path)
	switch {
	case err == nil:
		return loadState(fs, path)
	case !errors.Is(err, iofs.ErrNotExist):
		return nil, fmt.Errorf("look for raft state %s: %w", path, err)
	}
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("create raft state %s: %w", path, err)
	}
	s := &state{file: f, path: path}
	// Both slots are written, so that a file without any valid slot is always damage.
	for range 2 {
		if err := s.save(0, 0); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	dir, err := fs.OpenDir(fs.PathDir(path))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open folder of %s: %w", path, err), f.Close())
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("sync folder of %s: %w", path, err), f.Close())
	}
	return s, nil
}

func loadState(fs vfs.FS, path string) (*state, error) {
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("open raft state %s: %w", path, err)
	}
	s := &state{file: f, path: path}
	valid, empty := false, true
	for i := range int64(2) {
		var b [slotSize]byte
		if n, err := f.ReadAt(b[:], i*slotSpacing); err != nil && !errors.Is(err, io.EOF) {
			return nil, errors.Join(fmt.Errorf("read raft state %s: %w", path, err), f.Close())
		} else if n > 0 {
			empty = empty && b == [slotSize]byte{}
		}
		if binary.BigEndian.Uint32(b[:]) != stateMagic || binary.BigEndian.Uint32(b[28:]) != crc32.Checksum(b[:28], castagnoli) {
			continue
		}
		if seq := binary.BigEndian.Uint64(b[4:]); !valid || seq > s.sequence {
			valid, s.sequence = true, seq
			s.term, s.vote = binary.BigEndian.Uint64(b[12:]), binary.BigEndian.Uint64(b[20:])
		}
	}
	if !valid && !empty {
		return nil, errors.Join(fmt.Errorf("read raft state %s: %w", path, ErrState), f.Close())
	}
	return s, nil // an empty file is one whose creation was interrupted: nothing was voted yet
}

// save makes term and vote durable.
func (s *state) save(term, vote uint64) error {
	var b [slotSize]byte
	seq := s.sequence + 1
	binary.BigEndian.PutUint32(b[:], stateMagic)
	binary.BigEndian.PutUint64(b[4:], seq)
	binary.BigEndian.PutUint64(b[12:], term)
	binary.BigEndian.PutUint64(b[20:], vote)
	binary.BigEndian.PutUint32(b[28:], crc32.Checksum(b[:28], castagnoli))
	if _, err := s.file.WriteAt(b[:], int64(seq%2)*slotSpacing); err != nil {
		return fmt.Errorf("write raft state %s: %w", s.path, err)
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sync raft state %s: %w", s.path, err)
	}
	s.sequence, s.term, s.vote = seq, term, vote
	return nil
}

func (s *state) close() error { return s.file.Close() }
