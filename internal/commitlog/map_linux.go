package commitlog

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// fileMap is a read-only map of a whole segment. It is only read where the page cache has the pages; a page that is gone a moment later is read
// by a page fault, and if even that fails (an I/O error, a file cut by somebody else) the fault becomes an error (copyOut), not the end of the process.
type fileMap struct {
	mem []byte
}

// newFileMap maps a file; nil without an error when it has no descriptor (an in-memory disk).
func newFileMap(f vfs.File, size int64) (*fileMap, error) {
	fd := f.Fd()
	if fd == vfs.InvalidFd {
		return nil, nil
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("stat segment: %w", err)
	}
	if info.Size() < size { // reading a map behind the file's end would fault
		return nil, errors.ErrUnsupported
	}
	mem, err := unix.MmapPtr(int(fd), 0, nil, uintptr(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map segment: %w", err)
	}
	return &fileMap{mem: unsafe.Slice((*byte)(mem), size)}, nil
}

// resident says whether the page cache has all pages of a range.
func (m *fileMap) resident(off, n int64) bool {
	page := int64(os.Getpagesize())
	first := off &^ (page - 1)
	pages := (off + n - first + page - 1) / page
	var buf [64]byte // a byte a page
	for pages > 0 {
		k := min(pages, int64(len(buf)))
		length := min(k*page, int64(len(m.mem))-first)
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m.mem[first])), uintptr(length), uintptr(unsafe.Pointer(&buf)))
		if errno != 0 {
			return false
		}
		for _, b := range buf[:k] {
			if b&1 == 0 {
				return false
			}
		}
		first += k * page
		pages -= k
	}
	return true
}

// copyOut appends a range to dst; false when the memory could not be read.
func (m *fileMap) copyOut(dst []byte, off int64, n int) (out []byte, ok bool) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		if recover() != nil {
			out, ok = dst, false
		}
	}()
	return append(dst, m.mem[off:off+int64(n)]...), true
}

func (m *fileMap) close() error {
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(m.mem)), uintptr(len(m.mem))); err != nil {
		return fmt.Errorf("unmap segment: %w", err)
	}
	return nil
}

// readAhead asks the kernel to fetch a range into the page cache, and does not wait for it.
func readAhead(f vfs.File, off, n int64) {
	if fd := f.Fd(); fd != vfs.InvalidFd {
		_ = unix.Fadvise(int(fd), off, n, unix.FADV_WILLNEED) // advice: a kernel that does not take it reads later
	}
}

// startWriteBack asks the kernel to begin writing a range to the disk.
func startWriteBack(f vfs.File, off, n int64) {
	if fd := f.Fd(); fd != vfs.InvalidFd {
		_ = unix.SyncFileRange(int(fd), off, n, unix.SYNC_FILE_RANGE_WRITE) // advice: the sync that follows does the rest
	}
}

// dataExtents says where a file may hold something other than zeros; all of it, where the file system cannot tell.
func dataExtents(f vfs.File, size int64) (out []extent) {
	all := []extent{{0, size}}
	fd := f.Fd()
	if fd == vfs.InvalidFd {
		return all
	}
	for off := int64(0); off < size; {
		from, err := unix.Seek(int(fd), off, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break
		}
		to, err2 := unix.Seek(int(fd), from, unix.SEEK_HOLE)
		if err != nil || err2 != nil || to <= off {
			return all
		}
		out = append(out, extent{from, to})
		off = to
	}
	return out
}
