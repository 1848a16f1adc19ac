package bench

import (
	"context"
	"errors"
	"time"
)

// E2EOptions describe a run in which messages are sent and consumed at the same time. Both halves have the same topic.
type E2EOptions struct {
	Produce ProduceOptions // with a Rate, as a rule
	// Consume takes Target, Starts (the ends of the queues), Group, Connections, Batch, Encoding and Hold; the rest is set here.
	Consume ConsumeOptions
}

// E2EResult is what came of it. The latency of Consume is from when a message was due until a consumer had it.
type E2EResult struct {
	Produce *ProduceResult `json:"produce"`
	Consume *ConsumeResult `json:"consume"`
	Lost    int64          `json:"lost,omitempty"` // acknowledged and not received in time
}

// Failed tells whether anything was not as it should be.
func (r *E2EResult) Failed() bool { return r.Lost > 0 || r.Produce.Failed() || r.Consume.Failed() }

// E2E consumes from the ends of the queues, sends, and waits until everything that was acknowledged has arrived.
func E2E(ctx context.Context, o E2EOptions) (*E2EResult, error) {
	p, c := o.Produce.withDefaults(), o.Consume
	c.Run, c.Live, c.WarmUp, c.Duration, c.Count = p.Run, true, p.WarmUp, forEver, 0
	c = c.withDefaults()
	if err := errors.Join(p.Check(), c.Check(), p.Target.check(), c.Target.check()); err != nil {
		return nil, err
	}
	consuming, stop := context.WithCancel(ctx)
	defer stop()
	type outcome struct {
		r   *ConsumeResult
		err error
	}
	ready := make(chan struct{})
	g := &goal{ready: func() { close(ready) }}
	done := make(chan outcome, 1)
	go func() {
		r, err := consume(consuming, c, g)
		done <- outcome{r, err}
	}()
	select {
	case <-ready:
	case out := <-done:
		if out.err == nil {
			out.err = errors.New("consumers ended before anything was sent: " + out.r.Remark)
		}
		return nil, out.err
	}
	produced, err := Produce(ctx, p)
	if err != nil {
		stop()
		<-done
		return nil, err
	}
	g.want(produced.Total)
	timeout := time.AfterFunc(p.Drain, stop)
	defer timeout.Stop()
	if produced.Total == 0 {
		stop()
	}
	out := <-done
	if out.err != nil {
		return nil, out.err
	}
	r := &E2EResult{Produce: produced, Consume: out.r}
	if ctx.Err() == nil {
		distinct := out.r.Total - out.r.Foreign - out.r.Damaged - out.r.Duplicates
		r.Lost = max(0, produced.Total-distinct)
	}
	return r, nil
}

// forEver is longer than a run takes.
const forEver = 10 * 365 * 24 * time.Hour
