package daemon

import (
	"log/slog"
	"sync"
)

// A Reload holds the current settings and takes over what may change while the server runs. All methods may be called by any goroutine.
type Reload struct {
	load func() (Settings, Report, error)
	log  *slog.Logger

	mu          sync.Mutex // guards the following; held while subscribers are called, so that they see values in order
	current     Settings
	subscribers []func(Settings)
}

// NewReload starts with settings that were loaded already; load reads all sources again.
func NewReload(current Settings, load func() (Settings, Report, error), log *slog.Logger) *Reload {
	return &Reload{load: load, log: log, current: current}
}

// Current returns the settings in force.
func (r *Reload) Current() Settings {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// Subscribe has fn called with the new settings after each reload that changed something. fn must not call the Reload.
func (r *Reload) Subscribe(fn func(Settings)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscribers = append(r.subscribers, fn)
}

// Do reads all sources again. Settings that cannot change while the server runs keep their value, and are named in the log; when
// anything is wrong with the configuration, nothing changes at all.
func (r *Reload) Do() {
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh, _, err := r.load()
	if err != nil {
		r.log.Error("configuration not reloaded, the one before stays in force", "error", err)
		return
	}
	next, changed := r.current, 0
	for _, t := range Table {
		before, after := t.Value(r.current), t.Value(fresh)
		switch {
		case before == after:
		case !t.Reloadable:
			r.log.Warn("setting takes effect with the next start", "setting", t.Name, "now", before, "then", after)
		case t.set(&next, after) == nil: // text that Value wrote
			changed++
			r.log.Info("setting changed", "setting", t.Name, "from", before, "to", after)
		}
	}
	// Values that are fine with the fresh ones of the others may not go with those that stay.
	if problems := next.Validate(); len(problems) > 0 {
		r.log.Error("configuration not reloaded, the one before stays in force", "error", (&ProblemsError{Problems: problems}).Error())
		return
	}
	r.log.Info("configuration reloaded", "changed", changed)
	if changed == 0 {
		return
	}
	r.current = next
	for _, fn := range r.subscribers {
		fn(next)
	}
}
