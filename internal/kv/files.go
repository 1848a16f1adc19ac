package kv

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// filesDir is the folder, in the store's, of files that views keep beside it.
const filesDir = "files"

// WriteFile makes a file beside the store: written once and then only read, for what is too large to be moved about by
// the engine. It is on the disk when WriteFile returns, and counts once a batch that names it is; a file that no key
// names is what a crash left behind. While the disk is full, it waits.
func (s *Store) WriteFile(name string, write func(io.Writer) error) error {
	if err := s.writeFile(name, write); err != nil {
		return fmt.Errorf("write file %s of the view store: %w", name, err)
	}
	return nil
}

func (s *Store) writeFile(name string, write func(io.Writer) error) (err error) {
	if err := s.state.failure(); err != nil {
		return err
	}
	f, err := s.fs.Create(s.path(name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 64<<10)
	err = write(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return s.syncFiles()
}

func (s *Store) syncFiles() error {
	d, err := s.fs.OpenDir(s.path(""))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// File is one that WriteFile made.
type File interface {
	io.ReaderAt
	io.Closer
}

// OpenFile opens a file for reading.
func (s *Store) OpenFile(name string) (File, error) {
	f, err := s.fs.Open(s.path(name))
	if err != nil {
		return nil, fmt.Errorf("open file of the view store: %w", err)
	}
	return f, nil
}

// RemoveFile removes a file that no key names any more.
func (s *Store) RemoveFile(name string) error {
	if err := s.fs.Remove(s.path(name)); err != nil {
		return fmt.Errorf("remove file of the view store: %w", err)
	}
	return nil
}

// Files are the names of all files beside the store.
func (s *Store) Files() ([]string, error) {
	names, err := s.fs.List(s.path(""))
	if err != nil {
		return nil, fmt.Errorf("list files of the view store: %w", err)
	}
	return names, nil
}

func (s *Store) path(name string) string {
	if name == "" {
		return s.fs.PathJoin(s.dir, filesDir)
	}
	return s.fs.PathJoin(s.dir, filesDir, name)
}
