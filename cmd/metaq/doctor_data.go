package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metaqio/metaq/internal/daemon"
)

// checkConfiguration loads the configuration as a server would, and goes on with the defaults when it is wrong.
func checkConfiguration(f *findings, flags *settingsFlags) daemon.Settings {
	s, report, err := flags.load()
	for _, note := range report.Notes {
		f.ok("configuration", note)
	}
	if problems, ok := errors.AsType[*daemon.ProblemsError](err); ok {
		for _, p := range problems.Problems {
			f.add(stateFail, "settings", p, "")
		}
		return daemon.Defaults()
	}
	if err != nil {
		f.add(stateFail, "settings", err.Error(), "")
		return daemon.Defaults()
	}
	f.ok("settings", fmt.Sprintf("fine; %d of %d are set", len(report.Origins), len(daemon.Table)))
	if s.Durability == daemon.DurabilityAsync {
		f.ok("durability", fmt.Sprintf("async: a power cut may cost the acknowledged messages of the last %s", s.SyncInterval))
	}
	return s
}

// checkData looks at a data folder from outside; a running server is not disturbed.
func checkData(f *findings, dir string) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.ok("folder", dir+" does not exist yet; the first start makes it")
		return
	case err != nil:
		f.add(stateFail, "folder", err.Error(), "give a folder that this user can read, with --data")
		return
	case !info.IsDir():
		f.add(stateFail, "folder", dir+" is not a folder", "give a folder with --data")
		return
	}
	checkWritable(f, dir)
	checkNode(f, dir)
	pid, held, err := daemon.HolderOf(dir)
	switch {
	case err != nil:
		f.add(stateWarn, "lock", err.Error(), "")
	case held:
		f.ok("lock", fmt.Sprintf("held by process %d: a server is running", pid))
	default:
		f.ok("lock", "free: no server is running")
	}
	checkShards(f, dir, time.Now())
}

func checkWritable(f *findings, dir string) {
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		f.add(stateFail, "folder", fmt.Sprintf("%s cannot be written: %v", dir, err), "correct its owner or mode")
		return
	}
	f.ok("folder", dir+" can be written")
}

func checkNode(f *findings, dir string) {
	n, err := daemon.ReadNode(dir)
	_, newer := errors.AsType[*daemon.FormatError](err)
	switch {
	case newer:
		f.add(stateFail, "format", err.Error(), "install metaq "+n.Needs+" or newer")
	case errors.Is(err, fs.ErrNotExist):
		f.ok("format", "no node file: no server has used this folder")
	case err != nil:
		f.add(stateFail, "format", err.Error(), "restore the file from a backup; its id names this node in a cluster")
	default:
		f.ok("format", fmt.Sprintf("%d, node %s", n.Format, n.ID))
	}
}

// segmentName is the name of a log file: the position at which it starts.
var segmentName = regexp.MustCompile(`^(\d{20})(\.\w+)?$`)

// checkShards looks at the segments of each shard: present, in order, and not from the future.
func checkShards(f *findings, dir string, now time.Time) {
	logs, err := filepath.Glob(filepath.Join(dir, "*", "log"))
	if err != nil {
		f.add(stateWarn, "log", err.Error(), "")
		return
	}
	for _, log := range logs {
		checkSegments(f, log, now)
	}
}

func checkSegments(f *findings, log string, now time.Time) {
	check := "log " + filepath.Base(filepath.Dir(log))
	entries, err := os.ReadDir(log)
	if err != nil {
		f.add(stateFail, check, err.Error(), "correct its owner or mode")
		return
	}
	var count int
	var bytes, next int64
	var newest time.Time
	for _, e := range entries {
		m := segmentName.FindStringSubmatch(e.Name())
		info, err := e.Info()
		if m == nil || err != nil {
			continue
		}
		start, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			continue
		}
		if count > 0 && start > next {
			f.add(stateFail, check, fmt.Sprintf("%s: bytes %d to %d are missing before %s", log, next, start, e.Name()),
				"restore the file; messages in it cannot be read")
		}
		count, bytes, next = count+1, bytes+info.Size(), start+info.Size()
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	found := fmt.Sprintf("%d segments, %s", count, gib(bytes))
	switch {
	case count == 0:
		f.add(stateWarn, check, log+" holds no segment", "")
	case newest.After(now.Add(time.Minute)):
		f.add(stateFail, check, fmt.Sprintf("%s; written %s in the future", found, newest.Sub(now).Round(time.Second)),
			"the clock went back: set it, or messages get times before those of older ones")
	default:
		f.ok(check, found)
	}
}
