package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/bench"
	"github.com/metaqio/metaq/internal/daemon"
)

// live is a real server in this process.
type live struct {
	t      *testing.T
	data   string
	server string // address of its name server
	stop   func()
}

func startLive(t *testing.T, change ...func(*daemon.Settings)) *live {
	t.Helper()
	s := settingsFor(t, t.TempDir())
	for _, c := range change {
		c(&s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serveQuietly(ctx, s) }()
	stopped := false
	l := &live{t: t, data: s.Data, stop: func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-done)
		}
	}}
	t.Cleanup(l.stop)
	l.server, _ = awaitReady(t, s.ReadyFile, done)["nameserver"].(string)
	return l
}

// serveQuietly runs a server that logs nothing.
func serveQuietly(ctx context.Context, s daemon.Settings) error {
	log := slog.New(slog.DiscardHandler)
	accept := func(map[string]string) error { return nil }
	return runServer(ctx, s, daemon.NewReload(s, nil, log), accept, log)
}

// ok runs a command that must succeed, and gives what it prints.
func (l *live) ok(line string) string {
	l.t.Helper()
	code, stdout, stderr := metaq(append(strings.Fields(line), "--server", l.server)...)
	require.Equal(l.t, exitDone, code, "%s: %s", line, stderr)
	return stdout
}

// json runs a command that must succeed, and reads its result.
func (l *live) json(line string, into any) {
	l.t.Helper()
	require.NoError(l.t, json.Unmarshal([]byte(l.ok(line+" --output json")), into))
}

func TestCommandsAgainstAServer(t *testing.T) {
	l := startLive(t)
	l.ok("topic create orders --queues 2")
	require.Contains(t, l.ok("topic list"), "orders")
	l.ok("topic update orders --queues 3")
	require.Contains(t, l.ok("topic show orders"), "broker-a     3      3  rw")

	var sent []struct {
		Offset   int64
		OffsetID string `json:"offset_id"`
	}
	l.json("message send --topic orders --body hello --tag new --count 6", &sent)
	require.Len(t, sent, 6)
	require.Equal(t, int64(1), sent[5].Offset)
	l.ok("message send --topic orders --body other --tag old --count 3 --batch 3")
	require.Equal(t, "hello", l.ok("message get "+sent[0].OffsetID+" --raw"))
	var got []struct{ Body, Tag string }
	l.json("message get --topic orders --tag old", &got)
	require.Len(t, got, 3)
	require.Equal(t, "other", got[0].Body)
	require.Equal(t, 6, strings.Count(l.ok("message tail --topic orders --tag new --from earliest --count 6"), "hello"))
	require.Contains(t, l.ok("topic stats orders"), "total                             9")

	require.Contains(t, l.ok("cluster show"), "broker-a")
	require.Contains(t, l.ok("cluster config"), "brokerName")
	l.ok("cluster config fileReservedTime=48")

	l.ok("message send --topic made-by-sending --body x")
	require.Contains(t, l.ok("topic list"), "made-by-sending")

	l.ok("group create billing --retry-max 4")
	require.Contains(t, l.ok("group show billing"), " 4 ")
	l.ok("offset reset --group billing --topic orders --to earliest --yes")
	var progress []struct{ Lag int64 }
	l.json("group progress billing", &progress)
	require.Len(t, progress, 3)
	require.Equal(t, int64(9), progress[0].Lag+progress[1].Lag+progress[2].Lag)
	l.ok("offset reset --group billing --topic orders --to latest --yes")
	l.json("group progress billing", &progress)
	require.Zero(t, progress[0].Lag+progress[1].Lag+progress[2].Lag)
	l.ok("group delete billing --yes")
	l.ok("topic delete orders --yes")
	require.NotContains(t, l.ok("topic list"), "orders")
}

func TestTailFollows(t *testing.T) {
	l := startLive(t)
	l.ok("topic create orders --queues 2")
	r, w := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- run([]string{"message", "tail", "--topic", "orders", "--from", "earliest", "--count", "2", "--server", l.server}, w, io.Discard)
		w.Close()
	}()
	l.ok("message send --topic orders --body first")
	line := make([]byte, 200)
	n, err := r.Read(line)
	require.NoError(t, err)
	require.Contains(t, string(line[:n]), "first")
	l.ok("message send --topic orders --body second --queue 1")
	n, err = r.Read(line)
	require.NoError(t, err)
	require.Contains(t, string(line[:n]), "broker-a/1@0 second")
	require.Equal(t, exitDone, <-done)
}

func TestBenchAgainstAServer(t *testing.T) {
	l := startLive(t)
	var p bench.ProduceResult
	l.json("bench produce --connections 2 --in-flight 16 --count 2000 --queues 3", &p)
	require.Equal(t, int64(2000), p.Total)
	require.Equal(t, 3, p.Queues)
	l.json("bench produce --batch 10 --count 1000 --header binary", &p)
	var c bench.ConsumeResult
	l.json("bench consume --to-end --connections 2", &c)
	require.Equal(t, int64(3000), c.Total)
	require.Contains(t, l.ok("bench consume --count 100 --pull 100"), "RECEIVED")
	var e bench.E2EResult
	l.json("bench e2e --rate 500 --duration 200ms", &e)
	require.Equal(t, int64(100), e.Consume.Total)

	var rows []suiteRow
	l.json("bench suite --duration 100ms", &rows)
	require.Len(t, rows, len(suiteLoads))
	for _, r := range rows {
		require.Positive(t, r.Messages, r.Run)
		require.Empty(t, r.Problems, r.Run)
	}
	require.NotContains(t, l.ok("topic list"), "metaq-suite")
}

func TestLogOfAServer(t *testing.T) {
	l := startLive(t)
	l.ok("topic create orders --queues 1")
	l.ok("message send --topic orders --body hello --tag new --count 5")
	l.ok("group create billing")
	check := func(code int, dir string) string {
		got, stdout, stderr := metaq("log", "verify", dir, "--contents")
		require.Equal(t, code, got, stderr)
		return stdout
	}
	require.Contains(t, check(exitDone, l.data), "broker-a/log", "while the server runs")
	l.stop()
	logDir := filepath.Join(l.data, "broker-a", "log")
	for _, dir := range []string{l.data, filepath.Dir(logDir), logDir} {
		require.Contains(t, check(exitDone, dir), logDir)
	}

	code, stdout, stderr := metaq("log", "show", l.data, "--topic", "orders")
	require.Equal(t, exitDone, code, stderr)
	require.Contains(t, stdout, `put topic {"Topic":{"Name":"orders"`)
	require.Equal(t, 5, strings.Count(stdout, " tag new 5 bytes: hello\n"))
	require.NotContains(t, stdout, "billing")
	code, stdout, _ = metaq("log", "show", l.data, "--limit", "3", "--output", "json")
	require.Equal(t, exitDone, code)
	items := 0
	for line := range strings.Lines(stdout) {
		var f shownFrame
		require.NoError(t, json.Unmarshal([]byte(line), &f))
		items += max(1, len(f.Items))
	}
	require.Equal(t, 3, items)

	damage(t, logDir, "hello")
	require.Contains(t, check(exitFailed, l.data), logDir+"/")
	code, _, stderr = metaq("log", "verify", t.TempDir())
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "holds no log")
	code, _, stderr = metaq("log", "verify", "/nowhere")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "no such file")
}

// damage changes a byte of the first place that has a text.
func damage(t *testing.T, dir, text string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "0*"))
	require.NoError(t, err)
	f, err := os.OpenFile(names[0], os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	front := make([]byte, 1<<20)
	_, err = io.ReadFull(f, front)
	require.NoError(t, err)
	at := bytes.Index(front, []byte(text))
	require.Positive(t, at)
	_, err = f.WriteAt([]byte{'j'}, int64(at))
	require.NoError(t, err)
}
