package httpdoor

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/message"
)

func sendHalf(t *testing.T, b *broker.Broker, group, key string, more ...string) message.Position {
	t.Helper()
	var props []byte
	for i, p := 0, append([]string{"TRAN_MSG", "true", "PGROUP", group, "UNIQ_KEY", key, "KEYS", "k1 k2"}, more...); i < len(p); i += 2 {
		props = message.AppendProperty(props, p[i], p[i+1])
	}
	host := netip.MustParseAddrPort("10.0.0.1:5000")
	sent, batch, err := b.ColdSend(t.Context(), &broker.SendRequest{
		Topic: []byte("T"), QueueID: 1, BornTime: 1700000000000, BornHost: host, StoreHost: host, MaxReconsume: -1, Properties: props, Body: []byte("x"),
	})
	require.NoError(t, err)
	return batch.Position(sent.First)
}

func TestOpenTransactionsAreListed(t *testing.T) {
	b := openBroker(t, vfs.NewMem())
	defer b.Close()
	require.NoError(t, b.PutTopic(t.Context(), entry.Topic{Name: "T", ReadQueues: 2, WriteQueues: 2, Perm: 6}, "test"))
	d := newDoor(b, Config{})
	list := func(query string) (l transactionList) {
		t.Helper()
		w := ask(d, http.MethodGet, "/transactions"+query)
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &l))
		return l
	}
	require.JSONEq(t, `{"shard":"broker-a","open":0,"transactions":[]}`, ask(d, http.MethodGet, "/transactions").Body.String())

	before := time.Now().UnixMilli()
	at := []message.Position{sendHalf(t, b, "P", "A"), sendHalf(t, b, "Q", "B", "CHECK_IMMUNITY_TIME_IN_SECONDS", "600"), sendHalf(t, b, "P", "C")}
	l := list("")
	require.Equal(t, 3, l.Open)
	require.Zero(t, l.Next)
	require.Len(t, l.Transactions, 3)
	one := l.Transactions[1]
	require.GreaterOrEqual(t, one.Stored, before)
	immunity := int64(600_000)
	require.Equal(t, transaction{
		Position: int64(at[1]), QueueOffset: 1, Size: one.Size, Group: "Q", NextCheck: one.Stored + immunity, Stored: one.Stored, Immunity: &immunity,
		Topic: "T", Queue: 1, ID: "B", Keys: "k1 k2", Born: 1700000000000,
	}, one)
	require.Equal(t, l.Transactions[0].Stored+6000, l.Transactions[0].NextCheck)

	l = list("?limit=2")
	require.Len(t, l.Transactions, 2)
	l = list(fmt.Sprint("?limit=2&after=", l.Next))
	require.Len(t, l.Transactions, 1)
	require.Zero(t, l.Next)
	l = list("?group=P")
	require.Equal(t, 3, l.Open)
	require.Equal(t, []string{"A", "C"}, []string{l.Transactions[0].ID, l.Transactions[1].ID})

	require.NoError(t, b.EndTransaction(t.Context(), &broker.EndRequest{Half: at[0], Offset: 0, Group: "P", Decision: entry.Commit}))
	require.Equal(t, 2, list("").Open)
	page := ask(d, http.MethodGet, "/metrics").Body.String()
	for _, line := range []string{
		`metaq_transactions_open{shard="broker-a"} 2`, `metaq_transactions_ended_total{outcome="committed",shard="broker-a"} 1`,
		`metaq_transaction_checks_total{shard="broker-a"} 0`, "metaq_transaction_oldest_age_seconds",
	} {
		require.Contains(t, page, line)
	}
	for _, query := range []string{"?limit=0", "?limit=1001", "?limit=x", "?after=-2", "?after=1e3"} {
		w := ask(d, http.MethodGet, "/transactions"+query)
		require.Equal(t, http.StatusBadRequest, w.Code, query)
		require.Equal(t, "bad-request", errorOf(t, w).Error)
	}
}
