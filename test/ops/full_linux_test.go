package ops_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/metaqio/metaq/internal/protocol"
)

// smallDisk mounts a file system of its own.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		missing(t, fmt.Sprintf("the right to mount a small disk, which root has: %v", err))
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

const fullBody = 32 << 10

func fullMessage(i int) []byte {
	return append(fmt.Appendf(nil, "%d ", i), bytes.Repeat([]byte{'f'}, fullBody)...)
}

// fill sends until a send is refused, and returns how many were accepted.
func fill(t *testing.T, c *client, from int) (to int) {
	t.Helper()
	for i := from; ; i++ {
		require.Less(t, i, 10_000)
		a := c.send("T", 0, fullMessage(i))
		if a.Code != protocol.RespSuccess {
			require.EqualValues(t, protocol.RespServiceNotAvailable, a.Code, a.Remark)
			require.Contains(t, a.Remark, "disk")
			require.Contains(t, a.Remark, "disk-stop-use")
			return i
		}
	}
}

// resumed sends message i until it is accepted.
func resumed(t *testing.T, c *client, i int) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(limit)
	for {
		a := c.send("T", 0, fullMessage(i))
		if a.Code == protocol.RespSuccess {
			return
		}
		require.EqualValues(t, protocol.RespServiceNotAvailable, a.Code, a.Remark)
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("sends did not resume: %s", a.Remark)
		}
	}
}

func checkFull(t *testing.T, bodies []string, want int) {
	t.Helper()
	require.Len(t, bodies, want)
	for i, b := range bodies {
		require.True(t, strings.HasPrefix(b, fmt.Sprint(i, " ")), "message %d is %.10q", i, b)
	}
}

// occupy takes all that is left of a disk.
func occupy(t *testing.T, disk string) (path string) {
	t.Helper()
	path = filepath.Join(disk, "full")
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	for range 1 << 20 {
		if _, err = f.Write(make([]byte, 4096)); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, unix.ENOSPC)
	return path
}

var fullSettings = []string{
	"--set", "segment-bytes=4MiB", "--set", "max-message-bytes=256KiB", "--set", "checkpoint-bytes=1MiB", "--set", "disk-max-use=100", "--set", "disk-stop-use=100",
}

func TestFullDisk(t *testing.T) {
	for _, durability := range []string{"sync", "async"} {
		t.Run(durability, func(t *testing.T) {
			disk := smallDisk(t, "64m")
			ballast := filepath.Join(disk, "ballast")
			require.NoError(t, os.WriteFile(ballast, make([]byte, 24<<20), 0o600))
			s := start(t, disk, append(fullSettings, "--durability", durability)...)
			c := s.dial()
			n := fill(t, c, 0)
			require.Greater(t, n, 100)
			full := occupy(t, disk) // another program takes the rest
			require.Equal(t, n, fill(t, c, n), "it stays so")

			status, body := s.get("broker", "/readyz")
			require.Equal(t, http.StatusServiceUnavailable, status)
			require.Contains(t, body, "disk")
			status, _ = s.get("broker", "/healthz")
			require.Equal(t, http.StatusOK, status)
			require.Positive(t, s.metric("metaq_refused_sends_total"))
			checkFull(t, c.read("T", 0), n)

			require.NoError(t, os.Remove(ballast))
			require.NoError(t, os.Remove(full))
			resumed(t, c, n)
			status, _ = s.get("broker", "/readyz")
			require.Equal(t, http.StatusOK, status)
			m := fill(t, c, n+1)
			require.Greater(t, m, n+100)
			checkFull(t, c.read("T", 0), m)

			full = occupy(t, disk)
			s.stop() // also on a full disk
			require.NoError(t, os.Remove(full))
			s = start(t, disk, append(fullSettings, "--durability", durability)...)
			checkFull(t, s.dial().read("T", 0), m)
			s.stop()
		})
	}
}

func TestDiskFullerThanAllowed(t *testing.T) {
	disk := smallDisk(t, "64m")
	ballast := filepath.Join(disk, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 40<<20), 0o600))
	s := start(t, disk, "--set", "segment-bytes=4MiB", "--set", "max-message-bytes=256KiB", "--set", "disk-max-use=100", "--set", "disk-stop-use=60")
	c := s.dial()
	a := c.send("T", 0, fullMessage(0))
	for tick := time.NewTicker(20 * time.Millisecond); a.Code == protocol.RespSuccess; a = c.send("T", 0, fullMessage(0)) {
		<-tick.C // it looks at the disk after its start
	}
	require.EqualValues(t, protocol.RespServiceNotAvailable, a.Code)
	require.Contains(t, a.Remark, "disk-stop-use")
	status, body := s.get("http", "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "disk-stop-use")
	require.NoError(t, os.Remove(ballast))
	resumed(t, c, 0)
	s.stop()
}

func TestRetentionMakesRoomOnAFullDisk(t *testing.T) {
	disk := smallDisk(t, "48m")
	s := start(t, disk, "--set", "segment-bytes=4MiB", "--set", "max-message-bytes=256KiB", "--set", "checkpoint-bytes=1MiB", "--set", "disk-max-use=60", "--set", "disk-stop-use=100")
	c := s.dial()
	n := fill(t, c, 0)
	resumed(t, c, n)
	s.stop()
}
