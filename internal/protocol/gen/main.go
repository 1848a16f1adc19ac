package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	files, err := generate("defs")
	if err == nil {
		err = write(files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate gives the contents of the generated files by name.
func generate(dir string) (map[string][]byte, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.def"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no definitions in %s", dir)
	}
	p := newParser()
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read definitions: %w", err)
		}
		if err := p.file(name, string(text)); err != nil {
			return nil, err
		}
	}
	if err := p.resolve(); err != nil {
		return nil, err
	}
	return emit(p)
}

// write replaces the files that have changed.
func write(files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		old, err := os.ReadFile(name)
		if err == nil && bytes.Equal(old, files[name]) {
			continue
		}
		if err := os.WriteFile(name, files[name], 0o644); err != nil {
			return fmt.Errorf("write generated file: %w", err)
		}
	}
	return nil
}
