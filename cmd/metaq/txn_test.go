package main

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/admin"
	"github.com/metaqio/metaq/internal/daemon"
)

const sendHalf = "message send --topic orders --queue 0 --property TRAN_MSG=true --property PGROUP=payments --body "

// transactions are those that are open, by the key of their messages.
func (l *live) transactions() map[string]admin.Transaction {
	l.t.Helper()
	var list []admin.Transaction
	l.json("txn list", &list)
	by := map[string]admin.Transaction{}
	for _, t := range list {
		by[t.Keys] = t
	}
	return by
}

func TestTransactionCommands(t *testing.T) {
	l := startLive(t)
	l.ok("topic create orders --queues 2")
	require.Empty(t, l.transactions())
	for _, key := range []string{"one", "two", "three"} {
		l.ok(sendHalf + "x-" + key + " --key " + key)
	}
	open := l.transactions()
	require.Len(t, open, 3)
	one, two := open["one"], open["two"]
	require.Equal(t, "broker-a orders 0 payments 0 0", strings.Join([]string{
		one.Broker, one.Topic, strconv.Itoa(int(one.Queue)), one.Group, strconv.Itoa(int(one.Checks)), strconv.Itoa(one.Online),
	}, " "))
	table := l.ok("txn list --group payments --limit 2")
	require.Contains(t, table, "NEXT CHECK")
	require.Contains(t, table, "two")
	require.NotContains(t, table, "three")
	require.Empty(t, l.ok("txn list --group others"))

	at := strconv.FormatInt(one.Position, 10)
	require.Contains(t, l.ok("txn show "+at+" --broker broker-a"), "x-one")
	var shown struct {
		Group   string
		Message struct{ Body, Topic string }
	}
	l.json("txn show "+at, &shown)
	require.Equal(t, "payments", shown.Group)
	require.Equal(t, "x-one", shown.Message.Body)

	l.ok("txn commit " + at + " --yes")
	l.ok("txn rollback " + strconv.FormatInt(two.Position, 10) + " --yes")
	require.Len(t, l.transactions(), 1)
	require.Equal(t, "x-one", l.ok("message get --topic orders --raw --count 1 --from earliest")[:5])
	for _, line := range []string{"txn commit " + at + " --yes", "txn show 12345", "txn show " + at + " --broker other"} {
		code, _, stderr := metaq(append(strings.Fields(line), "--server", l.server)...)
		require.Equal(t, exitFailed, code, line)
		require.Contains(t, stderr, "does not exist", line)
	}
	for _, line := range []string{"txn commit x --yes", "txn show -1", "txn list --limit 0", "txn commit 5"} {
		code, _, stderr := metaq(append(strings.Fields(line), "--server", l.server)...)
		require.Equal(t, exitUsage, code, "%s: %s", line, stderr)
	}
}

func TestResumeCommand(t *testing.T) {
	l := startLive(t, func(s *daemon.Settings) { s.RetentionTime = time.Millisecond })
	l.ok("topic create orders --queues 1")
	l.ok(sendHalf + "late --key late")
	var stale []struct {
		OffsetID string `json:"offset_id"`
		Body     string
	}
	require.Eventually(t, func() bool {
		l.json("message get --topic TRANS_CHECK_MAX_TIME_TOPIC", &stale)
		return len(stale) == 1
	}, 20*time.Second, 10*time.Millisecond)
	require.Equal(t, "late", stale[0].Body)
	resume := "txn resume " + stale[0].OffsetID
	l.ok(resume)
	code, _, stderr := metaq(append(strings.Fields(resume), "--server", l.server)...)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "was resumed at")
	code, _, stderr = metaq("txn", "resume", "x", "--server", l.server)
	require.Equal(t, exitFailed, code, stderr)
}
