package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
)

// ProduceOptions describe a load of sends. Target must be set; zero values take the defaults that are named here.
type ProduceOptions struct {
	Target      Target
	Group       string // producer group: "metaq-bench"
	Connections int    // 1; they are dealt out to the brokers in turn
	InFlight    int    // frames that one connection has under way: 1, or 1,024 when there is a rate
	Batch       int    // messages in a frame: 1
	Size        int    // bytes of a body: 100, at least MinSize
	Encoding    protocol.Encoding
	WarmUp      time.Duration // not measured
	Duration    time.Duration // measured; 10 s when there is no Count either
	Count       int64         // messages to be sent, rounded up to whole batches on each connection; 0: as many as the time allows
	// Rate is a fixed schedule, in messages a second over all connections. Each message has a moment at which it is due, whatever
	// became of those before it, and its latency counts from then: a server that stalls is charged for everything that was due. 0
	// is a closed loop: a message is sent when one is answered.
	Rate  float64
	Drain time.Duration // time for the last answers: 5 s
	Run   uint32        // in each body; a random number
	// Progress, if not nil, is called once a second.
	Progress func(Progress)

	dial dialer
}

func (o ProduceOptions) withDefaults() ProduceOptions {
	o.Group = cmp.Or(o.Group, "metaq-bench")
	o.Connections = cmp.Or(o.Connections, 1)
	if o.Rate > 0 {
		o.InFlight = cmp.Or(o.InFlight, 1024)
	}
	o.InFlight = cmp.Or(o.InFlight, 1)
	o.Batch = cmp.Or(o.Batch, 1)
	o.Size = cmp.Or(o.Size, 100)
	o.Drain = cmp.Or(o.Drain, 5*time.Second)
	if o.Count == 0 {
		o.Duration = cmp.Or(o.Duration, 10*time.Second)
	}
	for o.Run == 0 {
		o.Run = rand.Uint32()
	}
	if o.dial == nil {
		o.dial = dialTCP
	}
	return o
}

// Limits of options.
const (
	maxInFlight    = 1 << 16
	maxConnections = 20_000
	maxMembers     = 32767
)

// Check tells what is wrong with the options; the target is not looked at.
func (o ProduceOptions) Check() error {
	o = o.withDefaults()
	switch {
	case o.Connections < 1 || o.Connections > maxConnections:
		return fmt.Errorf("connections must be 1 to %d", maxConnections)
	case o.InFlight < 1 || o.InFlight > maxInFlight:
		return fmt.Errorf("requests in flight must be 1 to %d", maxInFlight)
	case o.Batch < 1 || o.Batch > maxMembers:
		return fmt.Errorf("a batch has 1 to %d messages", maxMembers)
	case o.Size < MinSize || o.Size > maxFrame:
		return fmt.Errorf("a body has %d to %d bytes: it carries a checksum and numbers by which losses are found", MinSize, maxFrame)
	case o.Batch*o.Size > maxFrame:
		return fmt.Errorf("%d messages of %d bytes do not fit a frame of %d bytes", o.Batch, o.Size, maxFrame)
	case o.Rate < 0 || o.Count < 0 || o.Duration < 0 || o.WarmUp < 0:
		return errors.New("rate, count, duration and warm-up must not be negative")
	}
	return nil
}

// ProduceResult is what a load of sends came to. The fields that a sound run has at zero are left out of JSON when they are.
type ProduceResult struct {
	Run         uint32  `json:"run"`
	Topic       string  `json:"topic"`
	Queues      int     `json:"queues"`
	Connections int     `json:"connections"`
	InFlight    int     `json:"in_flight"`
	Batch       int     `json:"batch"`
	Size        int     `json:"size"`
	Header      string  `json:"header"`
	RateWanted  float64 `json:"rate_wanted,omitempty"`

	Seconds float64 `json:"seconds"`        // of the measured window
	Acked   int64   `json:"acked"`          // messages acknowledged in it
	Rate    float64 `json:"rate"`           // of them, a second
	MB      float64 `json:"mb_per_second"`  // of their bodies, 10^6 bytes
	Total   int64   `json:"acked_in_total"` // with warm-up and drain

	Latency  *Latency `json:"latency,omitempty"`  // of an answer: from the send, or from when it was due
	Lateness *Latency `json:"lateness,omitempty"` // with a rate: from when it was due to the send

	Errors     map[string]int64 `json:"errors,omitempty"` // messages, by the name of the answer's code
	Remark     string           `json:"remark,omitempty"` // of the first error
	Unanswered int64            `json:"unanswered,omitempty"`
	Unsent     int64            `json:"unsent,omitempty"`    // due, but the server had not answered enough of those before
	Unmatched  int64            `json:"unmatched,omitempty"` // answers that nobody waits for
	BadAcks    int64            `json:"bad_acks,omitempty"`  // successes without a fitting queue and offset; a sample is looked at
	Broken     int              `json:"broken,omitempty"`    // connections that ended early
}

// Failed tells whether anything was not as it should be.
func (r *ProduceResult) Failed() bool {
	return len(r.Errors) > 0 || r.Unanswered > 0 || r.Unsent > 0 || r.Unmatched > 0 || r.BadAcks > 0 || r.Broken > 0
}

// Produce sends until the options or ctx end it. An error means that nothing came of it; what went wrong in between is in the result.
func Produce(ctx context.Context, o ProduceOptions) (*ProduceResult, error) {
	o = o.withDefaults()
	if err := o.Check(); err != nil {
		return nil, err
	}
	if err := o.Target.check(); err != nil {
		return nil, err
	}
	producers, err := newProducers(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, p := range producers {
			p.link.close()
		}
	}()
	c := newCourse(len(producers), o.WarmUp, o.Duration)
	for i, p := range producers {
		p.join(c, i)
	}
	errs := c.drive(ctx, len(producers), func(i int) error { return producers[i].run() }, func(i int) { producers[i].interrupt() }, o.Progress)
	return produced(o, c, producers, errs)
}

func newProducers(ctx context.Context, o ProduceOptions) (producers []*producer, err error) {
	defer func() {
		if err != nil {
			for _, p := range producers {
				p.link.close()
			}
		}
	}()
	perConnection := int64(noEnd)
	if o.Count > 0 {
		perConnection = (o.Count + int64(o.Connections) - 1) / int64(o.Connections)
	}
	for i := range o.Connections {
		b := o.Target.Brokers[i%len(o.Target.Brokers)]
		p, err := newProducer(o, b, i)
		if err != nil {
			return producers, err
		}
		p.left = (perConnection + int64(o.Batch) - 1) / int64(o.Batch)
		if p.link, err = newLink(ctx, o.dial, b.Addr); err != nil {
			return producers, err
		}
		producers = append(producers, p)
	}
	return producers, nil
}

// produced sums up.
func produced(o ProduceOptions, c *course, producers []*producer, errs []error) (*ProduceResult, error) {
	r := &ProduceResult{
		Run: o.Run, Topic: o.Target.Topic, Connections: o.Connections, InFlight: o.InFlight, Batch: o.Batch, Size: o.Size,
		Header: o.Encoding.String(), RateWanted: o.Rate, Errors: map[string]int64{},
	}
	for _, b := range o.Target.Brokers {
		r.Queues += len(b.Queues)
	}
	latency, lateness := newLatencies(), newLatencies()
	begin, end := c.begin, c.begin
	for i, p := range producers {
		r.Acked += p.acked
		r.Total += p.total
		r.Unmatched += p.unmatched
		r.BadAcks += p.badAcks
		r.Unanswered += int64(p.inFlight() * o.Batch)
		r.Unsent += p.unsent()
		for code, n := range p.failed {
			r.Errors[protocol.RespName(code)] += n
		}
		r.Remark = cmp.Or(r.Remark, p.remark)
		latency.merge(&p.latency)
		lateness.merge(&p.lateness)
		end = max(end, p.lastAck)
		if errs[i] != nil {
			r.Broken++
			r.Remark = cmp.Or(r.Remark, errs[i].Error())
		}
	}
	if r.Broken == len(producers) && r.Total == 0 {
		return nil, errors.Join(errs...)
	}
	if o.Duration > 0 && !c.stopped.Load() && o.Count == 0 {
		end = c.end
	}
	if r.Seconds = float64(end-begin) / 1e9; r.Seconds > 0 {
		r.Rate = float64(r.Acked) / r.Seconds
		r.MB = r.Rate * float64(o.Size) / 1e6
	}
	r.Latency, r.Lateness = latency.summary(), lateness.summary()
	return r, nil
}
