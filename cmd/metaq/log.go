package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
)

func newLog() *cobra.Command {
	cmd := parent(&cobra.Command{
		Use:     "log",
		GroupID: groupCheck,
		Short:   "Check and show the log on the disk, without a server or beside one",
		Example: "  metaq log verify ./data\n  metaq log show ./data --topic orders --limit 10",
	})
	cmd.AddCommand(newLogVerify(), newLogShow())
	return cmd
}

// logDirs finds the logs below a folder: a data folder, that of a shard, or a log itself.
func logDirs(dir string) ([]string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder", dir)
	}
	for _, pattern := range []string{"*/log", "log"} {
		dirs, err := filepath.Glob(filepath.Join(escapePattern(dir), pattern))
		if err != nil {
			return nil, err
		}
		dirs = slices.DeleteFunc(dirs, func(path string) bool {
			info, err := os.Stat(path)
			return err != nil || !info.IsDir()
		})
		if len(dirs) > 0 {
			return dirs, nil
		}
	}
	names, err := filepath.Glob(filepath.Join(escapePattern(dir), "[0-9]*"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if segmentName.MatchString(filepath.Base(name)) {
			return []string{dir}, nil
		}
	}
	return nil, fmt.Errorf("%s holds no log: it should be a data folder, that of a shard, or a log", dir)
}

// escapePattern makes a path stand for itself in a pattern.
func escapePattern(path string) string {
	var b []byte
	for i := range len(path) {
		switch path[i] {
		case '*', '?', '[', '\\':
			b = append(b, '\\')
		}
		b = append(b, path[i])
	}
	return string(b)
}
