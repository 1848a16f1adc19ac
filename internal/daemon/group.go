package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// A Service is something that runs until its context ends.
type Service struct {
	Name string
	Run  func(ctx context.Context) error
}

// errStopped is what Run says of a service that ended by itself without an error.
var errStopped = errors.New("ended without being asked to")

// A Group runs services. The zero value is empty and ready; it is used by one goroutine.
type Group struct{ services []Service }

// Add appends a service. Services start in the order in which they were added, and stop in reverse: each is stopped, and waited for,
// before the one it may depend on.
func (g *Group) Add(name string, run func(ctx context.Context) error) {
	g.services = append(g.services, Service{Name: name, Run: run})
}

type running struct {
	name   string
	cancel context.CancelCauseFunc
	done   chan struct{}
	err    error // set before done is closed
}

// Run starts all services and blocks until all have ended. They are stopped when ctx ends (with its cause as theirs), or when the first
// of them ends by itself. It returns what went wrong, each error with the name of its service, and nil after a stop by ctx in which
// every service ended well.
func (g *Group) Run(ctx context.Context) error {
	ended := make(chan *running, len(g.services))
	var all []*running
	for _, s := range g.services {
		// Not a child of ctx: a service is stopped when its turn comes, not when ctx ends.
		own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		r := &running{name: s.Name, cancel: cancel, done: make(chan struct{})}
		all = append(all, r)
		go func() { // waited for below, by done
			r.err = s.Run(own)
			close(r.done)
			ended <- r
		}()
	}
	var first error
	cause := error(nil)
	select {
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case r := <-ended:
		cause = fmt.Errorf("%s: %w", r.name, errStopped)
		if r.err != nil {
			cause = fmt.Errorf("%s: %w", r.name, r.err)
		}
		first = cause
	}
	return errors.Join(first, stopAll(all, cause))
}

// stopAll stops services in reverse and returns the errors that are not just the stop itself.
func stopAll(all []*running, cause error) error {
	var errs []error
	for _, r := range slices.Backward(all) {
		r.cancel(cause)
		<-r.done
		if r.err != nil && !errors.Is(r.err, context.Canceled) && !errors.Is(cause, r.err) {
			errs = append(errs, fmt.Errorf("%s: %w", r.name, r.err))
		}
	}
	return errors.Join(errs...)
}
