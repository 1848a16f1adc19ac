package message

import "encoding/binary"

// MaxBatch is the largest number of messages in a batch. Queue offsets of a batch
// are counted in 16 signed bits by RocketMQ, which corrupts a queue with more.
const MaxBatch = 32767

// batchFixed is a batch member without body and properties: size, magic, CRC,
// flag, body length, properties length.
const batchFixed = 4 + 4 + 4 + 4 + 4 + 2

// A BatchReader walks the messages in the body of a batch send, in place. Magic and
// CRC of a member are not looked at: clients write zeros.
type BatchReader struct {
	rest []byte
	n    int
	err  error
}

// NewBatchReader reads from the body of a batch send.
func NewBatchReader(body []byte) BatchReader { return BatchReader{rest: body} }

// Next gives the next message; body and props alias the batch. It is not ok at the
// end and at the first error, which [BatchReader.Err] tells.
func (r *BatchReader) Next() (flag int32, body, props []byte, ok bool) {
	if len(r.rest) == 0 || r.err != nil {
		return 0, nil, nil, false
	}
	if r.n == MaxBatch {
		r.err = &LimitError{What: "batch members", Actual: r.n + 1, Limit: MaxBatch}
		return 0, nil, nil, false
	}
	b := r.rest
	if len(b) < batchFixed {
		return r.fail("available bytes", int64(len(b)), batchFixed, ErrShort)
	}
	size := int64(int32(binary.BigEndian.Uint32(b)))
	if size < batchFixed {
		return r.fail("size", size, batchFixed, ErrMalformed)
	}
	if size > int64(len(b)) {
		return r.fail("size", size, int64(len(b)), ErrShort)
	}
	b, r.rest = b[:size:size], b[size:]
	flag = int32(binary.BigEndian.Uint32(b[12:]))
	n := int64(int32(binary.BigEndian.Uint32(b[16:])))
	if n < 0 || n > size-batchFixed {
		return r.fail("body length", n, size-batchFixed, ErrMalformed)
	}
	body, b = b[20:20+n:20+n], b[20+n:]
	n, props = int64(int16(binary.BigEndian.Uint16(b))), b[2:]
	if n != int64(len(props)) {
		return r.fail("properties length", n, int64(len(props)), ErrMalformed)
	}
	r.n++
	return flag, body, props, true
}

func (r *BatchReader) fail(field string, actual, limit int64, kind error) (int32, []byte, []byte, bool) {
	r.err = &FormatError{What: "batch member", Field: field, Actual: actual, Limit: limit, Kind: kind}
	return 0, nil, nil, false
}

// Len tells how many messages Next has given.
func (r *BatchReader) Len() int { return r.n }

// Err tells what ended the walk early: a [*FormatError], a [*LimitError] for more
// than [MaxBatch] members, or nil.
func (r *BatchReader) Err() error { return r.err }

// AppendBatchMember appends a message to the body of a batch send. The caller keeps
// props within [MaxProperties]; AppendBatchMember panics otherwise.
func AppendBatchMember(dst []byte, flag int32, body, props []byte) []byte {
	if len(props) > MaxProperties {
		panic("message: append batch member: properties do not fit")
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(batchFixed+len(body)+len(props)))
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(flag))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(body)))
	dst = append(dst, body...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(props)))
	return append(dst, props...)
}
