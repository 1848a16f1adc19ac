package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Exit codes. Scripts rely on them.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// version is set by the linker (see the Makefile).
var version = "unknown"

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process: tests call it.
func run(args []string, stdout, stderr io.Writer) int {
	root := newRoot(stdout, stderr)
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return exitDone
	}
	if _, quiet := errors.AsType[*reportedError](err); !quiet {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintf(stderr, "metaq: %s\n", line)
		}
	}
	if _, usage := errors.AsType[*usageError](err); usage {
		return exitUsage
	}
	return exitFailed
}

// A usageError is a mistake in the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// A reportedError ends a command with exit code 1 after it has printed why.
type reportedError struct{ what string }

func (e *reportedError) Error() string { return e.what }
