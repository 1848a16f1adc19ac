package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
)

// starts begin at offset 0 of each queue and end at the given one (or never, -1).
func starts(t Target, to func(queue int32) int64) (all [][]Start) {
	for _, b := range t.Brokers {
		var of []Start
		for _, q := range b.Queues {
			of = append(of, Start{To: to(q), Whole: true})
		}
		all = append(all, of)
	}
	return all
}

func (f *fake) ends(queue int32) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.queues[queue]))
}

func never(int32) int64 { return -1 }

func TestProduceAndConsume(t *testing.T) {
	for _, c := range []struct {
		connections, inFlight, batch, size int
		encoding                           protocol.Encoding
	}{
		{1, 1, 1, 100, protocol.JSON},
		{3, 16, 1, MinSize, protocol.Binary},
		{2, 4, 7, 1000, protocol.JSON},
		{2, 64, 32, 37, protocol.Binary},
		{1, 500, 1, 3000, protocol.JSON},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			f := &fake{}
			target := serveFake(t, 3, f)
			r, err := Produce(t.Context(), ProduceOptions{
				Target: target, Connections: c.connections, InFlight: c.inFlight, Batch: c.batch, Size: c.size, Encoding: c.encoding, Count: 1000,
			})
			require.NoError(t, err)
			require.False(t, r.Failed(), "%+v", r)
			require.GreaterOrEqual(t, r.Total, int64(1000))
			require.Less(t, r.Total, int64(1000+c.connections*c.batch))
			require.Equal(t, r.Acked, r.Latency.Count)
			require.Positive(t, r.Rate)
			require.Equal(t, 3, r.Queues)

			got, err := Consume(t.Context(), ConsumeOptions{
				Target: target, Starts: starts(target, f.ends), Connections: c.connections, Encoding: c.encoding, Batch: 10,
			})
			require.NoError(t, err)
			require.False(t, got.Failed(), "%+v", got)
			require.Equal(t, r.Total, got.Total)
			require.Equal(t, got.Total, got.Received)
			require.Zero(t, got.Foreign)
			require.Zero(t, got.Reordered)
			require.LessOrEqual(t, got.PerPull, 10.0)
		})
	}
}

func TestProduceCountsFaults(t *testing.T) {
	f := &fake{fault: func(n int) fault {
		return map[int]fault{100: refuse, 200: lose, 300: double, 400: damage, 500: lose, 501: lose}[n]
	}}
	target := serveFake(t, 2, f)
	r, err := Produce(t.Context(), ProduceOptions{Target: target, InFlight: 8, Count: 1000})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"SYSTEM_BUSY": 1}, r.Errors)
	require.Equal(t, "too fast", r.Remark)
	require.Equal(t, int64(999), r.Total)
	require.True(t, r.Failed())

	got, err := Consume(t.Context(), ConsumeOptions{Target: target, Starts: starts(target, f.ends), Run: r.Run})
	require.NoError(t, err)
	require.Equal(t, int64(1), got.Duplicates)
	require.Equal(t, int64(1), got.Damaged)
	require.Equal(t, int64(5), got.Missing, "refused, lost and damaged")
	require.Zero(t, got.BadCRC)
	require.True(t, got.Failed())

	got, err = Consume(t.Context(), ConsumeOptions{Target: target, Starts: starts(target, f.ends), Run: r.Run + 1})
	require.NoError(t, err)
	require.Equal(t, got.Total, got.Foreign+got.Damaged)
	require.Zero(t, got.Missing)
}

func TestProduceGivesUpOnSilence(t *testing.T) {
	f := &fake{fault: func(n int) fault {
		if n >= 50 {
			return ignore
		}
		return noFault
	}}
	target := serveFake(t, 2, f)
	r, err := Produce(t.Context(), ProduceOptions{Target: target, InFlight: 4, Count: 100, Drain: 50 * time.Millisecond, Duration: time.Millisecond})
	require.NoError(t, err)
	require.LessOrEqual(t, r.Total, int64(50))
	if r.Total == 50 {
		require.Positive(t, r.Unanswered)
	}
}

func TestProduceEndsWithItsContext(t *testing.T) {
	for _, rate := range []float64{0, 1e5} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		target := serveFake(t, 2, &fake{fault: func(n int) fault {
			if n == 1000 {
				cancel()
			}
			return noFault
		}})
		r, err := Produce(ctx, ProduceOptions{Target: target, Connections: 2, InFlight: 4, Duration: time.Hour, Rate: rate})
		require.NoError(t, err)
		require.Zero(t, r.Unanswered)
		require.Less(t, r.Seconds, 60.0)
	}
}

func TestProduceWithoutAServer(t *testing.T) {
	target := Target{Topic: "t", Brokers: []Broker{{Name: "b", Addr: "127.0.0.1:1", Queues: []int32{0}}}}
	_, err := Produce(t.Context(), ProduceOptions{Target: target})
	require.ErrorContains(t, err, "connect to 127.0.0.1:1")
	_, err = Consume(t.Context(), ConsumeOptions{Target: target, Starts: starts(target, never)})
	require.ErrorContains(t, err, "connect to 127.0.0.1:1")
	_, err = Produce(t.Context(), ProduceOptions{})
	require.ErrorContains(t, err, "no broker has topic")
}

func TestScheduleChargesAStall(t *testing.T) {
	// The server answers nothing from the 100th message on: with a window of 10 the schedule goes on without us.
	f := &fake{fault: func(n int) fault {
		if n >= 100 {
			return ignore
		}
		return noFault
	}}
	target := serveFake(t, 2, f)
	r, err := Produce(t.Context(), ProduceOptions{
		Target: target, InFlight: 10, Rate: 10_000, Duration: 100 * time.Millisecond, Drain: 10 * time.Millisecond,
	})
	require.NoError(t, err)
	require.Equal(t, int64(100), r.Total)
	require.Equal(t, int64(10), r.Unanswered)
	require.Equal(t, int64(1000-110), r.Unsent)
	require.NotNil(t, r.Lateness)
}

func TestSchedulesInterleave(t *testing.T) {
	a := producer{o: ProduceOptions{Connections: 2, Rate: 1000, Batch: 1}, number: 0}
	b := producer{o: ProduceOptions{Connections: 2, Rate: 1000, Batch: 1}, number: 1}
	require.Equal(t, int64(0), a.due(0))
	require.Equal(t, int64(1e6), b.due(0))
	require.Equal(t, int64(2e6), a.due(1))
	a.course, a.stopAt, a.left = &course{end: 10e6}, noEnd, 100
	require.Equal(t, int64(5), a.unsent(), "due at 0, 2, 4, 6 and 8 ms")
	a.frames = 3
	require.Equal(t, int64(2), a.unsent())
	a.stopAt = 5e6
	require.Equal(t, int64(0), a.unsent())
}

func TestE2E(t *testing.T) {
	f := &fake{}
	target := serveFake(t, 4, f)
	r, err := E2E(t.Context(), E2EOptions{
		Produce: ProduceOptions{Target: target, Connections: 2, InFlight: 4000, Rate: 20_000, Duration: 200 * time.Millisecond, Size: 200},
		Consume: ConsumeOptions{Target: target, Starts: starts(target, never), Connections: 2},
	})
	require.NoError(t, err)
	require.False(t, r.Failed(), "%+v %+v", r.Produce, r.Consume)
	require.Equal(t, int64(4000), r.Produce.Total)
	require.Equal(t, r.Produce.Total, r.Consume.Total)
	require.Equal(t, r.Consume.Received, r.Consume.Latency.Count)

	lossy := &fake{fault: func(n int) fault { return map[int]fault{17: lose, 18: lose}[n] }}
	target = serveFake(t, 4, lossy)
	r, err = E2E(t.Context(), E2EOptions{
		Produce: ProduceOptions{Target: target, Count: 100, Drain: 50 * time.Millisecond},
		Consume: ConsumeOptions{Target: target, Starts: starts(target, never)},
	})
	require.NoError(t, err)
	require.Equal(t, int64(2), r.Lost)
	require.True(t, r.Failed())
}

func TestConsumeStopsAtItsCount(t *testing.T) {
	f := &fake{}
	target := serveFake(t, 4, f)
	_, err := Produce(t.Context(), ProduceOptions{Target: target, Count: 400, InFlight: 10})
	require.NoError(t, err)
	r, err := Consume(t.Context(), ConsumeOptions{Target: target, Starts: starts(target, never), Connections: 3, Count: 400})
	require.NoError(t, err)
	require.Equal(t, int64(400), r.Total)
	require.Equal(t, 3, r.Connections)
}

func TestConsumeTellsErrors(t *testing.T) {
	target := serve(t, 2, func(remoting.Driver) remoting.Worker { return refuser{} })
	r, err := Consume(t.Context(), ConsumeOptions{Target: target, Starts: starts(target, never)})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"SUBSCRIPTION_GROUP_NOT_EXIST": 2}, r.Errors)
	require.Equal(t, "no such group", r.Remark)
	require.True(t, r.Failed())
}

// refuser refuses everything.
type refuser struct{}

func (refuser) Begin()                   {}
func (refuser) Flush()                   {}
func (refuser) Closed(*remoting.Session) {}
func (refuser) Serve(s *remoting.Session, c *protocol.Command) {
	s.Out = c.Reply(protocol.RespSubscriptionGroupNotExist, "no such group").Append(s.Out)
}

func TestOptionsAreChecked(t *testing.T) {
	for want, o := range map[string]ProduceOptions{
		"connections must be":   {Connections: -1},
		"requests in flight":    {InFlight: 1 << 20},
		"a batch has 1 to":      {Batch: 40_000},
		"a body has 36 to":      {Size: 10},
		"do not fit a frame":    {Batch: 1000, Size: 1 << 20},
		"rate, count, duration": {Rate: -1},
		"must not be negative":  {WarmUp: -1},
	} {
		require.ErrorContains(t, o.Check(), want)
	}
	require.ErrorContains(t, ConsumeOptions{Batch: -1}.Check(), "a pull asks for")
}

// acknowledger answers each send with the same frame, as a broker that stores nothing.
type acknowledger struct {
	answer  []byte
	waiting []acknowledged
}

type acknowledged struct {
	s      *remoting.Session
	opaque int32
}

func newAcknowledger(remoting.Driver) remoting.Worker {
	c := protocol.Command{Encoding: protocol.Binary, Flag: protocol.FlagResponse}
	r := protocol.SendMessageResponse{
		MsgId: []byte("0A00000100002A9F0000000000001000"), MsgRegion: []byte("DefaultRegion"), TraceOn: []byte("true"), QueueId: 0,
		TransactionId: []byte("0A00000100002A9F0000000000001000"),
	}
	r.Encode(&c.Ext)
	return &acknowledger{answer: c.Append(nil)}
}

func (a *acknowledger) Begin() {}
func (a *acknowledger) Serve(s *remoting.Session, c *protocol.Command) {
	a.waiting = append(a.waiting, acknowledged{s, c.Opaque})
}

func (a *acknowledger) Flush() {
	for _, w := range a.waiting {
		w.s.Touched()
		at := len(w.s.Out)
		w.s.Out = append(w.s.Out, a.answer...)
		binary.BigEndian.PutUint32(w.s.Out[at+binaryOpaqueAt:], uint32(w.opaque))
	}
	a.waiting = a.waiting[:0]
}

func (a *acknowledger) Closed(*remoting.Session) {}

// BenchmarkProduce sends to a server that only decodes and answers. An op is a message.
func BenchmarkProduce(b *testing.B) {
	for _, c := range []struct{ connections, inFlight, batch int }{{64, 1, 1}, {4, 1024, 1}, {4, 1, 32}} {
		b.Run(fmt.Sprintf("%dx%d batch %d", c.connections, c.inFlight, c.batch), func(b *testing.B) {
			target := serve(b, 1, newAcknowledger)
			b.ReportAllocs()
			r, err := Produce(b.Context(), ProduceOptions{
				Target: target, Connections: c.connections, InFlight: c.inFlight, Batch: c.batch, Encoding: protocol.Binary, Count: int64(b.N),
			})
			require.NoError(b, err)
			require.False(b, r.Failed())
			b.ReportMetric(r.Rate, "msg/s")
		})
	}
}
