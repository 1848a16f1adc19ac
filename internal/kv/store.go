package kv

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Sizes in bytes. The cache is small on purpose: recent index chunks are kept by
// the queue view itself, and what is older is read in order.
const (
	cacheBytes    = 8 << 20
	memTableBytes = 16 << 20
)

// ErrFull says that a checkpoint was given up because the disk is full and there was no time to wait (see [Store.Hurry]).
var ErrFull = errors.New("no room for the checkpoint of the views")

// ErrDamaged says that the store's files do not go together: a power cut while it was made, or a bad disk. Views can be
// folded again from the log, if that still begins at its beginning.
var ErrDamaged = errors.New("view store is damaged")

// Store is an ordered key-value store whose content is a prefix of the log.
// All methods may be called from any goroutine.
type Store struct {
	db      *pebble.DB
	applied Applied
	state   *state
	fs      vfs.FS
	dir     string
}

// Open opens the store in dir, making it when there is none.
func Open(fs vfs.FS, dir string, log *slog.Logger) (_ *Store, err error) {
	state := newState()
	defer func() { // the engine's way to say that the disk refuses something
		if p := recover(); p != nil {
			fatal, ok := p.(fatalError)
			if !ok {
				panic(p)
			}
			err = fmt.Errorf("open view store %s: %s", dir, string(fatal))
		}
	}()
	cache := pebble.NewCache(cacheBytes)
	defer cache.Unref()
	o := &pebble.Options{
		FS:                 &disk{fs, state},
		Cache:              cache,
		DisableWAL:         true,
		MemTableSize:       memTableBytes,
		FormatMajorVersion: pebble.FormatNewest,
		Logger:             logger{log, state},
		EventListener:      &pebble.EventListener{BackgroundError: state.background},
	}
	// Index chunks do not compress, and trying to cost an eighth of a pipelined send.
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	db, err := pebble.Open(dir, o)
	if errors.Is(err, iofs.ErrNotExist) || pebble.IsCorruptionError(err) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open view store %s: %w", dir, err)
	}
	s := &Store{db: db, state: state, fs: o.FS, dir: dir}
	err = o.FS.MkdirAll(s.path(""), 0o755)
	if err == nil {
		err = s.loadApplied()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open view store %s: %w", dir, err), db.Close())
	}
	state.open.Store(true)
	return s, nil
}

func (s *Store) loadApplied() error {
	return s.Get(appliedKey, func(v []byte) (err error) {
		s.applied, err = parseApplied(v)
		return err
	})
}

// Applied is the place in the log that the store had reached when it was opened;
// zero for a new store.
func (s *Store) Applied() Applied { return s.applied }

// NewBatch begins a set of changes. Every batch ends in Commit.
func (s *Store) NewBatch() *Batch { return &Batch{b: s.db.NewBatch()} }

// Commit makes the changes of b visible together, along with the place in the
// log that they are true for. They are safe once Flush has returned.
func (s *Store) Commit(b *Batch, at Applied) error {
	b.Set(appliedKey, at.append(nil))
	if err := s.state.failure(); err != nil {
		b.keep(err)
	}
	if b.err != nil {
		return errors.Join(b.err, b.b.Close())
	}
	if err := b.b.Commit(pebble.NoSync); err != nil {
		return fmt.Errorf("commit to view store: %w", err)
	}
	return b.b.Close()
}

// Flush returns when everything that was committed before the call is on the disk. While the disk is full, it waits. An
// error is final: the store takes no further batch.
func (s *Store) Flush() error {
	if err := s.state.failure(); err != nil {
		return err
	}
	done, err := s.db.AsyncFlush()
	if err != nil {
		return fmt.Errorf("flush view store: %w", err)
	}
	select {
	case <-done:
		return nil
	case <-s.state.failed:
		return fmt.Errorf("flush view store: %w", s.state.err)
	}
}

// Hurry makes a Flush give up with ErrFull where it would wait for room on the disk, now and later. It is for the end,
// and called once.
func (s *Store) Hurry() { close(s.state.hurry) }

// Get calls fn with the value of key, which is valid until fn returns. When there
// is no such key, fn is not called and the error is nil.
func (s *Store) Get(key []byte, fn func(value []byte) error) error {
	v, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read view store: %w", err)
	}
	return errors.Join(fn(v), closer.Close())
}

// Scan calls fn for all keys k with from <= k < to in ascending order; key and
// value are valid until fn returns. It ends early when fn returns false.
func (s *Store) Scan(from, to []byte, fn func(key, value []byte) (more bool)) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return fmt.Errorf("scan view store: %w", err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		if !fn(it.Key(), it.Value()) {
			break
		}
	}
	if err := it.Close(); err != nil {
		return fmt.Errorf("scan view store: %w", err)
	}
	return nil
}

// Close closes the store without flushing; what was not flushed is folded again. A store that has failed is left alone:
// its engine can't be stopped any more.
func (s *Store) Close() error {
	closed := make(chan error, 1)
	if s.state.failure() == nil {
		go func() { closed <- s.db.Close() }()
	}
	select {
	case err := <-closed:
		if err != nil {
			return fmt.Errorf("close view store: %w", err)
		}
	case <-s.state.failed: // before, or by what it is still doing in the background
	}
	return nil
}

// PrefixEnd is the first key after all that begin with prefix; nil when there is none.
func PrefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// logger passes the engine's messages on; its progress reports are of no use to an operator.
type logger struct {
	log   *slog.Logger
	state *state
}

// fatalError is how the engine's last words travel to Open.
type fatalError string

func (l logger) Infof(format string, args ...any) {}

func (l logger) Errorf(format string, args ...any) {
	l.log.Error("view store", "error", fmt.Sprintf(format, args...))
}

// Fatalf is called by the engine when it cannot go on; it must not return. When the disk is the reason, it is the
// background that calls, and whoever waits for it is told. Anything else is a mistake in a program.
func (l logger) Fatalf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if err := l.state.broken.Load(); err != nil {
		l.state.fail(fmt.Errorf("%s: %w", text, *err))
		select {} // the process is about to end
	}
	panic(fatalError("view store: " + text))
}

// background is called when the engine failed at something that it will try again. Only a bad disk makes it fail.
func (s *state) background(err error) { s.fail(err) }
