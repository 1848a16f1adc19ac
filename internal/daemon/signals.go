package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// GracePeriod is the longest time that a graceful stop takes.
const GracePeriod = 10 * time.Second

// A SignalError is the cause of a context that a signal cancelled.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string { return fmt.Sprintf("stopped by signal %v", e.Signal) }

// SignalOptions say what Signals does.
type SignalOptions struct {
	Reload func()         // called on SIGHUP, one call at a time; nil ignores it
	Exit   func(code int) // ends the process at once; os.Exit when nil
	Grace  time.Duration  // limit of a graceful stop; GracePeriod when 0
	Log    *slog.Logger

	notify chan os.Signal // tests put signals here; nil asks the system
}

// Signals returns a context that the first SIGTERM or SIGINT cancels, with a *SignalError as cause. From then on the process has the
// grace period to end; when that is over, or on a second signal, it is ended with code 1. Nothing that was acknowledged is lost by that:
// recovery reads the log as after a crash. stop ends the handling, and waits for its goroutine.
func Signals(ctx context.Context, opts SignalOptions) (_ context.Context, stop func()) {
	if opts.Exit == nil {
		opts.Exit = os.Exit
	}
	if opts.Grace == 0 {
		opts.Grace = GracePeriod
	}
	ch := opts.notify
	if ch == nil {
		ch = make(chan os.Signal, 4)
		signal.Notify(ch, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { opts.loop(ch, done, cancel) })
	return ctx, sync.OnceFunc(func() {
		signal.Stop(ch)
		close(done)
		wg.Wait()
		cancel(context.Canceled)
	})
}

func (o SignalOptions) loop(ch <-chan os.Signal, done <-chan struct{}, cancel context.CancelCauseFunc) {
	var limit <-chan time.Time
	stopping := false
	for {
		select {
		case <-done:
			return
		case <-limit:
			o.Log.Error("stopping took too long, ending now", "limit", o.Grace.String())
			o.Exit(1)
			return
		case sig := <-ch:
			switch {
			case sig == syscall.SIGHUP:
				if o.Reload != nil {
					o.Reload()
				}
			case stopping:
				o.Log.Warn("second signal, ending at once", "signal", sig.String())
				o.Exit(1)
				return
			default:
				stopping = true
				o.Log.Info("stopping", "signal", sig.String(), "limit", o.Grace.String())
				timer := time.NewTimer(o.Grace)
				defer timer.Stop()
				limit = timer.C
				cancel(&SignalError{Signal: sig})
			}
		}
	}
}
