package message

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"math"
	"net/netip"
	"os"
	"sync/atomic"
	"time"
)

const (
	upperHex      = "0123456789ABCDEF"
	offsetIDv4    = 32 // characters
	offsetIDv6    = 56
	uniqueKeySize = 16 // bytes
)

func appendHex(dst, b []byte) []byte {
	for _, c := range b {
		dst = append(dst, upperHex[c>>4], upperHex[c&15])
	}
	return dst
}

// AppendOffsetID appends the id that tells where a message is stored: address, port
// and position in upper-case hex, 32 characters for IPv4 and 56 for IPv6. Tools
// dial the address in it, so it must be one that they can reach.
func AppendOffsetID(dst []byte, host netip.AddrPort, p Position) []byte {
	var buf [28]byte
	b := appendHost(buf[:0], host.Addr().Unmap(), host.Port())
	b = binary.BigEndian.AppendUint64(b, uint64(p))
	return appendHex(dst, b)
}

// ParseOffsetID reads an id made by [AppendOffsetID], in either case of letters.
// The error is a [*FormatError].
func ParseOffsetID(s string) (netip.AddrPort, Position, error) {
	if len(s) != offsetIDv4 && len(s) != offsetIDv6 {
		return netip.AddrPort{}, 0, idError("characters", int64(len(s)), offsetIDv4)
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		return netip.AddrPort{}, 0, idError("hex digits", 0, int64(len(s)))
	}
	host, rest, err := parseHost(b, len(s) == offsetIDv6)
	if err != nil {
		return netip.AddrPort{}, 0, idError("port", int64(binary.BigEndian.Uint32(b[len(b)-12:])), math.MaxUint16)
	}
	p := int64(binary.BigEndian.Uint64(rest))
	if p < 0 {
		return netip.AddrPort{}, 0, idError("position", p, math.MaxInt64)
	}
	return host, Position(p), nil
}

func idError(field string, actual, limit int64) error {
	return &FormatError{What: "offset id", Field: field, Actual: actual, Limit: limit, Kind: ErrMalformed}
}

// A keySource makes unique keys. RocketMQ's layout is address, process id, class
// loader hash, milliseconds since the month began (local time), counter. Tools use
// the time to find a message, nobody uses the rest: address and hash are random
// here, because containers share both their addresses and their process ids.
type keySource struct {
	last  atomic.Uint64 // ms since 1970 << 16 | counter of the newest key
	month atomic.Pointer[month]
	host  [4]byte
	pid   uint16
	salt  uint32
}

// A month is the span of time in which keys count from the same start.
type month struct {
	start, end uint64 // ms since 1970
	number     uint32 // parts the keys of one month from those of another
}

var keys = newKeySource()

func newKeySource() *keySource {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return &keySource{host: [4]byte(b[:4]), pid: uint16(os.Getpid()), salt: binary.BigEndian.Uint32(b[4:])}
}

// next gives a time and counter that no call before had, also when the clock stands
// still or goes back: then time runs ahead of the clock.
func (k *keySource) next(nowMs uint64) uint64 {
	for {
		last := k.last.Load()
		v := max(last+1, nowMs<<16)
		if k.last.CompareAndSwap(last, v) {
			return v
		}
	}
}

func (k *keySource) monthOf(ms uint64) *month {
	if m := k.month.Load(); m != nil && ms >= m.start && ms < m.end {
		return m
	}
	t := time.UnixMilli(int64(ms))
	y, mon, _ := t.Date()
	m := &month{
		start:  uint64(time.Date(y, mon, 1, 0, 0, 0, 0, t.Location()).UnixMilli()),
		end:    uint64(time.Date(y, mon+1, 1, 0, 0, 0, 0, t.Location()).UnixMilli()),
		number: uint32(y)*12 + uint32(mon),
	}
	k.month.Store(m)
	return m
}

func (k *keySource) append(dst []byte, now time.Time) []byte {
	v := k.next(uint64(now.UnixMilli()))
	ms := v >> 16
	m := k.monthOf(ms)
	var b [uniqueKeySize]byte
	copy(b[:], k.host[:])
	binary.BigEndian.PutUint16(b[4:], k.pid)
	binary.BigEndian.PutUint32(b[6:], k.salt+m.number)
	binary.BigEndian.PutUint32(b[10:], uint32(ms-m.start))
	binary.BigEndian.PutUint16(b[14:], uint16(v))
	return appendHex(dst, b[:])
}

// AppendUniqueKey appends a new unique message id, 32 upper-case hex digits. Keys
// of one process never repeat, whatever its clock does.
func AppendUniqueKey(dst []byte) []byte { return keys.append(dst, time.Now()) }

// NewUniqueKey is AppendUniqueKey as a string.
func NewUniqueKey() string {
	var buf [2 * uniqueKeySize]byte
	return string(AppendUniqueKey(buf[:0]))
}
