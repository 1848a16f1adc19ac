package commitlog

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	pageBytes       = 4096
	minSegmentBytes = 64 << 10
	maxSegmentBytes = 1<<32 - pageBytes // a pad's length has 32 bits
	minRingBytes    = 64 << 10
)

// Options describe a log. Only Dir is required.
type Options struct {
	// FS is the disk; vfs.Default when nil.
	FS vfs.FS
	// Dir is the log's own directory. It is made when it is missing.
	Dir string
	// SegmentBytes is the size of a segment file: 1 GiB when 0, at least 64 KiB, less than 4 GiB, a multiple of 4096. It is part of the format (where pads fall
	// depends on it): it is the same on all replicas and never changes for a log.
	SegmentBytes int64
	// RingBytes is how much of the newest log is kept in memory: 64 MiB when 0, a power of two, at least 64 KiB. A frame may take a quarter of it,
	// therefore all replicas should have the same size. Memory is touched, and so becomes resident, as the log grows.
	RingBytes int
	// Prewrite fills the blocks ahead of the tail with zeros in the background, so that a sync finds blocks that were written before, which makes
	// it about twice as fast. For durability sync; a waste for async.
	Prewrite bool
	// PlainRing takes the portable ring (two copies at its seam) where a ring mapped twice would be available. The bytes are the same.
	PlainRing bool
	// Log receives one line for each event: a segment made, a tail cut. Discarded when nil.
	Log *slog.Logger
}

func (o *Options) ensureDefaults() {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 1 << 30
	}
	if o.RingBytes == 0 {
		o.RingBytes = 64 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// validate reports all problems at once.
func (o *Options) validate() error {
	var errs []error
	if o.Dir == "" {
		errs = append(errs, errors.New("the log's directory is not set"))
	}
	if o.SegmentBytes < minSegmentBytes || o.SegmentBytes > maxSegmentBytes || o.SegmentBytes%pageBytes != 0 {
		errs = append(errs, fmt.Errorf("segment size %d: from %d to %d and a multiple of %d",
			o.SegmentBytes, int64(minSegmentBytes), int64(maxSegmentBytes), pageBytes))
	}
	if o.RingBytes < minRingBytes || o.RingBytes&(o.RingBytes-1) != 0 {
		errs = append(errs, fmt.Errorf("ring size %d: at least %d and a power of two", o.RingBytes, minRingBytes))
	}
	return errors.Join(errs...)
}
