package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

// Transaction is a half message that nobody has decided yet. Times are ms since 1970.
type Transaction struct {
	Broker      string `json:"broker"`
	Position    int64  `json:"position"` // of the half message, in the broker's log
	QueueOffset int64  `json:"queue_offset"`
	Size        int32  `json:"size"`
	Group       string `json:"group"`  // of producers
	Online      int    `json:"online"` // producers of it that are connected
	Checks      int32  `json:"checks"` // so often one of them was asked
	NextCheck   int64  `json:"next_check"`
	Stored      int64  `json:"stored"`
	Immunity    *int64 `json:"immunity_ms,omitempty"` // that the message names
	Topic       string `json:"topic,omitempty"`
	Queue       int32  `json:"queue"`
	ID          string `json:"id,omitempty"` // unique key
	Keys        string `json:"keys,omitempty"`
	Born        int64  `json:"born,omitempty"`
	Problem     string `json:"problem,omitempty"` // why the half message cannot be read

	addr string
}

// transactionPage is what a server answers.
type transactionPage struct {
	Open         int           `json:"open"`
	Transactions []Transaction `json:"transactions"`
	Next         int64         `json:"next"`
}

// pageSize is how many transactions are asked for at a time.
const pageSize = 500

// Transactions lists up to limit open transactions of each broker, the oldest first; of one group of producers, unless its
// name is empty. open is how many there are of all groups. It needs servers of ours: the classic protocol has no word for it.
func (c *Client) Transactions(ctx context.Context, group string, limit int) (list []Transaction, open int, err error) {
	brokers, err := c.Brokers(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, b := range brokers {
		n, left := int64(-1), limit
		for pages := 0; left > 0 && (n != 0 || pages == 0); pages++ {
			p, err := c.transactionPage(ctx, b, group, n, min(left, pageSize))
			if err != nil {
				return nil, 0, err
			}
			if pages == 0 {
				open += p.Open
			}
			list = append(list, p.Transactions...)
			left -= len(p.Transactions)
			n = p.Next
		}
	}
	return list, open, nil
}

// transactionPage asks a broker by HTTP, which is served on the same port.
func (c *Client) transactionPage(ctx context.Context, b Broker, group string, after int64, limit int) (p transactionPage, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	query := url.Values{"after": {strconv.FormatInt(after, 10)}, "limit": {strconv.Itoa(limit)}}
	if group != "" {
		query.Set("group", group)
	}
	where := "http://" + b.Addr + "/transactions?" + query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return p, fmt.Errorf("ask %s for transactions: %w", b.Addr, err)
	}
	r.Close = true
	client := http.Client{Transport: &http.Transport{}} // no proxy: the address is that of a broker
	answer, err := client.Do(r)
	if err != nil {
		return p, fmt.Errorf("ask %s for transactions, which only servers of ours list: %w", b.Addr, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxFrame))
	if err != nil {
		return p, fmt.Errorf("read transactions of %s: %w", b.Addr, err)
	}
	if answer.StatusCode != http.StatusOK {
		var problem struct{ Message string }
		_ = json.Unmarshal(body, &problem) // what is no JSON says nothing
		return p, fmt.Errorf("%s does not list transactions: %s", b.Addr, cmp.Or(problem.Message, answer.Status))
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return p, fmt.Errorf("read transactions of %s: %w", b.Addr, err)
	}
	for i := range p.Transactions {
		p.Transactions[i].Broker, p.Transactions[i].addr = b.Name, b.Addr
	}
	return p, nil
}

// Transaction finds an open transaction by the position of its half message. broker may be empty where there is but one.
// Errors: ErrNotThere.
func (c *Client) Transaction(ctx context.Context, broker string, position int64) (Transaction, error) {
	brokers, err := c.brokersNamed(ctx, broker)
	if err != nil {
		return Transaction{}, err
	}
	if len(brokers) > 1 {
		return Transaction{}, fmt.Errorf("there are %d brokers: name the one that has the transaction", len(brokers))
	}
	p, err := c.transactionPage(ctx, brokers[0], "", position-1, 1)
	if err != nil {
		return Transaction{}, err
	}
	if len(p.Transactions) == 0 || p.Transactions[0].Position != position {
		return Transaction{}, fmt.Errorf("an open transaction at position %d of %s %w", position, brokers[0].Name, ErrNotThere)
	}
	return p.Transactions[0], nil
}

// HalfMessage reads the half message of a transaction.
func (c *Client) HalfMessage(ctx context.Context, t Transaction) (Message, error) {
	return c.at(ctx, Broker{Name: t.Broker, Addr: t.addr}, message.TopicHalf, message.Position(t.Position))
}

// EndTransaction commits a transaction, or rolls it back, in place of its producer.
func (c *Client) EndTransaction(ctx context.Context, t Transaction, commit bool) error {
	h := &protocol.EndTransactionRequest{
		Topic: t.Topic, ProducerGroup: t.Group, TranStateTableOffset: t.QueueOffset, CommitLogOffset: t.Position,
		CommitOrRollback: message.FlagTransactionRollback, FromTransactionCheck: true, MsgId: t.ID, TransactionId: t.ID, Bname: t.Broker,
	}
	if commit {
		h.CommitOrRollback = message.FlagTransactionCommit
	}
	_, err := c.call(ctx, t.addr, protocol.ReqEndTransaction, h, nil)
	return err
}

// ResumeTransaction has the producer asked again about a message that was given up: id is its offset id in the topic of
// stale transactions.
func (c *Client) ResumeTransaction(ctx context.Context, id string) error {
	brokers, err := c.Brokers(ctx)
	if err != nil {
		return err
	}
	host, _, err := message.ParseOffsetID(id)
	if err != nil {
		return fmt.Errorf("offset id: %w", err)
	}
	b, ok := holder(brokers, host)
	if !ok {
		return fmt.Errorf("%s is no offset id of a broker here", id)
	}
	_, err = c.call(ctx, b.Addr, protocol.ReqResumeCheckHalfMessage, &protocol.ResumeCheckHalfMessageRequest{Topic: message.TopicTransactionStale, MsgId: id}, nil)
	return err
}
