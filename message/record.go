package message

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"net/netip"
)

// A Position is a byte position in a shard's log. Classic clients call it the
// commit-log offset or physical offset.
type Position int64

// A QueueOffset is the number of a message in its queue.
type QueueOffset int64

// Magic numbers of a record. Version 2 has a two-byte topic length; clients before
// 5.0 do not know it, so it is used only for topics that need it.
const (
	MagicV1 = 0xDAA320A7
	MagicV2 = 0xDAA320AB
)

// Where the log's tail writes the two numbers that only it knows, in bytes from the
// start of a record. The third is at [StoreTimeAt].
const (
	RecordQueueOffsetAt = 20
	RecordPositionAt    = 28
)

const (
	crcAt        = 8
	sysFlagAt    = 36
	bornHostAt   = 48
	fixedSize    = 91 // of a V1 record with two IPv4 hosts, without body, topic and properties
	hostExtra    = 12 // an IPv6 host is longer by this
	hostMask     = FlagBornHostV6 | FlagStoreHostV6
	maxTopicV1   = 127
	storeTimeV4  = 56
	storeTimeV6  = 68
	minHeadBytes = 8 // total size and magic
)

// A Record is a message as it is stored. In a parsed record the slices alias the
// bytes it was parsed from.
type Record struct {
	Topic, Body, Properties []byte
	QueueID                 int32
	Flag                    int32 // the producer's, opaque
	SysFlag                 int32 // Flag… bits; the encoder ignores and sets the two of the hosts
	ReconsumeTimes          int32
	BodyCRC                 uint32 // CRC-32 (IEEE) of Body without its top bit; computed by the encoder
	QueueOffset             QueueOffset
	Position                Position
	BornTime, StoreTime     int64 // ms since 1970
	BornHost, StoreHost     netip.AddrPort
	PreparedOffset          int64 // position of the half message in a committed record, else 0
}

// Check tells whether r can be encoded: [*LimitError] for a topic over
// [MaxLongTopic], properties over [MaxProperties] or a body that no record holds.
func (r *Record) Check() error {
	switch {
	case len(r.Topic) > MaxLongTopic:
		return &LimitError{What: "topic", Actual: len(r.Topic), Limit: MaxLongTopic}
	case len(r.Properties) > MaxProperties:
		return &LimitError{What: "properties", Actual: len(r.Properties), Limit: MaxProperties}
	case len(r.Body) > math.MaxInt32-MaxProperties-MaxLongTopic-256:
		return &LimitError{What: "body", Actual: len(r.Body), Limit: math.MaxInt32 - MaxProperties - MaxLongTopic - 256}
	}
	return nil
}

// AppendRecord appends r in the stored encoding. It computes the body's CRC, uses
// version 2 when the topic is longer than 127 bytes, and sets the two address bits
// of the sysFlag by the addresses, whatever r.SysFlag says; an IPv4-mapped address
// is IPv4, an invalid one 0.0.0.0. Zero in QueueOffset, Position and StoreTime
// leaves holes for [Patch].
//
// The caller has made sure that r passes [Record.Check]; AppendRecord panics when
// a length does not fit its field, for the bytes would not be a record.
func AppendRecord(dst []byte, r *Record) []byte {
	start := len(dst)
	dst = BeginRecord(dst, r)
	dst = append(dst, r.Properties...)
	dst, err := EndRecord(dst, start, len(dst)-len(r.Properties))
	if err != nil {
		panic("message: append record: " + err.Error())
	}
	return dst
}

// BeginRecord appends everything of r up to its properties, which the caller
// appends behind it before [EndRecord]: so they can be written straight into the
// record. r.Properties is not looked at. The properties begin at the length of
// what BeginRecord returns.
func BeginRecord(dst []byte, r *Record) []byte {
	if len(r.Topic) > math.MaxInt16 || len(r.Body) > math.MaxInt32 {
		panic("message: begin record: topic or body does not fit a record")
	}
	born, store := r.BornHost.Addr().Unmap(), r.StoreHost.Addr().Unmap()
	sysFlag := uint32(r.SysFlag) &^ hostMask
	if born.Is6() {
		sysFlag |= FlagBornHostV6
	}
	if store.Is6() {
		sysFlag |= FlagStoreHostV6
	}
	magic := uint32(MagicV1)
	if len(r.Topic) > maxTopicV1 {
		magic = MagicV2
	}
	be := binary.BigEndian
	dst = append(dst, 0, 0, 0, 0) // the total size, see EndRecord
	dst = be.AppendUint32(dst, magic)
	dst = be.AppendUint32(dst, bodyCRC(r.Body))
	dst = be.AppendUint32(dst, uint32(r.QueueID))
	dst = be.AppendUint32(dst, uint32(r.Flag))
	dst = be.AppendUint64(dst, uint64(r.QueueOffset))
	dst = be.AppendUint64(dst, uint64(r.Position))
	dst = be.AppendUint32(dst, sysFlag)
	dst = be.AppendUint64(dst, uint64(r.BornTime))
	dst = appendHost(dst, born, r.BornHost.Port())
	dst = be.AppendUint64(dst, uint64(r.StoreTime))
	dst = appendHost(dst, store, r.StoreHost.Port())
	dst = be.AppendUint32(dst, uint32(r.ReconsumeTimes))
	dst = be.AppendUint64(dst, uint64(r.PreparedOffset))
	dst = be.AppendUint32(dst, uint32(len(r.Body)))
	dst = append(dst, r.Body...)
	if magic == MagicV1 {
		dst = append(dst, byte(len(r.Topic)))
	} else {
		dst = be.AppendUint16(dst, uint16(len(r.Topic)))
	}
	dst = append(dst, r.Topic...)
	return append(dst, 0, 0) // the properties' length, see EndRecord
}

// EndRecord completes the record that began at dst[start] and whose properties
// began at dst[props]. It cuts the record off and gives a [*LimitError] when the
// properties are larger than [MaxProperties].
func EndRecord(dst []byte, start, props int) ([]byte, error) {
	n := len(dst) - props
	if n > MaxProperties {
		return dst[:start], &LimitError{What: "properties", Actual: n, Limit: MaxProperties}
	}
	size := len(dst) - start
	if size > math.MaxInt32 {
		return dst[:start], &LimitError{What: "record", Actual: size, Limit: math.MaxInt32}
	}
	binary.BigEndian.PutUint16(dst[props-2:], uint16(n))
	binary.BigEndian.PutUint32(dst[start:], uint32(size))
	return dst, nil
}

func appendHost(dst []byte, a netip.Addr, port uint16) []byte {
	switch {
	case a.Is6():
		b := a.As16()
		dst = append(dst, b[:]...)
	case a.Is4():
		b := a.As4()
		dst = append(dst, b[:]...)
	default:
		dst = append(dst, 0, 0, 0, 0)
	}
	return binary.BigEndian.AppendUint32(dst, uint32(port))
}

func bodyCRC(body []byte) uint32 { return crc32.ChecksumIEEE(body) & 0x7FFFFFFF }

// StoreTimeAt tells where the store time of an encoded record is: behind the born
// host, which has two sizes.
func StoreTimeAt(rec []byte) int {
	if rec[sysFlagAt+3]&FlagBornHostV6 != 0 {
		return storeTimeV6
	}
	return storeTimeV4
}

// Patch writes into an encoded record what is known only when its place in the
// log is.
func Patch(rec []byte, offset QueueOffset, pos Position, storeTime int64) {
	binary.BigEndian.PutUint64(rec[RecordQueueOffsetAt:], uint64(offset))
	binary.BigEndian.PutUint64(rec[RecordPositionAt:], uint64(pos))
	binary.BigEndian.PutUint64(rec[StoreTimeAt(rec):], uint64(storeTime))
}

// RecordSize gives the size of the record that b begins with, from its first eight
// bytes: enough to walk over records that are known to be whole. The error is a
// [*FormatError].
func RecordSize(b []byte) (int, error) {
	if len(b) < minHeadBytes {
		return 0, &FormatError{What: "record", Field: "available bytes", Actual: int64(len(b)), Limit: minHeadBytes, Kind: ErrShort}
	}
	magic := binary.BigEndian.Uint32(b[4:])
	if magic != MagicV1 && magic != MagicV2 {
		return 0, &FormatError{What: "record", Field: "magic", Actual: int64(magic), Limit: MagicV2, Kind: ErrMalformed}
	}
	size := int32(binary.BigEndian.Uint32(b))
	if size < fixedSize {
		return 0, &FormatError{What: "record", Field: "total size", Actual: int64(size), Limit: fixedSize, Kind: ErrMalformed}
	}
	if int(size) > len(b) {
		return 0, &FormatError{What: "record", Field: "total size", Actual: int64(size), Limit: int64(len(b)), Kind: ErrShort}
	}
	return int(size), nil
}

// Parse reads the record that b begins with and tells its size. Nothing is copied:
// Topic, Body and Properties alias b. All sizes are checked, the body's CRC is not,
// see [Record.CheckBody]. After an error, a [*FormatError], r is worth nothing.
func (r *Record) Parse(b []byte) (n int, err error) {
	n, err = RecordSize(b)
	if err != nil {
		return 0, err
	}
	b = b[:n:n]
	be := binary.BigEndian
	r.BodyCRC = be.Uint32(b[crcAt:])
	r.QueueID = int32(be.Uint32(b[12:]))
	r.Flag = int32(be.Uint32(b[16:]))
	r.QueueOffset = QueueOffset(be.Uint64(b[RecordQueueOffsetAt:]))
	r.Position = Position(be.Uint64(b[RecordPositionAt:]))
	r.SysFlag = int32(be.Uint32(b[sysFlagAt:]))
	r.BornTime = int64(be.Uint64(b[40:]))
	fixed := fixedSize
	if r.SysFlag&FlagBornHostV6 != 0 {
		fixed += hostExtra
	}
	if r.SysFlag&FlagStoreHostV6 != 0 {
		fixed += hostExtra
	}
	if n < fixed {
		return 0, &FormatError{What: "record", Field: "total size", Actual: int64(n), Limit: int64(fixed), Kind: ErrMalformed}
	}
	v2 := be.Uint32(b[4:]) == MagicV2
	rest := b[bornHostAt:]
	if r.BornHost, rest, err = parseHost(rest, r.SysFlag&FlagBornHostV6 != 0); err != nil {
		return 0, err
	}
	r.StoreTime = int64(be.Uint64(rest))
	if r.StoreHost, rest, err = parseHost(rest[8:], r.SysFlag&FlagStoreHostV6 != 0); err != nil {
		return 0, err
	}
	r.ReconsumeTimes = int32(be.Uint32(rest))
	r.PreparedOffset = int64(be.Uint64(rest[4:]))
	return n, r.parseTail(rest[12:], v2)
}

// parseTail reads the three parts with a length of their own. b holds at least the
// four bytes of the body's length.
func (r *Record) parseTail(b []byte, v2 bool) error {
	size := int64(int32(binary.BigEndian.Uint32(b)))
	if size < 0 || size > int64(len(b)-4) {
		return malformed("body length", size, int64(len(b)-4))
	}
	r.Body, b = b[4:4+size:4+size], b[4+size:]
	if v2 {
		if len(b) < 2 {
			return malformed("body length", size, size-2)
		}
		size, b = int64(int16(binary.BigEndian.Uint16(b))), b[2:]
	} else {
		if len(b) < 1 {
			return malformed("body length", size, size-1)
		}
		size, b = int64(int8(b[0])), b[1:]
	}
	if size < 0 || size > int64(len(b)) {
		return malformed("topic length", size, int64(len(b)))
	}
	r.Topic, b = b[:size:size], b[size:]
	if len(b) < 2 {
		return malformed("topic length", size, size-2)
	}
	size, b = int64(int16(binary.BigEndian.Uint16(b))), b[2:]
	if size != int64(len(b)) {
		return malformed("properties length", size, int64(len(b)))
	}
	r.Properties = b
	return nil
}

func malformed(field string, actual, limit int64) error {
	return &FormatError{What: "record", Field: field, Actual: actual, Limit: limit, Kind: ErrMalformed}
}

func parseHost(b []byte, v6 bool) (netip.AddrPort, []byte, error) {
	var a netip.Addr
	if v6 {
		a, b = netip.AddrFrom16([16]byte(b)).Unmap(), b[16:]
	} else {
		a, b = netip.AddrFrom4([4]byte(b)), b[4:]
	}
	port := binary.BigEndian.Uint32(b)
	if port > math.MaxUint16 {
		return netip.AddrPort{}, nil, malformed("port", int64(int32(port)), math.MaxUint16)
	}
	return netip.AddrPortFrom(a, uint16(port)), b[4:], nil
}

// CheckBody tells whether the body is the one that was stored. The error is a
// [*FormatError].
func (r *Record) CheckBody() error {
	if sum := bodyCRC(r.Body); sum != r.BodyCRC {
		return malformed("body CRC", int64(r.BodyCRC), int64(sum))
	}
	return nil
}
