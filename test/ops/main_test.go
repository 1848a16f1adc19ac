// Package ops_test runs the built program as an operator does: start, stop, kill, full disk, wrong settings. The binary
// is built once, or taken from METAQ_BIN.
package ops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// limit is how long anything may take on a slow machine; nothing waits for it to pass.
const limit = 60 * time.Second

var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if binary = os.Getenv("METAQ_BIN"); binary != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "metaq-ops-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // other users run it too
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binary = filepath.Join(dir, "metaq")
	build := exec.Command("go", "build", "-o", binary, "github.com/metaqio/metaq/cmd/metaq")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// missing leaves a test out that this machine cannot run; where all have to run (METAQ_TEST_SKIP=no) it fails.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("METAQ_TEST_SKIP") == "no" {
		t.Fatal("missing, and METAQ_TEST_SKIP=no: " + what)
	}
	t.Skip("missing: " + what)
}

// output is what a process has said so far.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed and replaced by each write
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// server is a running program.
type server struct {
	t     *testing.T
	dir   string
	cmd   *exec.Cmd
	log   *output
	ended chan struct{}
	err   error             // of the process; after ended
	addrs map[string]string // of the listeners
	pid   int               // as the ready file says
}

// arguments are those of a server with its data in dir, on free ports; its segments are small, since tests are many.
func arguments(dir string, more ...string) []string {
	return append([]string{
		"server", "--data", filepath.Join(dir, "data"), "--ready-file", filepath.Join(dir, "ready"), "--set", "segment-bytes=16MiB",
		"--nameserver-port", "0", "--broker-port", "0", "--grpc-port", "0", "--http-port", "0",
	}, more...)
}

// start starts a server and waits until it is ready.
func start(t *testing.T, dir string, more ...string) *server {
	t.Helper()
	s := launch(t, dir, more...)
	s.awaitReady()
	return s
}

// launch starts a server.
func launch(t *testing.T, dir string, more ...string) *server {
	t.Helper()
	s := &server{t: t, dir: dir, cmd: exec.Command(binary, arguments(dir, more...)...), log: newOutput(), ended: make(chan struct{})}
	s.cmd.Stderr = s.log
	s.cmd.Env = environment()
	require.NoError(t, s.cmd.Start())
	go func() { s.err = s.cmd.Wait(); close(s.ended) }()
	t.Cleanup(func() {
		s.cmd.Process.Signal(syscall.SIGCONT)
		s.cmd.Process.Kill() // an error says that it has ended already
		<-s.ended
		if t.Failed() {
			t.Logf("the server in %s said:\n%s", dir, s.log)
		}
	})
	return s
}

// environment is ours without what configures a server.
func environment() (env []string) {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "METAQ_") {
			env = append(env, v)
		}
	}
	return env
}

func (s *server) readyFile() string { return filepath.Join(s.dir, "ready") }

// awaitReady waits for the ready file.
func (s *server) awaitReady() {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(limit)
	for {
		select {
		case <-s.ended:
			s.t.Fatalf("the server ended: %v", s.err)
		case <-late:
			s.t.Fatal("the server did not become ready")
		case <-tick.C:
		}
		b, err := os.ReadFile(s.readyFile())
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		require.NoError(s.t, err)
		var ready map[string]any
		require.NoError(s.t, json.Unmarshal(b, &ready))
		s.addrs = map[string]string{}
		for name, v := range ready {
			if addr, ok := v.(string); ok {
				s.addrs[name] = addr
			}
		}
		s.pid = int(ready["pid"].(float64))
		return
	}
}

// awaitLog waits until the log says something.
func (s *server) awaitLog(text string) {
	s.t.Helper()
	late := time.After(limit)
	for {
		s.log.mu.Lock()
		changed, said := s.log.changed, strings.Contains(s.log.text.String(), text)
		s.log.mu.Unlock()
		if said {
			return
		}
		select {
		case <-changed:
		case <-s.ended:
			require.Contains(s.t, s.log.String(), text, "the server ended: %v", s.err)
			return
		case <-late:
			s.t.Fatalf("the server did not say %q", text)
		}
	}
}

func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Signal(sig))
}

// wait waits until the process has ended and returns its exit code; -1 when a signal ended it.
func (s *server) wait() int {
	s.t.Helper()
	select {
	case <-s.ended:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		s.t.Fatal("the server did not end")
		return 0
	}
}

// stop ends the server in order, as it has to: within 10 s, with code 0.
func (s *server) stop() {
	s.t.Helper()
	begun := time.Now()
	s.signal(syscall.SIGTERM)
	require.Equal(s.t, 0, s.wait(), "exit code")
	require.Less(s.t, time.Since(begun), 10*time.Second)
	_, err := os.Stat(s.readyFile())
	require.ErrorIs(s.t, err, os.ErrNotExist, "the ready file is removed")
}

// kill ends the server without a chance to do anything.
func (s *server) kill() {
	s.t.Helper()
	s.signal(syscall.SIGKILL)
	require.Equal(s.t, -1, s.wait())
	require.NoError(s.t, os.Remove(s.readyFile()))
}

// get asks a listener by HTTP.
func (s *server) get(listener, path string) (status int, body string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addrs[listener]+path, nil)
	require.NoError(s.t, err)
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(s.t, err)
	return res.StatusCode, string(b)
}

// metric reads a metric without labels but the shard's.
func (s *server) metric(name string) float64 {
	s.t.Helper()
	_, text := s.get("http", "/metrics")
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == '{' || rest[0] == ' ') {
			v, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			require.NoError(s.t, err)
			return v
		}
	}
	s.t.Fatalf("there is no metric %s", name)
	return 0
}

// refused runs a server that is expected not to start, and returns what it said.
func refused(t *testing.T, args ...string) string {
	t.Helper()
	return refusedAs(t, nil, args...)
}

// refusedAs is refused for another user; nil: ours.
func refusedAs(t *testing.T, user *syscall.SysProcAttr, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env, cmd.SysProcAttr = environment(), user
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	require.Error(t, err, "it ran:\n%s", &log)
	require.Equal(t, 1, cmd.ProcessState.ExitCode(), "%v\n%s", err, &log)
	require.Empty(t, out.String(), "stdout is for results")
	return log.String()
}
