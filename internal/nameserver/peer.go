package nameserver

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
)

const (
	dialTimeout       = 3 * time.Second
	registerTimeout   = 24 * time.Second // as RocketMQ's broker
	unregisterTimeout = 3 * time.Second
	// A failed attempt is repeated after backoffMin, then twice that, up to backoffMax, each time a fifth more or less.
	backoffMin = time.Second
	backoffMax = 30 * time.Second
	// After a registration the next one waits at least gapMin, and gapFactor times what it took: a big table that changes often
	// must not fill the connection.
	gapMin    = 20 * time.Millisecond
	gapFactor = 4
	gapMax    = 5 * time.Second
	// sayAgain is how often a failure that stays the same is logged.
	sayAgain = 5 * time.Minute
)

// A peer is one name server that a Registrar registers with. Its goroutine alone uses it, except for changed.
type peer struct {
	r       *Registrar
	addr    string
	changed chan struct{} // holds one: something is to be told

	client   *remoting.Client
	told     string        // the address registered by this connection; empty: none yet
	took     time.Duration // the last registration
	order    map[string]string
	failures int // in a row

	said       string // last failure in the log
	saidAt     time.Time
	suppressed int
}

// outgoing is our connection as a Conn.
type outgoing struct{ *remoting.Client }

// Listener implements Conn: nobody accepted the connection.
func (outgoing) Listener() string { return "" }

func (p *peer) run(ctx context.Context) {
	defer p.leave()
	for ctx.Err() == nil {
		select {
		case <-p.changed: // what changed until now is told below
		default:
		}
		if err := p.register(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			p.fail(err)
			p.sleep(ctx, p.backoff())
			continue
		}
		p.failures = 0
		p.sleep(ctx, min(max(gapMin, gapFactor*p.took), gapMax))
		p.await(ctx)
	}
}

// await waits until there is a reason to register again.
func (p *peer) await(ctx context.Context) {
	period := time.NewTimer(p.r.opts.Period)
	defer period.Stop()
	select {
	case <-ctx.Done():
	case <-period.C:
	case <-p.client.Done(): // the name server has forgotten us
	case <-p.changed:
	}
}

func (p *peer) sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (p *peer) backoff() time.Duration {
	d := min(backoffMin<<min(p.failures-1, 10), backoffMax)
	return d*4/5 + rand.N(d*2/5)
}

// register sends one registration, over a new connection if there is none.
func (p *peer) register(ctx context.Context) error {
	if err := p.connect(ctx); err != nil {
		return err
	}
	addr := p.r.opts.AddressOf(p.client.Local())
	if addr == "" {
		return fmt.Errorf("there is no address to register for a connection from %s", p.client.Local())
	}
	ha := ""
	if f := p.r.opts.Broker.HAAddress; f != nil {
		ha = f(outgoing{p.client})
	}
	before := p.told
	p.told = addr // even if no answer comes: leave takes it off
	start := time.Now()
	answer, err := p.client.Call(ctx, p.r.registration(addr, ha))
	p.took = time.Since(start)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		p.disconnect()
		return fmt.Errorf("register: %w", err)
	}
	if answer.Code != protocol.RespSuccess {
		return fmt.Errorf("registration refused with %s (%d): %s", protocol.RespName(answer.Code), answer.Code, answer.Remark)
	}
	if before != "" && before != addr {
		p.unregister(ctx, before)
	}
	if before != addr || p.failures > 0 {
		p.r.opts.Log.Info("registered with name server", "nameserver", p.addr, "broker", p.r.opts.Broker.Name, "address", addr)
		p.said = ""
	}
	return p.takeOrder(answer.Body)
}

func (p *peer) connect(ctx context.Context) error {
	if p.client != nil {
		select {
		case <-p.client.Done():
			p.disconnect()
		default:
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := p.r.dial(ctx, p.addr)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	p.client, p.told = c, ""
	return nil
}

func (p *peer) disconnect() {
	if p.client != nil {
		p.client.Close() // nothing is lost with it
		p.client = nil
	}
}

// takeOrder hands on the order configurations in the answer, when they are new. RocketMQ sends none at all when there are none.
func (p *peer) takeOrder(body []byte) error {
	var table protocol.KVTable
	if len(body) > 0 {
		if err := protocol.ParseJSON(body, &table); err != nil {
			return fmt.Errorf("read order configurations: %w", err)
		}
	}
	if !maps.Equal(table.Table, p.order) {
		p.order = table.Table
		if p.r.opts.Ordered != nil {
			p.r.opts.Ordered(p.addr, table.Table)
		}
	}
	return nil
}

// leave unregisters at the end.
func (p *peer) leave() {
	if p.client == nil {
		return
	}
	if p.told != "" {
		ctx, cancel := context.WithTimeout(context.Background(), unregisterTimeout)
		defer cancel()
		p.unregister(ctx, p.told)
	}
	p.disconnect()
}

func (p *peer) unregister(ctx context.Context, addr string) {
	answer, err := p.client.Call(ctx, p.r.departure(addr))
	if err == nil && answer.Code != protocol.RespSuccess {
		err = fmt.Errorf("refused with %s (%d): %s", protocol.RespName(answer.Code), answer.Code, answer.Remark)
	}
	if err != nil {
		p.r.opts.Log.Warn("not unregistered from name server", "nameserver", p.addr, "error", err)
	}
}

// fail counts a failure, and logs it if it is another than before or old enough.
func (p *peer) fail(err error) {
	p.failures++
	text := err.Error()
	if text == p.said && time.Since(p.saidAt) < sayAgain {
		p.suppressed++
		return
	}
	args := []any{"nameserver", p.addr, "broker", p.r.opts.Broker.Name, "error", text}
	if p.suppressed > 0 {
		args = append(args, "similar", p.suppressed)
	}
	p.r.opts.Log.Log(context.Background(), slog.LevelWarn, "not registered with name server", args...)
	p.said, p.saidAt, p.suppressed = text, time.Now(), 0
}
