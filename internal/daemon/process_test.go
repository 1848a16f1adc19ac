package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestDataFolderKeepsItsIdentity(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "data")
	d, err := OpenData(dir)
	require.NoError(t, err)
	require.Len(t, d.Node.ID, 32)
	require.Equal(t, FormatVersion, d.Node.Format)
	pid, held, err := HolderOf(dir)
	require.NoError(t, err)
	require.True(t, held)
	require.Equal(t, os.Getpid(), pid)

	_, err = OpenData(dir)
	locked, ok := errors.AsType[*LockedError](err)
	require.True(t, ok, "one holder at a time, also in one process: %v", err)
	require.Equal(t, os.Getpid(), locked.PID)
	require.ErrorContains(t, err, "is in use by process "+strconv.Itoa(os.Getpid()))

	id := d.Node.ID
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	_, held, err = HolderOf(dir)
	require.NoError(t, err)
	require.False(t, held)
	d, err = OpenData(dir)
	require.NoError(t, err)
	require.Equal(t, id, d.Node.ID)
	require.NoError(t, d.Close())
}

// TestLockOfAnotherProcess runs itself as the holder.
func TestLockOfAnotherProcess(t *testing.T) {
	if dir := os.Getenv("HOLD_LOCK_OF"); dir != "" {
		d, err := OpenData(dir)
		require.NoError(t, err)
		os.Stdout.WriteString("held\n")
		bufio.NewReader(os.Stdin).ReadString('\n')
		require.NoError(t, d.Close())
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestLockOfAnotherProcess$")
	cmd.Env = append(os.Environ(), "HOLD_LOCK_OF="+dir)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", line)

	_, err = OpenData(dir)
	locked, ok := errors.AsType[*LockedError](err)
	require.True(t, ok)
	require.Equal(t, cmd.Process.Pid, locked.PID)

	// A holder that is killed leaves the file, but not the lock.
	require.NoError(t, cmd.Process.Kill())
	require.NoError(t, in.Close())
	require.Error(t, cmd.Wait())
	d, err := OpenData(dir)
	require.NoError(t, err)
	require.NoError(t, d.Close())
}

func TestDataFolderThatIsNotOurs(t *testing.T) {
	write := func(t *testing.T, content string) string {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, nodeName), []byte(content), 0o600))
		return dir
	}
	t.Run("newer", func(t *testing.T) {
		dir := write(t, `{"id":"x","format":99,"needs":"7.1.0"}`)
		_, err := OpenData(dir)
		require.ErrorContains(t, err, "has format 99, this program knows formats up to 1: it needs metaq 7.1.0 or newer; nothing was changed")
		_, err = os.Stat(filepath.Join(dir, lockName))
		require.ErrorIs(t, err, fs.ErrNotExist)
	})
	t.Run("damaged", func(t *testing.T) {
		_, err := OpenData(write(t, "\x00\x00"))
		require.ErrorContains(t, err, "is damaged")
	})
	t.Run("another program's", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, "commitlog"), 0o700))
		_, err := OpenData(dir)
		require.ErrorContains(t, err, `holds a folder "commitlog"`)
		_, held, err := HolderOf(dir)
		require.NoError(t, err)
		require.False(t, held, "released after the refusal")
	})
	t.Run("a log file beside", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "stderr.log"), nil, 0o600))
		d, err := OpenData(dir)
		require.NoError(t, err)
		require.NoError(t, d.Close())
	})
	t.Run("a file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "f")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		_, err := OpenData(file)
		require.Error(t, err)
	})
}

func TestReadyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready.json")
	remove, err := WriteReady(path, map[string]string{"broker": "127.0.0.1:10911"})
	require.NoError(t, err)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var content map[string]any
	require.NoError(t, json.Unmarshal(b, &content))
	require.Equal(t, map[string]any{"pid": float64(os.Getpid()), "broker": "127.0.0.1:10911"}, content)
	require.NoError(t, remove())
	require.NoError(t, remove())
	_, err = os.Stat(path)
	require.ErrorIs(t, err, fs.ErrNotExist)

	remove, err = WriteReady(path, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(`{"pid":1}`), 0o600))
	require.NoError(t, remove())
	_, err = os.Stat(path)
	require.NoError(t, err, "another process's file stays")

	remove, err = WriteReady("", nil)
	require.NoError(t, err)
	require.NoError(t, remove())
	_, err = WriteReady("/nowhere/ready", nil)
	require.Error(t, err)
}

func TestListenOpensAllOrNone(t *testing.T) {
	s := Defaults()
	s.NameserverPort, s.BrokerPort, s.VIPPort, s.GRPCPort, s.HTTPPort = 0, 0, 0, Off, 0
	set, err := Listen(s)
	require.NoError(t, err)
	require.Len(t, set.Addresses(), 4)
	require.NotContains(t, set.Addresses(), "grpc")

	_, port, err := net.SplitHostPort(set.Addresses()["http"])
	require.NoError(t, err)
	taken := s
	taken.HTTPPort, err = strconv.Atoi(port)
	require.NoError(t, err)
	_, err = Listen(taken)
	require.ErrorContains(t, err, "http address 127.0.0.1:"+port+" is in use: stop the program that has it, or choose another port with --http-port")
	require.NoError(t, set.Close())
	require.NoError(t, set.Close())

	s.Bind = "192.0.2.1"
	_, err = Listen(s)
	require.ErrorContains(t, err, "is not an address of this machine: correct --bind")
}

// signalled runs Signals in a bubble with signals from a channel; exits collects the codes.
type signalled struct {
	ctx     context.Context
	stop    func()
	ch      chan os.Signal
	exits   []int
	reloads int
}

func newSignalled(t *testing.T) *signalled {
	s := &signalled{ch: make(chan os.Signal)}
	s.ctx, s.stop = Signals(t.Context(), SignalOptions{
		Reload: func() { s.reloads++ },
		Exit:   func(code int) { s.exits = append(s.exits, code) },
		Log:    quiet(), notify: s.ch,
	})
	return s
}

func TestSignals(t *testing.T) {
	t.Run("reload, then a graceful stop", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSignalled(t)
			s.ch <- syscall.SIGHUP
			synctest.Wait()
			require.Equal(t, 1, s.reloads)
			require.NoError(t, s.ctx.Err())
			s.ch <- syscall.SIGTERM
			<-s.ctx.Done()
			cause, ok := errors.AsType[*SignalError](context.Cause(s.ctx))
			require.True(t, ok)
			require.Equal(t, syscall.SIGTERM, cause.Signal)
			<-time.After(GracePeriod - time.Millisecond)
			s.stop()
			s.stop()
			require.Empty(t, s.exits)
		})
	})
	t.Run("a stop that takes too long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSignalled(t)
			s.ch <- syscall.SIGINT
			<-time.After(GracePeriod + time.Millisecond)
			synctest.Wait()
			require.Equal(t, []int{1}, s.exits)
			s.stop()
		})
	})
	t.Run("a second signal", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSignalled(t)
			s.ch <- syscall.SIGINT
			s.ch <- syscall.SIGINT
			synctest.Wait()
			require.Equal(t, []int{1}, s.exits)
			s.stop()
		})
	})
}

func TestRealSignal(t *testing.T) {
	ctx, stop := Signals(t.Context(), SignalOptions{Log: quiet()})
	defer stop()
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	<-ctx.Done()
	require.ErrorContains(t, context.Cause(ctx), "stopped by signal terminated")
}

func TestGroupStopsInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		service := func(name string, slow time.Duration) func(context.Context) error {
			return func(ctx context.Context) error {
				<-ctx.Done()
				<-time.After(slow)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name+": "+context.Cause(ctx).Error())
				return context.Cause(ctx)
			}
		}
		var g Group
		g.Add("store", service("store", 0))
		g.Add("broker", service("broker", time.Second))
		g.Add("door", service("door", 2*time.Second))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("enough"))
		require.NoError(t, g.Run(ctx))
		require.Equal(t, []string{"door: enough", "broker: enough", "store: enough"}, order)
	})
}

func TestGroupReportsTheFirstFailure(t *testing.T) {
	broken, closing := errors.New("disk gone"), errors.New("close")
	var g Group
	g.Add("store", func(ctx context.Context) error { <-ctx.Done(); return closing })
	g.Add("sync", func(context.Context) error { return broken })
	err := g.Run(t.Context())
	require.ErrorIs(t, err, broken)
	require.ErrorIs(t, err, closing)
	require.Equal(t, "sync: disk gone\nstore: close", err.Error())

	var quitter Group
	quitter.Add("loop", func(context.Context) error { return nil })
	require.ErrorContains(t, quitter.Run(t.Context()), "loop: ended without being asked to")

	var empty Group
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, empty.Run(ctx))
}

func TestReload(t *testing.T) {
	var lines bytes.Buffer
	fresh, loadErr := Defaults(), error(nil)
	r := NewReload(Defaults(), func() (Settings, Report, error) { return fresh, Report{}, loadErr }, slog.New(slog.NewTextHandler(&lines, nil)))
	var seen []Settings
	r.Subscribe(func(s Settings) { seen = append(seen, s) })

	r.Do()
	require.Empty(t, seen, "nothing changed")
	fresh.LogLevel, fresh.BrokerPort, fresh.MaxWaiters = slog.LevelDebug, 1234, 7
	r.Do()
	require.Len(t, seen, 1)
	require.Equal(t, slog.LevelDebug, seen[0].LogLevel)
	require.Equal(t, 7, r.Current().MaxWaiters)
	require.Equal(t, 10911, r.Current().BrokerPort, "needs a restart")
	require.Contains(t, lines.String(), "setting takes effect with the next start")

	loadErr = &ProblemsError{Problems: []string{"bad"}}
	fresh.MaxWaiters = 8
	r.Do()
	require.Equal(t, 7, r.Current().MaxWaiters)
	require.Contains(t, lines.String(), "error=bad")

	// Fine with a bigger ring, which only a restart gives.
	loadErr = nil
	fresh.MaxMessageBytes, fresh.RingBytes, fresh.SegmentBytes = 15*mib, 128*mib, gib
	r.current.RingBytes = 32 * mib
	r.Do()
	require.Equal(t, 4*mib, r.Current().MaxMessageBytes)
	require.Len(t, seen, 1)
}

func TestThrottleLetsOneLineThroughAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := Throttle(slog.New(slog.NewTextHandler(&out, nil)), time.Second)
		for range 5 {
			log.Warn("slow reader", "client", "a")
			log.With("door", "x").Warn("slow reader")
		}
		log.WithGroup("g").Error("slow reader", "k", 1)
		require.Equal(t, 2, strings.Count(out.String(), "\n"), "a level of its own is a line of its own")
		<-time.After(time.Second)
		log.Warn("slow reader")
		require.Contains(t, out.String(), "suppressed=9")
		log.Debug("not logged at all")
		for i := range 3 * maxThrottled {
			log.Warn("message " + strconv.Itoa(i)) //nolint:sloglint // messages that are no constants are what the bound is for
		}
		require.LessOrEqual(t, len(log.Handler().(*throttle).state.seen), maxThrottled)
	})
}

func BenchmarkThrottleHeldBack(b *testing.B) {
	state := &throttleState{interval: time.Hour, seen: map[throttleKey]*throttled{}}
	key, now := throttleKey{slog.LevelWarn, "slow reader"}, time.Now()
	b.ReportAllocs()
	for b.Loop() {
		state.admit(key, now)
	}
}

func TestLoggerWritesJSONWhereNoTerminalIs(t *testing.T) {
	var out bytes.Buffer
	level := new(slog.LevelVar)
	log := NewLogger(&out, level)
	log.Debug("hidden")
	level.Set(slog.LevelDebug)
	log.Debug("shown", "n", 1)
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	require.Equal(t, "shown", line["msg"])
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	require.False(t, IsTerminal(f))
	at := shortTime(nil, slog.Time(slog.TimeKey, time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)))
	require.Equal(t, "03:04:05.006", at.Value.String())
}

func TestMemoryLimitIsNoErrorOutsideOfContainers(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "1GiB") // leaves the test's own limit alone
	_, err := LimitMemory()
	require.NoError(t, err)
}
