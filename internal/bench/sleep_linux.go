package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// fine is how much of a wait must be exact: the runtime's own timers wake an idle program up to a millisecond late.
const fine = 3 * time.Millisecond

// sleep waits; false when stop was closed before.
func sleep(d time.Duration, stop <-chan struct{}) bool {
	if d > fine {
		t := time.NewTimer(d - fine)
		defer t.Stop()
		select {
		case <-stop:
			return false
		case <-t.C:
		}
		// The timer may have been late, so the caller looks at the clock again.
		return true
	}
	for ts := unix.NsecToTimespec(int64(d)); unix.Nanosleep(&ts, &ts) == unix.EINTR; {
	}
	return true
}
