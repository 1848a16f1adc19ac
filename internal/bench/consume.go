package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
)

// Start is where a queue is consumed from, and what is there.
type Start struct {
	From int64 // offset of the first message that is pulled
	To   int64 // consumption of the queue ends there; −1: never
	// Whole says that the queue begins with From: sequences that do not begin with 0 have lost their beginning.
	Whole bool
}

// ConsumeOptions describe a load of pulls. Target and Starts must be set; zero values take the defaults that are named here.
type ConsumeOptions struct {
	Target Target
	// Starts are the starts of all queues, in the order of Target. Queues that have come to their To are not pulled again.
	Starts      [][]Start
	Group       string // consumer group: "metaq-bench"
	Connections int    // 1; the queues of a broker are dealt out to its connections
	Batch       int    // messages asked for by a pull: 32
	Encoding    protocol.Encoding
	WarmUp      time.Duration
	Duration    time.Duration // measured; 10 s when nothing else ends the run
	Count       int64         // ends the run after so many messages
	Hold        time.Duration // how long a pull may wait for a message: 15 s
	Commit      bool          // pulls commit what was consumed before
	Run         uint32        // only messages of that run are checked; 0: of all
	Live        bool          // messages arrive as they are sent, so their latency means something
	Progress    func(Progress)

	dial dialer
}

func (o ConsumeOptions) withDefaults() ConsumeOptions {
	o.Group = cmp.Or(o.Group, "metaq-bench")
	o.Connections = cmp.Or(o.Connections, 1)
	o.Batch = cmp.Or(o.Batch, 32)
	o.Hold = cmp.Or(o.Hold, 15*time.Second)
	if o.Count == 0 && !o.ends() {
		o.Duration = cmp.Or(o.Duration, 10*time.Second)
	}
	if o.dial == nil {
		o.dial = dialTCP
	}
	return o
}

// ends tells whether all queues have an end.
func (o *ConsumeOptions) ends() bool {
	for _, starts := range o.Starts {
		for _, s := range starts {
			if s.To < 0 {
				return false
			}
		}
	}
	return true
}

// Check tells what is wrong with the options; the target is not looked at.
func (o ConsumeOptions) Check() error {
	o = o.withDefaults()
	switch {
	case o.Connections < 1 || o.Connections > maxConnections:
		return fmt.Errorf("connections must be 1 to %d", maxConnections)
	case o.Batch < 1 || o.Batch > 1<<20:
		return fmt.Errorf("a pull asks for 1 to %d messages", 1<<20)
	case o.Count < 0 || o.Duration < 0 || o.WarmUp < 0:
		return errors.New("count, duration and warm-up must not be negative")
	}
	return nil
}

// ConsumeResult is what a load of pulls came to. The fields that a sound run has at zero are left out of JSON when they are.
type ConsumeResult struct {
	Topic       string `json:"topic"`
	Queues      int    `json:"queues"`
	Connections int    `json:"connections"`
	Batch       int    `json:"batch"`
	Header      string `json:"header"`

	Seconds  float64 `json:"seconds"`       // of the measured window; of a drain, from the first pull to the last message
	Received int64   `json:"received"`      // messages in it
	Rate     float64 `json:"rate"`          // of them, a second
	MB       float64 `json:"mb_per_second"` // of their bodies, 10^6 bytes
	Total    int64   `json:"received_in_total"`
	PerPull  float64 `json:"messages_per_pull"` // of the pulls that found any

	Latency *Latency `json:"latency,omitempty"` // of live messages: from when they were sent, or due

	Missing    int64            `json:"missing,omitempty"`    // gaps in the numbers of their streams
	Duplicates int64            `json:"duplicates,omitempty"` // numbers that came again
	Reordered  int64            `json:"reordered,omitempty"`  // a lower number after a higher one: several requests of a producer may overtake each other
	Damaged    int64            `json:"damaged,omitempty"`    // bodies whose own checksum is wrong
	BadCRC     int64            `json:"bad_crc,omitempty"`    // bodies whose stored CRC is wrong
	Misrouted  int64            `json:"misrouted,omitempty"`  // messages of another topic or queue
	OffsetGaps int64            `json:"offset_gaps,omitempty"`
	Foreign    int64            `json:"foreign,omitempty"` // messages that no load generator made, or of another run: not checked
	Errors     map[string]int64 `json:"errors,omitempty"`  // pulls, by the name of the answer's code
	Remark     string           `json:"remark,omitempty"`
	Broken     int              `json:"broken,omitempty"` // connections that ended early
}

// Failed tells whether anything was not as it should be.
func (r *ConsumeResult) Failed() bool {
	return r.Missing > 0 || r.Duplicates > 0 || r.Damaged > 0 || r.BadCRC > 0 || r.Misrouted > 0 || r.OffsetGaps > 0 ||
		len(r.Errors) > 0 || r.Broken > 0
}

// Consume pulls until the options or ctx end it, and checks every message. An error means that nothing came of it.
func Consume(ctx context.Context, o ConsumeOptions) (*ConsumeResult, error) {
	o = o.withDefaults()
	if err := o.Check(); err != nil {
		return nil, err
	}
	if err := o.Target.check(); err != nil {
		return nil, err
	}
	g := new(goal)
	g.want(o.Count)
	return consume(ctx, o, g)
}

// consume is Consume with a goal.
func consume(ctx context.Context, o ConsumeOptions, g *goal) (*ConsumeResult, error) {
	consumers, err := newConsumers(ctx, o)
	if err != nil {
		return nil, err
	}
	defer closeConsumers(consumers)
	ctx, g.finish = context.WithCancel(ctx)
	defer g.finish()
	g.starting = int64(len(consumers))
	c := newCourse(len(consumers), o.WarmUp, o.Duration)
	for i, cs := range consumers {
		cs.join(c, g, i)
	}
	errs := c.drive(ctx, len(consumers), func(i int) error { return consumers[i].run() }, func(i int) { consumers[i].interrupt() }, o.Progress)
	return consumed(o, c, consumers, errs)
}

func closeConsumers(consumers []*consumer) {
	for _, cs := range consumers {
		cs.link.close()
	}
}

// newConsumers connects, and deals out the queues.
func newConsumers(ctx context.Context, o ConsumeOptions) (consumers []*consumer, err error) {
	byBroker := make([][]*consumer, len(o.Target.Brokers))
	for i := range max(o.Connections, len(o.Target.Brokers)) {
		at := i % len(o.Target.Brokers)
		b := o.Target.Brokers[at]
		if len(byBroker[at]) == len(b.Queues) {
			continue // a connection without a queue has nothing to do
		}
		cs := newConsumer(o, b)
		if cs.link, err = newLink(ctx, o.dial, b.Addr); err != nil {
			closeConsumers(consumers)
			return nil, err
		}
		consumers = append(consumers, cs)
		byBroker[at] = append(byBroker[at], cs)
	}
	for at, b := range o.Target.Brokers {
		for i, q := range b.Queues {
			cs := byBroker[at][i%len(byBroker[at])]
			cs.add(q, o.Starts[at][i])
		}
	}
	return consumers, nil
}

// consumed sums up.
func consumed(o ConsumeOptions, c *course, consumers []*consumer, errs []error) (*ConsumeResult, error) {
	r := &ConsumeResult{
		Topic: o.Target.Topic, Connections: len(consumers), Batch: o.Batch, Header: o.Encoding.String(), Errors: map[string]int64{},
	}
	latency := newLatencies()
	end := c.begin
	bytes, pulls := int64(0), int64(0)
	for i, cs := range consumers {
		r.Queues += len(cs.queues)
		r.Received += cs.received
		r.Total += cs.total
		bytes += cs.bytes
		pulls += cs.found
		cs.checks.sum(r)
		for code, n := range cs.failed {
			r.Errors[protocol.RespName(code)] += n
		}
		r.Remark = cmp.Or(r.Remark, cs.remark)
		latency.merge(&cs.latency)
		end = max(end, cs.lastAt)
		if errs[i] != nil {
			r.Broken++
			r.Remark = cmp.Or(r.Remark, errs[i].Error())
		}
	}
	if r.Broken == len(consumers) && r.Total == 0 {
		return nil, errors.Join(errs...)
	}
	if o.Duration > 0 && o.Count == 0 && !c.stopped.Load() && !o.ends() {
		end = c.end
	}
	if r.Seconds = float64(end-c.begin) / 1e9; r.Seconds > 0 {
		r.Rate, r.MB = float64(r.Received)/r.Seconds, float64(bytes)/r.Seconds/1e6
	}
	if pulls > 0 {
		r.PerPull = float64(r.Total) / float64(pulls)
	}
	if o.Live {
		r.Latency = latency.summary()
	}
	return r, nil
}
