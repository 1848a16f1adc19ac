package bench

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/message"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const fakeTopic = "bench-topic"

// fake is a broker in memory with the faults that a test asks for.
type fake struct {
	mu      sync.Mutex
	queues  map[int32][][]byte // stored records
	waiting map[int32][]fakePull
	sends   int
	// fault is asked for each send, which it numbers from 0.
	fault func(n int) fault
}

type fault byte

const (
	noFault fault = iota
	refuse        // answered with SYSTEM_BUSY, not stored
	ignore        // neither stored nor answered
	lose          // answered, not stored
	double        // stored twice
	damage        // stored with another body
)

type fakePull struct {
	s   *remoting.Session
	cmd *protocol.Command
	h   protocol.PullMessageRequest
}

// serveFake starts a fake and gives a target with that many queues.
func serveFake(t testing.TB, queues int32, f *fake) Target {
	t.Helper()
	f.queues, f.waiting = map[int32][][]byte{}, map[int32][]fakePull{}
	return serve(t, queues, func(remoting.Driver) remoting.Worker { return &fakeWorker{f} })
}

func serve(t testing.TB, queues int32, newWorker func(remoting.Driver) remoting.Worker) Target {
	t.Helper()
	srv, err := remoting.New(remoting.Options{NewWorker: newWorker})
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv.Listen("broker", ln)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	b := Broker{Name: "broker-a", Addr: ln.Addr().String()}
	for q := range queues {
		b.Queues = append(b.Queues, q)
	}
	return Target{Topic: fakeTopic, Brokers: []Broker{b}}
}

type fakeWorker struct{ *fake }

func (fakeWorker) Begin()                   {}
func (fakeWorker) Flush()                   {}
func (fakeWorker) Closed(*remoting.Session) {}

func (w fakeWorker) Serve(s *remoting.Session, c *protocol.Command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch c.Code {
	case protocol.ReqSendMessageV2, protocol.ReqSendBatchMessage:
		w.send(s, c)
	case protocol.ReqPullMessage:
		p := fakePull{s: s, cmd: c.Reply(0, "")}
		if err := p.h.Decode(&c.Ext); err != nil {
			s.Out = c.Reply(protocol.RespSystemError, err.Error()).Append(s.Out)
			return
		}
		p.h.Topic, p.h.ConsumerGroup, p.h.Subscription = nil, nil, nil // they alias the frame
		if !w.answer(p, true) {
			w.waiting[p.h.QueueId] = append(w.waiting[p.h.QueueId], p)
		}
	default:
		s.Out = c.Reply(protocol.RespRequestCodeNotSupported, "what?").Append(s.Out)
	}
}

func (w fakeWorker) send(s *remoting.Session, c *protocol.Command) {
	var h protocol.SendMessageRequest
	if err := h.Decode(&c.Ext); err != nil {
		s.Out = c.Reply(protocol.RespSystemError, err.Error()).Append(s.Out)
		return
	}
	what := noFault
	if w.fault != nil {
		what = w.fault(w.sends)
	}
	w.sends++
	switch what {
	case ignore:
		return
	case refuse:
		s.Out = c.Reply(protocol.RespSystemBusy, "too fast").Append(s.Out)
		return
	}
	at := len(w.queues[h.QueueId])
	if what != lose {
		w.store(&h, c, what)
	}
	reply := c.Reply(protocol.RespSuccess, "")
	r := protocol.SendMessageResponse{MsgId: []byte("0A00000100002A9F0000000000001000"), QueueId: h.QueueId, QueueOffset: int64(at)}
	r.Encode(&reply.Ext)
	s.Out = reply.Append(s.Out)
	waiting := w.waiting[h.QueueId]
	w.waiting[h.QueueId] = nil
	for _, p := range waiting {
		if !w.answer(p, p.s == s) {
			w.waiting[h.QueueId] = append(w.waiting[h.QueueId], p)
		}
	}
}

func (w fakeWorker) store(h *protocol.SendMessageRequest, c *protocol.Command, what fault) {
	put := func(body []byte) {
		r := message.Record{
			Topic: h.Topic, Body: body, QueueID: h.QueueId, BornTime: h.BornTimestamp, StoreTime: h.BornTimestamp,
			QueueOffset: message.QueueOffset(len(w.queues[h.QueueId])), BornHost: netip.MustParseAddrPort("127.0.0.1:1"),
		}
		w.queues[h.QueueId] = append(w.queues[h.QueueId], message.AppendRecord(nil, &r))
	}
	body := c.Body
	if what == damage {
		body = append([]byte(nil), body...)
		body[0]++
	}
	if !h.Batch {
		put(body)
		if what == double {
			put(body)
		}
		return
	}
	batch := message.NewBatchReader(body)
	for {
		_, b, props, ok := batch.Next()
		if !ok {
			return
		}
		if key, _ := message.Property(props, message.PropertyUniqueKey); len(key) != keySize {
			panic("no unique key in a member")
		}
		put(b)
	}
}

// answer answers a pull if there is something, on the session's driver or from elsewhere.
func (w fakeWorker) answer(p fakePull, here bool) bool {
	q := w.queues[p.h.QueueId]
	from := int(p.h.QueueOffset)
	to := min(len(q), from+int(p.h.MaxMsgNums))
	if from >= to {
		return false
	}
	r := protocol.PullMessageResponse{NextBeginOffset: int64(to), MaxOffset: int64(len(q))}
	r.Encode(&p.cmd.Ext)
	for _, rec := range q[from:to] {
		p.cmd.Body = append(p.cmd.Body, rec...)
	}
	if here {
		p.s.Out = p.cmd.Append(p.s.Out)
		p.s.Touched()
	} else {
		p.s.Post(p.cmd.Append(nil))
	}
	return true
}
