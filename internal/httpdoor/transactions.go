package httpdoor

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/message"
)

const (
	transactionsPath = "/transactions"
	usualLimit       = 100 // of what is listed
)

// transactionList is the answer of /transactions. Times are ms since 1970.
type transactionList struct {
	Shard        string        `json:"shard"`
	Open         int           `json:"open"` // so many are there, of all groups
	Transactions []transaction `json:"transactions"`
	Next         int64         `json:"next,omitempty"` // the next ones come with after=this
}

type transaction struct {
	Position    int64  `json:"position"` // of the half message
	QueueOffset int64  `json:"queue_offset"`
	Size        int32  `json:"size"`
	Group       string `json:"group"`  // of producers
	Online      int    `json:"online"` // producers of it that are connected
	Checks      int32  `json:"checks"` // so often one of them was asked
	NextCheck   int64  `json:"next_check"`
	Stored      int64  `json:"stored"`
	Immunity    *int64 `json:"immunity_ms,omitempty"` // that the message names
	Topic       string `json:"topic,omitempty"`       // the message is for
	Queue       int32  `json:"queue"`
	ID          string `json:"id,omitempty"` // unique key
	Keys        string `json:"keys,omitempty"`
	Born        int64  `json:"born,omitempty"`
	Problem     string `json:"problem,omitempty"` // why the half message cannot be read
}

// transactions lists what nobody has decided yet, the oldest first.
func (d *Door) transactions(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	after, err := number(q.Get("after"), -1, 1<<62, -1)
	if err != nil {
		fail(w, http.StatusBadRequest, "bad-request", "after: "+err.Error())
		return
	}
	limit, err := number(q.Get("limit"), 1, broker.MaxTransactions, usualLimit)
	if err != nil {
		fail(w, http.StatusBadRequest, "bad-request", "limit: "+err.Error())
		return
	}
	found := d.opts.Broker.Transactions(message.Position(after), q.Get("group"), int(limit))
	list := transactionList{Shard: d.opts.Broker.Config().Name, Open: found.Open, Transactions: []transaction{}, Next: int64(found.Next)}
	for i := range found.Transactions {
		list.Transactions = append(list.Transactions, shownTransaction(&found.Transactions[i]))
	}
	writeJSON(w, http.StatusOK, list)
}

func shownTransaction(t *broker.Transaction) transaction {
	s := transaction{
		Position: int64(t.Position), QueueOffset: int64(t.Offset), Size: t.Size, Group: t.Group, Online: t.Online, Checks: t.Checks,
		NextCheck: t.NextCheck, Stored: t.Stored, Topic: t.Topic, Queue: t.QueueID, ID: t.Key, Keys: t.Keys, Born: t.Born, Problem: t.Problem,
	}
	if t.Immunity >= 0 { // else it names none
		s.Immunity = &t.Immunity
	}
	return s
}

// number reads a parameter.
func number(text string, least, most, usual int64) (int64, error) {
	if text == "" {
		return usual, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%.40q is not a number from %d to %d", text, least, most)
	}
	return n, nil
}
