package commitlog

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const ringMappable = true

// mapTwice maps size bytes of fresh memory twice in a row, so that any window of up to size bytes is contiguous. Nothing is resident until touched.
func mapTwice(size int) (mem []byte, err error) {
	fd, err := unix.MemfdCreate("metaq-ring", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make memory file for the ring: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }() // the maps keep the memory
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, fmt.Errorf("size memory file of the ring: %w", err)
	}
	// The first call finds an address range with room for both; the others put the memory there.
	length := uintptr(size)
	base, err := unix.MmapPtr(-1, 0, nil, 2*length, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("find addresses for the ring: %w", err)
	}
	for i := range uintptr(2) {
		at := unsafe.Add(base, i*length)
		if _, err := unix.MmapPtr(fd, 0, at, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
			return nil, errors.Join(fmt.Errorf("map the ring: %w", err), unix.MunmapPtr(base, 2*length))
		}
	}
	return unsafe.Slice((*byte)(base), 2*size), nil
}

func unmapTwice(mem []byte) error {
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem))); err != nil {
		return fmt.Errorf("unmap the ring: %w", err)
	}
	return nil
}
