package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

// TestGolden holds what commands print against files.
func TestGolden(t *testing.T) {
	s := startScript(t)
	key := regexp.MustCompile(`[0-9A-F]{32}`)
	for _, args := range []string{
		"topic list", "topic list --all", "topic list --output json", "topic show orders", "topic show orders --output json", "topic stats orders",
		"topic stats orders --output json", "group list", "group list --all", "group show billing", "group show billing --output json", "group members billing",
		"group members billing --output json", "group members nobody", "group progress billing", "group progress billing --output json",
		"offset show --group billing --topic orders", "offset show --group billing --topic orders --output json",
		"offset reset --group billing --topic orders --to earliest --dry-run", "offset reset --group billing --topic orders --to 1 --queue 1 --yes",
		"message send --topic orders --body hello --tag new --key k1 --property a=b", "message send --topic orders --body hello --output json",
		"message send --topic orders --body x --count 3 --batch 2", "message send --topic orders --body x --count 10 --quiet",
		"message get --topic orders", "message get --topic orders --from earliest --count 1 --output json", "message get --topic orders --key k1",
		"message get 7F00000100002A9F0000000000001000", "message get 7F00000100002A9F0000000000001000 --raw",
		"message tail --topic orders --queue 0 --from earliest --count 2", "message tail --topic orders --queue 0 --from earliest --count 1 --output json",
		"cluster show", "cluster show --output json", "cluster config", "cluster config a=1 b=2", "cluster config --broker other",
		"topic create news --queues 4", "topic update orders --perm r", "topic delete orders --yes", "group create audit --orderly",
		"group update billing --retry-max 2", "group delete billing --yes",
		"topic show nowhere", "topic create orders", "group show nobody", "group create billing", "message get --topic orders --key unknown",
		"message send --topic nowhere --body x", "offset reset --group billing --topic orders --to 99 --yes",
	} {
		t.Run(args, func(t *testing.T) {
			words := strings.Fields(args)
			code, stdout, stderr := metaq(append(words, "--server", s.addr)...)
			text := s.unstable(stdout)
			if strings.Contains(args, "send") {
				text = key.ReplaceAllString(text, strings.Repeat("K", 32))
			}
			if stderr != "" {
				text += "-- stderr --\n" + s.unstable(stderr)
			}
			if code != exitDone {
				text += "-- exit code " + string(rune('0'+code)) + " --\n"
			}
			golden(t, strings.NewReplacer(" ", "_", "--", "", "/", "_").Replace(args), text)
		})
	}
}

func TestWrongUsage(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string]string{
		"topic": "", "topic lst": "did you mean list", "topic show": "accepts 1 arg", "topic create a/b": "has a character other than",
		"topic create a --queues 0": "at least one queue", "topic create a --perm x": "it is rw, r, w or -",
		"topic create a --attribute x": "NAME=VALUE", "topic delete a": "add --yes", "topic list --output xml": "table or json",
		"group create a/b": "has a character other than", "group update a --consume-timeout 0": "--consume-timeout", "group delete a": "add --yes",
		"offset show": "--group and --topic are needed", "offset reset -g a -t b": "--to is needed", "offset reset -g a -t b --to x": "it is earliest, latest",
		"offset reset -g a -t b --to latest": "add --yes", "message send": "--topic is needed", "message send -t a -b x -f y": "exclude each other",
		"message send -t a -b x --count 0": "--count must be", "message send -t a -b x --batch 0": "--batch must be", "message send -t a/b -b x": "has a character other than",
		"message send -t a -b x -p y": "NAME=VALUE", "message get": "an id or --topic", "message get -t a --count 0": "--count must be",
		"message get -t a --from x": "place", "message tail": "--topic is needed", "message tail -t a --from x": "place",
		"bench produce --header xml": "json or binary", "bench produce --size 1": "a body has", "bench produce --connections -1": "connections must be",
		"bench consume --pull -1": "a pull asks for", "bench consume --from x": "place", "bench e2e --rate -1": "must not be negative",
		"bench suite --duration -1s": "must be positive", "bench suite --durability x": "sync or async", "bench suite --header x": "json or binary",
		"cluster config x": "NAME=VALUE", "log verify": "accepts 1 arg", "log show " + dir + " --from -1": "must not be negative",
	} {
		code, stdout, stderr := metaq(strings.Fields(args)...)
		if want == "" {
			require.Equal(t, exitDone, code, args)
			continue
		}
		require.Equal(t, exitUsage, code, args)
		require.Empty(t, stdout, args)
		require.Contains(t, stderr, want, args)
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	code, stdout, stderr := metaq("topic", "list", "--server", "127.0.0.1:1")
	require.Equal(t, exitFailed, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "is a server running there?")
	t.Setenv(serverVariable, "127.0.0.1:2")
	_, _, stderr = metaq("topic", "list")
	require.Contains(t, stderr, "127.0.0.1:2")
}

func TestServerThatRefuses(t *testing.T) {
	s := startScript(t)
	s.answers[protocol.ReqSendMessageV2] = refusal(protocol.RespSystemBusy, "disk-stop-use reached")
	code, stdout, stderr := metaq("message", "send", "--topic", "orders", "--body", "x", "--server", s.addr)
	require.Equal(t, exitFailed, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "SYSTEM_BUSY (2): disk-stop-use reached")

	s.answers[protocol.ReqPullMessage] = refusal(protocol.RespNoPermission, "no")
	code, _, stderr = metaq("message", "tail", "--topic", "orders", "--server", s.addr)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "NO_PERMISSION (16)")
}

func TestSendReadsFilesAndLines(t *testing.T) {
	s := startScript(t)
	var bodies []string
	s.answers[protocol.ReqSendMessageV2] = func(c, reply *protocol.Command) {
		bodies = append(bodies, string(c.Body))
		sent(c, reply)
	}
	path := filepath.Join(t.TempDir(), "body")
	require.NoError(t, os.WriteFile(path, []byte("two\nlines\n"), 0o600))
	code, _, stderr := metaq("message", "send", "--topic", "orders", "--file", path, "--server", s.addr)
	require.Equal(t, exitDone, code, stderr)

	var out, errs bytes.Buffer
	root := newRoot(&out, &errs)
	root.SetIn(strings.NewReader("a\n\nb\r\nc"))
	root.SetArgs([]string{"message", "send", "--topic", "orders", "--count", "2", "--queue", "1", "--server", s.addr})
	require.NoError(t, root.Execute())
	require.Equal(t, []string{"two\nlines\n", "a", "a", "b", "b", "c", "c"}, bodies)
	require.Equal(t, 6, strings.Count(out.String(), "broker-a      1"))
	code, _, stderr = metaq("message", "send", "--topic", "orders", "--file", path+"x", "--server", s.addr)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "no such file")
}

func TestParsePlace(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	ms := func(t time.Time) int64 { return t.UnixMilli() }
	for text, want := range map[string]int64{
		"2026-11-30T11:00:00Z": ms(now.Add(-time.Hour)), "2026-11-30 11:00": ms(now.Add(-time.Hour)), "2026-11-30T11:00:00.5": ms(now.Add(-time.Hour)) + 500,
		"2026-11-29": ms(now.Add(-36 * time.Hour)), "90m": ms(now.Add(-90 * time.Minute)), "2d": ms(now.Add(-48 * time.Hour)), "1796082327709": 1796082327709,
	} {
		got, err := parseMoment(text, now)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		_, err = parsePlace(text, now)
		require.NoError(t, err, text)
	}
	for _, text := range []string{"", "x", "-5", "-5m", "2026-13-01", "5x"} {
		_, err := parsePlace(text, now)
		require.Error(t, err, text)
	}
}

func TestEveryLeafHasAnExampleWithItsName(t *testing.T) {
	for _, cmd := range newRoot(nil, nil).Commands() {
		walk(cmd, func(c *cobra.Command) {
			if c.HasSubCommands() || !slices.Contains([]string{"topic", "group", "message", "offset", "txn", "cluster", "bench", "log"}, c.Parent().Name()) {
				return
			}
			require.Contains(t, c.Example, c.CommandPath(), c.CommandPath())
			data := !slices.Contains([]string{"create", "update", "delete", "commit", "rollback", "resume"}, c.Name())
			require.Equal(t, data, c.Flags().Lookup("output") != nil, "%s has --output if it prints data", c.CommandPath())
		})
	}
}

func TestSmallTexts(t *testing.T) {
	for ordinal, want := range map[int32]string{513: "5.5.0", 479: "5.3.3", 399: "4.9.3", 253: "4.2.0", 232: "4.1.0-SNAPSHOT", 37: "37"} {
		require.Equal(t, want, clientVersion(ordinal))
	}
	for us, want := range map[float64]string{1: "1 µs", 999.4: "999 µs", 1500: "1.50 ms", 12345: "12.3 ms", 2.5e6: "2.50 s"} {
		require.Equal(t, want, micros(us))
	}
	for n, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1234567.8: "1,234,568", -1000: "-1,000"} {
		require.Equal(t, want, thousands(n))
	}
	require.Equal(t, "["+strings.Repeat("█", 15)+strings.Repeat("░", 15)+"]", bar(0.5))
	for perm, want := range map[int32]string{0: "-", 2: "w", 4: "r", 6: "rw", 7: "rw"} {
		require.Equal(t, want, permText(perm))
		got, err := parsePerm(want)
		require.NoError(t, err)
		require.Equal(t, perm&6, got)
	}
	require.Equal(t, `/a\[b\]/\*`, strings.ReplaceAll(escapePattern(`/a[b]/*`), "]", `\]`))
}
