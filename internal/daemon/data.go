package daemon

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// FormatVersion is the version of the data folder that this program writes. It grows when an older program could not read the folder.
const FormatVersion = 1

// formatSince says which release of the program knows a format first, and so what to tell an older one's user.
const formatSince = "0.1.0"

// Names of the files beside the shards' folders.
const (
	lockName = "LOCK"
	nodeName = "node"
)

// A Node is the content of the data folder's node file.
type Node struct {
	ID     string `json:"id"`     // random, 32 hex digits; made once, kept for the life of the folder
	Format int    `json:"format"` // version of the folder
	Needs  string `json:"needs"`  // the oldest release that can read this format
}

// A DataDir is a data folder held by this process.
type DataDir struct {
	Path string // absolute
	Node Node
	lock *os.File
}

// LockedError says that another process uses a data folder.
type LockedError struct {
	Dir string
	PID int // 0 when unknown
}

func (e *LockedError) Error() string {
	holder := "another process"
	if e.PID > 0 {
		holder = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("data folder %s is in use by %s: stop it, or give this server a folder of its own with --data", e.Dir, holder)
}

// FormatError says that a data folder was written by a newer program.
type FormatError struct {
	Dir           string
	Format, Known int
	Needs         string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("data folder %s has format %d, this program knows formats up to %d: it needs metaq %s or newer; nothing was changed",
		e.Dir, e.Format, e.Known, e.Needs)
}

// OpenData makes the folder if it is not there, locks it for this process, and reads or writes its node file. Close releases it.
func OpenData(dir string) (_ *DataDir, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find data folder: %w", err)
	}
	// Looked at before anything is written, so that a newer folder stays as it is.
	if _, err := ReadNode(abs); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.MkdirAll(abs, 0o750); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	lock, err := takeLock(abs)
	if err != nil {
		return nil, err
	}
	d := &DataDir{Path: abs, lock: lock}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if d.Node, err = ReadNode(abs); errors.Is(err, fs.ErrNotExist) {
		d.Node, err = newNode(abs)
	}
	return d, err
}

// Close releases the folder for other processes. It may be called twice.
func (d *DataDir) Close() error {
	if d.lock == nil {
		return nil
	}
	f := d.lock
	d.lock = nil
	// The file stays: removing it would let two processes hold locks on two files of the same name. What it says is void without the lock.
	return errors.Join(f.Truncate(0), f.Close())
}

func takeLock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		pid := lockHolder(f)
		return nil, errors.Join(&LockedError{Dir: dir, PID: pid}, f.Close())
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock data folder: %w", err), f.Close())
	}
	return f, nil
}

// lockHolder reads who wrote the lock file; the holder may be just about to, so 0 is possible.
func lockHolder(f *os.File) int {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0) // the end of the file is no problem, and without a number the message does without
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil {
		return 0
	}
	return pid
}

// HolderOf returns the process that holds a data folder; held is false when nobody does.
func HolderOf(dir string) (pid int, held bool, err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("look at the lock: %w", err)
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return lockHolder(f), true, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("look at the lock: %w", err)
	}
	return 0, false, nil
}

// ReadNode reads and checks the node file of a data folder. It is fs.ErrNotExist in an empty folder, *FormatError in one that is too new.
func ReadNode(dir string) (Node, error) {
	path := filepath.Join(dir, nodeName)
	b, err := os.ReadFile(path)
	if err != nil {
		return Node{}, fmt.Errorf("read node file: %w", err)
	}
	var n Node
	if err := json.Unmarshal(bytes.TrimSpace(b), &n); err != nil || n.ID == "" || n.Format < 1 {
		return Node{}, fmt.Errorf("node file %s is damaged; it should say {\"id\":…,\"format\":…}", path)
	}
	if n.Format > FormatVersion {
		return n, &FormatError{Dir: dir, Format: n.Format, Known: FormatVersion, Needs: n.Needs}
	}
	return n, nil
}

// newNode gives a new folder its identity. A folder that holds other folders, but no identity, belongs to something else.
func newNode(dir string) (Node, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Node{}, fmt.Errorf("read data folder: %w", err)
	}
	for _, e := range entries {
		if name := e.Name(); e.IsDir() && name != "lost+found" && !strings.HasPrefix(name, ".") {
			return Node{}, fmt.Errorf("data folder %s has no node file but holds a folder %q: it is not a data folder of metaq; "+
				"give an empty or a new one with --data", dir, name)
		}
	}
	id := make([]byte, 16)
	rand.Read(id) // never fails
	n := Node{ID: hex.EncodeToString(id), Format: FormatVersion, Needs: formatSince}
	b, err := json.Marshal(n)
	if err != nil {
		return Node{}, fmt.Errorf("write node file: %w", err)
	}
	return n, writeFileAtomic(filepath.Join(dir, nodeName), append(b, '\n'))
}

// writeFileAtomic makes a file appear with all its content, also after a power cut.
func writeFileAtomic(path string, content []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(tmp.Name())))
		}
	}()
	_, err = tmp.Write(content)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
