package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteReady writes the ready file: the process and the address of each open listener, as one JSON object. An empty path writes
// nothing. remove takes the file away again; it leaves alone a file that another process has put in its place.
func WriteReady(path string, addresses map[string]string) (remove func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	path, err = filepath.Abs(path) // the working folder may change
	if err != nil {
		return nil, fmt.Errorf("write ready file: %w", err)
	}
	content := map[string]any{"pid": os.Getpid()}
	for listener, addr := range addresses {
		content[listener] = addr
	}
	b, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("write ready file: %w", err)
	}
	if err := writeFileAtomic(path, append(b, '\n')); err != nil {
		return nil, err
	}
	return func() error { return removeReady(path) }, nil
}

func removeReady(path string) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var content struct{ PID int }
	if err == nil && json.Unmarshal(b, &content) == nil && content.PID != os.Getpid() {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove ready file: %w", err)
	}
	return nil
}
