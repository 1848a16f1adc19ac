package ops_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

func TestStartAndStop(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	require.Equal(t, s.cmd.Process.Pid, s.pid)
	s.awaitLog(`"msg":"ready"`)
	var first map[string]any
	line, _, _ := strings.Cut(s.log.String(), "\n")
	require.NoError(t, json.Unmarshal([]byte(line), &first), "the log is JSON where no terminal is: %s", line)
	require.Equal(t, "metaq starts", first["msg"])
	require.NotEmpty(t, first["version"])
	require.Equal(t, filepath.Join(dir, "data"), first["data"])
	for _, listener := range []string{"nameserver", "broker", "vip", "grpc", "http"} {
		require.Equal(t, s.addrs[listener], first[listener])
		for _, path := range []string{"/healthz", "/readyz", "/metrics", "/"} {
			status, body := s.get(listener, path)
			require.Equal(t, http.StatusOK, status, "%s of %s: %s", path, listener, body)
		}
		status, body := s.get(listener, "/topics")
		require.Equal(t, http.StatusNotFound, status)
		require.Contains(t, body, s.addrs["http"])
	}
	c := s.dial()
	for i := range 20 {
		c.mustSend("T", int32(i%2), fmt.Append(nil, "message ", i))
	}
	tail := s.metric("metaq_log_tail_position_bytes")
	require.InDelta(t, 20, s.metric("metaq_sent_messages_total"), 0)
	s.stop()
	require.Contains(t, s.log.String(), `"msg":"stopping"`)

	s = start(t, dir)
	require.GreaterOrEqual(t, s.metric("metaq_log_checkpointed_position_bytes"), tail, "a checkpoint was written at the stop")
	require.Len(t, s.dial().read("T", 1), 10)
	s.stop()
}

func TestStopWithClientsThatWait(t *testing.T) {
	s := start(t, t.TempDir())
	c := s.dial()
	c.mustSend("T", 0, []byte("x"))
	waiting := make(chan error, 1)
	c.Go(pullCommand("T", 0, 1, time.Minute), func(_ *protocol.Command, err error) { waiting <- err })
	for tick := time.NewTicker(5 * time.Millisecond); s.metric("metaq_waiting_pulls") == 0; {
		<-tick.C
	}
	_, err := net.Dial("tcp", s.addrs["nameserver"]) // says nothing
	require.NoError(t, err)
	s.stop()
	<-waiting // an answer, or the end of the connection
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	s.dial().mustSend("T", 0, []byte("acknowledged"))
	s.signal(syscall.SIGSTOP) // so that both are there when it looks
	s.signal(syscall.SIGTERM)
	s.signal(syscall.SIGINT)
	s.signal(syscall.SIGCONT)
	require.Equal(t, 1, s.wait())
	require.Contains(t, s.log.String(), "second signal")
	os.Remove(s.readyFile()) // may be left
	s = start(t, dir)
	require.Equal(t, []string{"acknowledged"}, s.dial().read("T", 0))
	s.stop()
}

func TestReload(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "metaq.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(config, []byte(text), 0o600)) }
	write("profiling: false\n")
	s := start(t, dir, "--config", config)
	status, _ := s.get("http", "/debug/pprof/")
	require.Equal(t, http.StatusNotFound, status)
	write("profiling: true\nmetrics-max-lags: 7\n")
	s.signal(syscall.SIGHUP)
	s.awaitLog(`"setting":"metrics-max-lags"`)
	for tick := time.NewTicker(5 * time.Millisecond); s.metric("metaq_group_lags_limit") != 7; {
		<-tick.C
	}
	status, body := s.get("http", "/debug/pprof/")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "goroutine")
	write("profiling: true\nmetrics-max-lag: 8\n")
	s.signal(syscall.SIGHUP)
	s.awaitLog("not reloaded")
	s.stop()
}

func TestRefusalsSayWhatWhereAndTheRemedy(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	require.NoError(t, err)
	for _, c := range []struct {
		name string
		args []string
		said []string
	}{
		{"port in use", []string{"--broker-port", port, "--vip-port", "-1"}, []string{taken.Addr().String(), "is in use", "--broker-port"}},
		{"unknown setting", []string{"--set", "max-mesage-bytes=1"}, []string{"max-mesage-bytes", "did you mean \"max-message-bytes\"?"}},
		{"wrong value", []string{"--set", "disk-stop-use=lots"}, []string{"disk-stop-use", "lots"}},
		{"bind rule", []string{"--bind", "0.0.0.0"}, []string{"--allow-anonymous"}},
		{"unknown file", []string{"--config", "/nowhere/metaq.yaml"}, []string{"/nowhere/metaq.yaml"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			said := refused(t, arguments(dir, c.args...)...)
			for _, text := range c.said {
				require.Contains(t, said, text)
			}
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left, "nothing was changed")
		})
	}
}

func TestFolderThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	said := refused(t, arguments(file)...)
	require.Contains(t, said, filepath.Join(file, "data"))
	require.Contains(t, said, "not a directory")

	other := filepath.Join(dir, "other")
	require.NoError(t, os.MkdirAll(filepath.Join(other, "data", "photos"), 0o700))
	require.Contains(t, refused(t, arguments(other)...), "not a data folder of metaq")

	t.Run("read only", func(t *testing.T) {
		var user *syscall.SysProcAttr // one for whom permissions count
		if os.Geteuid() == 0 {
			const nobody = 65534
			user = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		base, err := os.MkdirTemp("", "metaq-ops-") // t.TempDir is closed to others
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
		require.NoError(t, os.Chmod(base, 0o755))
		locked := filepath.Join(base, "locked")
		require.NoError(t, os.Mkdir(locked, 0o555))
		said := refusedAs(t, user, arguments(locked)...)
		require.Contains(t, said, filepath.Join(locked, "data"))
		require.Contains(t, said, "permission denied")
	})
}

func TestOneProcessAtATime(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	second := append(arguments(dir), "--ready-file", filepath.Join(dir, "second"))
	require.Contains(t, refused(t, second...), fmt.Sprintf("is in use by process %d", s.pid))
	s.dial().mustSend("T", 0, []byte("x")) // the first is not disturbed
	s.stop()
	s = start(t, dir)
	s.stop()
}
