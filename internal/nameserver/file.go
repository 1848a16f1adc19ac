package nameserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fileName is the file below Options.Dir; docs/formats/nameserver.md describes it.
const fileName = "nameserver.json"

const (
	fileFormat  = "metaq-nameserver"
	fileVersion = 1
)

// ErrFile marks a file that is not ours, is damaged, or is of a newer format.
var ErrFile = errors.New("not a valid name server file")

// savedState is the content of the file.
type savedState struct {
	Format   string            `json:"format"`
	Version  int               `json:"version"`
	KV       kvConfig          `json:"kv"`
	Settings map[string]string `json:"settings"`
}

// load reads the file, if there is one, into the server.
func (s *Server) load() error {
	s.changed = map[string]string{}
	if s.fs == nil {
		return nil
	}
	if err := s.fs.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("make folder of the name server: %w", err)
	}
	if err := syncDir(s.fs, s.fs.PathDir(s.dir)); err != nil {
		return fmt.Errorf("sync folder above the name server's: %w", err)
	}
	path := s.fs.PathJoin(s.dir, fileName)
	b, err := readFile(s.fs, path)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	var saved savedState
	if err := json.Unmarshal(b, &saved); err != nil {
		return fmt.Errorf("read %s: %w: %w", path, ErrFile, err)
	}
	if saved.Format != fileFormat || saved.Version != fileVersion {
		return fmt.Errorf("read %s: %w: it has format %q version %d, this program reads %q version %d",
			path, ErrFile, saved.Format, saved.Version, fileFormat, fileVersion)
	}
	settings, err := s.settings.with(saved.Settings)
	if err != nil {
		return fmt.Errorf("read %s: %w: %w", path, ErrFile, err)
	}
	s.kv, s.settings = saved.KV, settings
	for name, value := range saved.Settings {
		s.changed[name] = value
		s.log.Info("name server setting from its file", "name", name, "value", value, "file", path)
	}
	return nil
}

func readFile(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}

// save writes the file anew: beside the old one, synced, and then in its place. The caller holds fileMu.
func (s *Server) save(kv kvConfig, settings map[string]string) error {
	if s.fs == nil {
		return nil
	}
	b, err := json.MarshalIndent(savedState{Format: fileFormat, Version: fileVersion, KV: kv, Settings: settings}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode name server file: %w", err)
	}
	path := s.fs.PathJoin(s.dir, fileName)
	if err := replaceFile(s.fs, s.dir, path, append(b, '\n')); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func replaceFile(fs vfs.FS, dir, path string, b []byte) error {
	beside := path + ".new"
	f, err := fs.Create(beside, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, fs.Remove(beside))
	}
	if err := fs.Rename(beside, path); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

// syncDir makes the names in a folder durable.
func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
