package ops_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

// deal is a transaction of a test: what its producer wanted and was told.
type deal struct {
	name   string
	half   bool // it was told that the half message is stored
	at     message.Position
	offset int64
	want   int32 // commit or rollback
	told   bool  // it was told that it is decided
	late   bool  // it decides when the server was killed
}

// deals is transactions on their way.
type deals struct {
	mu       sync.Mutex // guards the following
	list     []*deal
	told     int
	goal     int
	reached  chan struct{}
	inFlight sync.WaitGroup
}

// next begins a transaction, decides it when its half message is stored, and begins another one when that is done.
func (d *deals) next(c *client) {
	d.mu.Lock()
	one := &deal{name: fmt.Sprintf("deal-%d", len(d.list)), want: message.FlagTransactionCommit}
	if len(d.list)%3 == 0 {
		one.want = message.FlagTransactionRollback
	}
	one.late = len(d.list)%5 == 0
	d.list = append(d.list, one)
	d.mu.Unlock()
	d.inFlight.Add(1)
	c.Go(halfCommand(one.name), func(a *protocol.Command, err error) {
		defer d.inFlight.Done()
		if err != nil || a.Code != protocol.RespSuccess {
			return
		}
		var r protocol.SendMessageResponse
		if r.Decode(&a.Ext) != nil {
			return
		}
		_, at, err := message.ParseOffsetID(string(r.MsgId))
		if err != nil {
			return
		}
		d.mu.Lock()
		one.half, one.at, one.offset = true, at, r.QueueOffset
		d.mu.Unlock()
		if one.late {
			d.next(c)
			return
		}
		d.inFlight.Add(1)
		c.Go(one.endCommand(), func(a *protocol.Command, err error) {
			defer d.inFlight.Done()
			if err != nil || a.Code != protocol.RespSuccess {
				return
			}
			d.mu.Lock()
			one.told = true
			if d.told++; d.told == d.goal {
				close(d.reached)
			}
			d.mu.Unlock()
			d.next(c)
		})
	})
}

// halfCommand is a half message for queue 0 of topic T.
func halfCommand(name string) *protocol.Command {
	c := sendCommand("T", 0, []byte(name))
	c.Ext = protocol.Ext{}
	h := protocol.SendMessageRequest{
		ProducerGroup: []byte("ops"), Topic: []byte("T"), DefaultTopic: []byte(message.TopicAutoCreate), DefaultTopicQueueNums: 1,
		SysFlag: message.FlagTransactionPrepared, Properties: &protocol.Field{Value: []byte("TRAN_MSG\x01true\x02PGROUP\x01ops\x02UNIQ_KEY\x01" + name + "\x02")},
	}
	h.EncodeShort(&c.Ext)
	return c
}

func (d *deal) endCommand() *protocol.Command {
	c := &protocol.Command{Code: protocol.ReqEndTransaction, Version: protocol.ServerVersion}
	h := protocol.EndTransactionRequest{
		ProducerGroup: "ops", TranStateTableOffset: d.offset, CommitLogOffset: int64(d.at), CommitOrRollback: d.want, FromTransactionCheck: true,
		MsgId: d.name, TransactionId: d.name,
	}
	h.Encode(&c.Ext)
	return c
}

// The server is killed again and again while producers send half messages and decide them. What they were told is so; what
// they were not told is decided or open, and each message is there once at the most.
func TestTransactionsSurviveKill(t *testing.T) {
	for _, durability := range []string{"sync", "async"} {
		t.Run(durability, func(t *testing.T) {
			dir := t.TempDir()
			more := []string{"--durability", durability, "--set", "checkpoint-bytes=1MiB", "--set", "segment-bytes=1MiB", "--set", "max-message-bytes=256KiB"}
			d := &deals{}
			for round := range 3 {
				s := start(t, dir, more...)
				c := s.dial()
				c.mustSend("T", 0, []byte("makes the topic"))
				d.mu.Lock()
				d.goal, d.reached = d.told+200<<round, make(chan struct{})
				d.mu.Unlock()
				for range 16 {
					d.next(c)
				}
				<-d.reached
				s.kill()
				d.inFlight.Wait()
			}
			s := start(t, dir, more...)
			c := s.dial()
			before := map[string]int{}
			for _, b := range c.read("T", 0) {
				before[b]++
			}
			for _, one := range d.list {
				if one.told {
					require.Equal(t, map[int32]int{message.FlagTransactionCommit: 1, message.FlagTransactionRollback: 0}[one.want], before[one.name], one.name)
				}
				require.LessOrEqual(t, before[one.name], 1)
			}
			open := s.metric("metaq_transactions_open")
			finished, late, wanted := 0, 0, map[string]int{}
			for _, one := range d.list {
				if !one.half {
					continue // nobody knows where it is
				}
				a := c.call(one.endCommand())
				require.EqualValues(t, protocol.RespSuccess, a.Code, "%s: %s", one.name, a.Remark) // for the first time, or again
				if one.late {
					late++
				}
				if finished++; one.want == message.FlagTransactionCommit {
					wanted[one.name] = 1
				}
			}
			require.GreaterOrEqual(t, int(open), late)
			after := map[string]int{}
			for _, b := range c.read("T", 0) {
				if strings.HasPrefix(b, "deal-") {
					after[b]++
				}
			}
			require.Equal(t, wanted, after)
			t.Logf("%d transactions, %d told, %d open after the kill, %d decided in the end", len(d.list), d.told, int(open), finished)
			s.stop()
		})
	}
}
