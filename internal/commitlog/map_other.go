//go:build !linux

package commitlog

import "github.com/cockroachdb/pebble/v2/vfs"

// fileMap does not exist on this system: everything is read with ReadAt.
type fileMap struct{}

func newFileMap(vfs.File, int64) (*fileMap, error) { return nil, nil }

func (*fileMap) resident(int64, int64) bool { return false }

func (*fileMap) copyOut(dst []byte, _ int64, _ int) ([]byte, bool) { return dst, false }

func (*fileMap) close() error { return nil }

func readAhead(vfs.File, int64, int64) {}

func startWriteBack(vfs.File, int64, int64) {}

func dataExtents(_ vfs.File, size int64) []extent { return []extent{{0, size}} }
