package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metaqio/metaq/internal/daemon"
)

// checkMachine looks at what a server would find here.
func checkMachine(f *findings, s daemon.Settings) {
	checkKernel(f)
	checkOpenFiles(f, s.MaxConnections)
	checkDisk(f, s)
	checkClock(f, time.Now())
	checkHugePages(f)
	if limit, err := daemon.LimitMemory(); err != nil {
		f.add(stateWarn, "memory", err.Error(), "set GOMEMLIMIT yourself")
	} else if limit > 0 {
		f.ok("memory", fmt.Sprintf("the container's limit leaves %s for the heap", daemon.FormatSize(limit>>20<<20)))
	}
}

func checkKernel(f *findings) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		f.add(stateWarn, "kernel", err.Error(), "")
		return
	}
	release := string(bytes.TrimRight(u.Release[:], "\x00"))
	found := fmt.Sprintf("%s %s, %d processors", runtime.GOOS, release, runtime.NumCPU())
	if major, _, _ := strings.Cut(release, "."); runtime.GOOS == "linux" {
		if n, err := strconv.Atoi(major); err == nil && n < 4 {
			f.add(stateWarn, "kernel", found, "use Linux 4.18 or newer; older ones are not tested")
			return
		}
	}
	f.ok("kernel", found)
}

// checkOpenFiles compares the limit of open files, which Go raises to the hard one, with the connections to allow.
func checkOpenFiles(f *findings, connections int) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		f.add(stateWarn, "open files", err.Error(), "")
		return
	}
	const besides = 512 // segments, the views' store, listeners
	found := fmt.Sprintf("up to %d", r.Max)
	if connections > 0 && r.Max < uint64(connections)+besides {
		f.add(stateWarn, "open files", found, fmt.Sprintf("raise the limit (ulimit -Hn, LimitNOFILE=) above %d, or lower max-connections (%d)",
			connections+besides, connections))
		return
	}
	f.ok("open files", found)
}

// checkDisk looks at the disk of the data folder, or of its nearest parent that exists.
func checkDisk(f *findings, s daemon.Settings) {
	dir, err := existingParent(s.Data)
	if err != nil {
		f.add(stateWarn, "disk", err.Error(), "")
		return
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		f.add(stateWarn, "disk", fmt.Sprintf("%s: %v", dir, err), "")
		return
	}
	blocks, free := int64(st.Blocks), int64(st.Bavail)
	if blocks == 0 {
		f.add(stateWarn, "disk", dir+": the size of its disk is unknown", "")
		return
	}
	use := int(100 - 100*free/blocks)
	found := fmt.Sprintf("%s: %s free, %d %% in use", dir, gib(free*int64(st.Bsize)), use)
	switch {
	case s.DiskStopUse > 0 && use > s.DiskStopUse:
		f.add(stateFail, "disk", found, fmt.Sprintf("free some space: sends are refused above %d %% (disk-stop-use)", s.DiskStopUse))
	case s.DiskMaxUse > 0 && use > s.DiskMaxUse:
		f.add(stateWarn, "disk", found, fmt.Sprintf("free some space: old segments are dropped early above %d %% (disk-max-use)", s.DiskMaxUse))
	case free*int64(st.Bsize) < 2*s.SegmentBytes:
		f.add(stateWarn, "disk", found, "there is no room for two segments (segment-bytes)")
	default:
		f.ok("disk", found)
	}
}

func gib(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }

func existingParent(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		_, err := os.Stat(dir)
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return "", err
		}
		dir = filepath.Dir(dir)
	}
}

// oldest is before the first release: a clock that says less is wrong.
var oldest = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// checkClock looks at the wall clock, which stamps messages and decides what is expired.
func checkClock(f *findings, now time.Time) {
	found := now.Format(time.RFC3339)
	if now.Before(oldest) {
		f.add(stateFail, "clock", found, "the clock is wrong: set it, or messages get wrong times")
		return
	}
	if synced, known := clockSynchronized(); known && !synced {
		f.add(stateWarn, "clock", found+", not kept in step by the kernel", "run chronyd or systemd-timesyncd, unless the host does it")
		return
	}
	f.ok("clock", found)
}

// checkHugePages warns of transparent huge pages for everything: they cost latency in bursts.
func checkHugePages(f *findings) {
	b, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil {
		return // not this kernel
	}
	mode := strings.TrimSpace(string(b))
	if strings.Contains(mode, "[always]") {
		f.add(stateWarn, "huge pages", mode, "madvise gives steadier latency: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
		return
	}
	f.ok("huge pages", mode)
}
