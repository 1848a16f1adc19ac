package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// How long a server of our own may take to start and to stop.
const (
	ownStart = 30 * time.Second
	ownStop  = 15 * time.Second
)

// ownServer is a server of this program in a process of its own, with its data in a temporary folder.
type ownServer struct {
	dir     string
	address string // of its name server
	process *exec.Cmd
	ended   chan error
}

// startOwnServer starts one on free loopback ports.
func startOwnServer(ctx context.Context, durability string) (*ownServer, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "metaq-bench-")
	if err != nil {
		return nil, err
	}
	ready, output := filepath.Join(dir, "ready"), filepath.Join(dir, "output")
	out, err := os.Create(output)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	defer out.Close() // the process has its own
	s := &ownServer{dir: dir, ended: make(chan error, 1)}
	s.process = exec.Command(program, "server", "--data", filepath.Join(dir, "data"), "--bind", "127.0.0.1", "--nameserver-port", "0",
		"--broker-port", "0", "--grpc-port", "0", "--http-port", "0", "--ready-file", ready, "--durability", durability)
	s.process.Stdout, s.process.Stderr = out, out
	if err := s.process.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start server: %w", err), os.RemoveAll(dir))
	}
	go func() { s.ended <- s.process.Wait() }()
	if s.address, err = s.awaitReady(ctx, ready); err != nil {
		said, _ := os.ReadFile(output) // whatever there is
		return nil, errors.Join(fmt.Errorf("start server: %w\n%s", err, strings.TrimSpace(string(said))), s.stop())
	}
	return s, nil
}

// awaitReady waits for the ready file and gives the address in it.
func (s *ownServer) awaitReady(ctx context.Context, path string) (string, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(ownStart)
	for {
		b, err := os.ReadFile(path)
		if err == nil {
			var ready struct{ Nameserver string }
			if err := json.Unmarshal(b, &ready); err != nil {
				return "", fmt.Errorf("read %s: %w", path, err)
			}
			return ready.Nameserver, nil
		}
		select {
		case err := <-s.ended:
			s.ended <- err // for stop
			return "", fmt.Errorf("it ended: %w", err)
		case <-ctx.Done():
			return "", ctx.Err()
		case <-limit:
			return "", errors.New("it is not ready in time")
		case <-tick.C:
		}
	}
}

func (s *ownServer) pid() int { return s.process.Process.Pid }

// stop stops the server and removes its data.
func (s *ownServer) stop() error {
	var errs []error
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		errs = append(errs, fmt.Errorf("stop server: %w", err))
	}
	select {
	case err := <-s.ended:
		if err != nil {
			errs = append(errs, fmt.Errorf("server: %w", err))
		}
	case <-time.After(ownStop):
		errs = append(errs, errors.New("the server did not stop in time"), s.process.Process.Kill())
		<-s.ended //nolint:errcheck // it was killed
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// clockTick is the unit of processor times in /proc: the kernel tells user space a hundredth of a second, whatever its own is.
const clockTick = 10 * time.Millisecond

// cpuTime is the processor time that a process has used, 0 when that is unknown.
func cpuTime(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name in the second field may have anything in it.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	const user, system = 11, 12 // behind the name
	if len(fields) <= system {
		return 0
	}
	u, err1 := strconv.ParseInt(fields[user], 10, 64)
	s, err2 := strconv.ParseInt(fields[system], 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return time.Duration(u+s) * clockTick
}
