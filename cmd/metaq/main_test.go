package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/daemon"
)

// metaq runs a command line.
func metaq(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(args, &out, &err)
	return code, out.String(), err.String()
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"", exitDone, "Serve:", ""},
		{"help", exitDone, "metaq server --data ./data", ""},
		{"version", exitDone, "data format 1", ""},
		{"version --output json", exitDone, `"format": 1`, ""},
		{"version --output xml", exitUsage, "", "it is table or json"},
		{"version surplus", exitUsage, "", "metaq: "},
		{"servr", exitUsage, "", `there is no command "servr"; did you mean server?`},
		{"server --broker-prt 1", exitUsage, "", "did you mean --broker-port?"},
		{"server --max-mesage-bytes 1", exitUsage, "", "did you mean --set max-message-bytes=…?"},
		{"server --set nonsense=1", exitFailed, "", "nonsense"},
		{"server --bind 0.0.0.0", exitFailed, "", "--allow-anonymous"},
		{"server --config /nowhere.yaml", exitFailed, "", "no such configuration file"},
		{"doctor a b", exitUsage, "", "metaq: "},
	} {
		code, stdout, stderr := metaq(strings.Fields(c.args)...)
		require.Equal(t, c.code, code, c.args)
		require.Contains(t, stdout, c.stdout, c.args)
		require.Contains(t, stderr, c.stderr, c.args)
		if c.code != exitDone {
			require.Empty(t, stdout, "errors go to stderr: %s", c.args)
		}
	}
}

func TestEveryCommandHasAnExampleAndAGroup(t *testing.T) {
	for _, cmd := range newRoot(nil, nil).Commands() {
		walk(cmd, func(c *cobra.Command) {
			require.NotEmpty(t, c.Short, c.CommandPath())
			require.NotEmpty(t, c.Example, c.CommandPath())
		})
		require.NotEmpty(t, cmd.GroupID, cmd.CommandPath())
	}
}

func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range cmd.Commands() {
		walk(c, visit)
	}
}

// settingsFor are settings of a server on free ports below dir.
func settingsFor(t *testing.T, dir string) daemon.Settings {
	t.Helper()
	s, _, err := daemon.Load(daemon.Sources{Flags: map[string]string{
		"data": filepath.Join(dir, "data"), "ready-file": filepath.Join(dir, "ready"),
		"nameserver-port": "0", "broker-port": "0", "grpc-port": "0", "http-port": "0",
	}})
	require.NoError(t, err)
	return s
}

func TestServerRunsUntilItIsStopped(t *testing.T) {
	dir := t.TempDir()
	s := settingsFor(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	log := slog.New(slog.DiscardHandler)
	go func() { done <- runServer(ctx, s, daemon.NewReload(s, nil, log), nil, log) }()

	ready := awaitReady(t, s.ReadyFile, done)
	for _, listener := range daemon.Listeners {
		addr, ok := ready[listener].(string)
		require.True(t, ok, listener)
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	_, held, err := daemon.HolderOf(s.Data)
	require.NoError(t, err)
	require.True(t, held)

	second := s
	second.ReadyFile = ""
	require.ErrorContains(t, runServer(ctx, second, daemon.NewReload(s, nil, log), nil, log), "is in use by process")

	cancel()
	require.NoError(t, <-done)
	_, err = os.Stat(s.ReadyFile)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, held, err = daemon.HolderOf(s.Data)
	require.NoError(t, err)
	require.False(t, held)
}

// awaitReady looks for the ready file until it is there or the server has ended.
func awaitReady(t *testing.T, path string, done <-chan error) (ready map[string]any) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for {
		select {
		case err := <-done:
			t.Fatalf("the server ended: %v", err)
		case <-limit:
			t.Fatal("the server did not become ready")
		case <-tick.C:
			b, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(b, &ready))
			return ready
		}
	}
}

// diagnose runs the doctor and returns its findings by check.
func diagnose(t *testing.T, args ...string) (code int, found map[string]finding) {
	t.Helper()
	code, stdout, _ := metaq(append([]string{"doctor", "--output", "json"}, args...)...)
	var list []finding
	require.NoError(t, json.Unmarshal([]byte(stdout), &list), stdout)
	found = map[string]finding{}
	for _, f := range list {
		found[f.Area+" "+f.Check] = f
	}
	return code, found
}

func TestDoctorOnAFreshFolder(t *testing.T) {
	dir := t.TempDir()
	code, found := diagnose(t, filepath.Join(dir, "data"), "--set", "disk-stop-use=100", "--set", "disk-max-use=100")
	require.Equal(t, exitDone, code, found)
	require.Equal(t, stateOK, found["data folder"].State)
	require.Contains(t, found["data folder"].Found, "does not exist yet")
	require.Equal(t, stateOK, found["configuration settings"].State)
	require.Contains(t, found, "machine kernel")
	require.Contains(t, found, "machine open files")
	require.Contains(t, found, "machine disk")
	require.Contains(t, found, "machine clock")
}

func TestDoctorOnAUsedFolder(t *testing.T) {
	dir := t.TempDir()
	data, err := daemon.OpenData(dir)
	require.NoError(t, err)
	logDir := filepath.Join(dir, "broker-a", "log")
	require.NoError(t, os.MkdirAll(logDir, 0o700))
	segment := func(name string, size int, age time.Duration) {
		path := filepath.Join(logDir, name)
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	segment("00000000000000000000", 100, time.Hour)
	segment("00000000000000000100", 100, time.Hour)
	_, found := diagnose(t, dir)
	require.Equal(t, stateOK, found["data log broker-a"].State)
	require.Contains(t, found["data log broker-a"].Found, "2 segments")
	require.Contains(t, found["data lock"].Found, "held by process")
	require.Contains(t, found["data format"].Found, data.Node.ID)
	require.NoError(t, data.Close())

	segment("00000000000000000300", 100, -time.Hour)
	code, found := diagnose(t, dir)
	require.Equal(t, exitFailed, code)
	require.Equal(t, stateFail, found["data log broker-a"].State)
	require.Contains(t, found["data lock"].Found, "free")
}

func TestDoctorTellsWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "node"), []byte(`{"id":"x","format":9,"needs":"3.0.0"}`), 0o600))
	code, found := diagnose(t, dir, "--bind", "0.0.0.0")
	require.Equal(t, exitFailed, code)
	require.Equal(t, stateFail, found["configuration settings"].State)
	require.Equal(t, "install metaq 3.0.0 or newer", found["data format"].Do)

	_, stdout, _ := metaq("doctor", dir)
	require.Contains(t, stdout, "→ install metaq 3.0.0 or newer")
	require.NotContains(t, stdout, "\x1b[", "no colours where no terminal is")

	f := &findings{}
	checkClock(f, oldest.Add(-time.Second))
	require.Equal(t, stateFail, f.list[0].State)
	f = &findings{}
	checkOpenFiles(f, 1<<40)
	require.Equal(t, stateWarn, f.list[0].State)
}
