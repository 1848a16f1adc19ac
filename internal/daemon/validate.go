package daemon

import (
	"fmt"
	"net/netip"
	"slices"
)

// Validate returns a line for each rule between settings that s breaks; single values were checked when they were read.
func (s Settings) Validate() (problems []string) {
	fail := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if a, err := netip.ParseAddr(s.Bind); err == nil && !a.IsLoopback() && !s.AllowAnonymous {
		fail("bind: %s can be reached from outside, and clients are not authenticated: "+
			"bind to 127.0.0.1, or accept that anyone who reaches the ports may do everything, with --allow-anonymous", s.Bind)
	}
	used := map[int]string{}
	for _, listener := range Listeners {
		p := s.Port(listener)
		if p <= 0 {
			continue
		}
		if other, taken := used[p]; taken {
			fail("%s-port: %d is the %s-port too; every port speaks every protocol, so one of them can be -1", listener, p, other)
		}
		used[p] = listener
	}
	if !slices.ContainsFunc(Listeners, func(l string) bool { return s.Port(l) != Off }) {
		fail("broker-port: all ports are off, so nobody could connect")
	}
	if s.RingBytes%(64*kib) != 0 {
		fail("ring-bytes: %d is not a multiple of 64KiB", s.RingBytes)
	}
	if s.RingBytes < 4*int64(s.MaxMessageBytes) {
		fail("ring-bytes: %s is less than four times max-message-bytes (%s), so a large message could not be written",
			FormatSize(s.RingBytes), FormatSize(int64(s.MaxMessageBytes)))
	}
	if s.SegmentBytes < 2*int64(s.MaxMessageBytes) {
		fail("segment-bytes: %s is less than twice max-message-bytes (%s), so a large message would not fit into a file",
			FormatSize(s.SegmentBytes), FormatSize(int64(s.MaxMessageBytes)))
	}
	if s.RetentionBytes > 0 && s.RetentionBytes < 2*s.SegmentBytes {
		fail("retention-bytes: %s is less than two segments (%s each), and only whole segments are dropped",
			FormatSize(s.RetentionBytes), FormatSize(s.SegmentBytes))
	}
	if s.DiskMaxUse < 100 && s.DiskStopUse < s.DiskMaxUse {
		fail("disk-stop-use: %d is below disk-max-use (%d), so sends would be refused before old segments are dropped", s.DiskStopUse, s.DiskMaxUse)
	}
	return problems
}
