package commitlog

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/metaqio/metaq/message"
)

// Walk calls fn with each good entry of the segments in a directory, from the first that begins at a position or behind it, and with the file that
// has it. It needs no lock: a running broker may go on. What is damaged is passed over, for [Verify] to tell. The frame is valid until fn returns; an
// error of fn ends the walk and is returned. fs is vfs.Default when nil.
func Walk(dir string, fs vfs.FS, from message.Position, fn func(file string, f Frame) error) error {
	v := &verifier{fs: fs}
	if err := v.list(dir); err != nil {
		return fmt.Errorf("read log %s: %w", dir, err)
	}
	for _, s := range v.segs {
		if s.end() <= from {
			continue
		}
		if err := errors.Join(v.walk(s, from, fn), s.release()); err != nil {
			return err
		}
	}
	return nil
}

// walk goes through a segment.
func (v *verifier) walk(s *segment, from message.Position, fn func(file string, f Frame) error) error {
	v.scan.reset(s)
	for off := max(0, int64(from-s.start)); s.size-off >= HeaderSize; {
		f, why, _, err := v.scan.frame(off)
		if err == nil && why != "" {
			var found bool
			if f, found, err = v.scan.nextFrame(off); err == nil && !found {
				return nil
			}
		}
		if err != nil {
			return err
		}
		off = int64(f.end() - s.start)
		if f.Kind == KindPad {
			continue
		}
		if err := fn(s.path, f); err != nil {
			return err
		}
	}
	return nil
}
