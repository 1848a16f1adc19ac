package bench

import "time"

// clock tells the time in nanoseconds since it was started. It never jumps, unlike the time of day.
type clock struct {
	start time.Time
	wall  int64 // the time of day at the start, nanoseconds since 1970
}

func startClock() clock {
	now := time.Now()
	return clock{start: now, wall: now.UnixNano()}
}

func (c *clock) now() int64 { return int64(time.Since(c.start)) }

// at gives the moment of an absolute time, such as for a deadline.
func (c *clock) at(t int64) time.Time { return c.start.Add(time.Duration(t)) }
