package daemon

import (
	"errors"
	"fmt"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// heapShare is how much of a container's memory the Go heap may take. The rest is for the page cache, which serves reads of the log,
// and for what lies outside the heap: the ring and the views' store.
const heapShare = 0.6

// LimitMemory sets Go's memory limit from the limit of the container, if there is one; GOMEMLIMIT wins. It returns the limit in bytes,
// 0 without one.
func LimitMemory() (int64, error) {
	limit, err := memlimit.FromCgroup()
	if errors.Is(err, memlimit.ErrNoCgroup) || errors.Is(err, memlimit.ErrNoLimit) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the container's memory limit: %w", err)
	}
	set, err := memlimit.Set(memlimit.WithRatio(heapShare), memlimit.WithProvider(memlimit.Limit(limit)))
	if err != nil {
		return 0, fmt.Errorf("set the memory limit: %w", err)
	}
	return set, nil
}
