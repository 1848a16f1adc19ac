package protocol

import (
	"encoding/binary"
	"math"
)

// An Encoding is the form of a frame's header.
type Encoding byte

// The encodings. The value is the top byte of a frame's second word.
const (
	JSON   Encoding = 0
	Binary Encoding = 1 // RocketMQ calls it ROCKETMQ
)

// String gives the name on the wire.
func (e Encoding) String() string {
	switch e {
	case JSON:
		return "JSON"
	case Binary:
		return "ROCKETMQ"
	}
	return "unknown"
}

// Bits of a command's Flag.
const (
	FlagResponse = 1 // answers a request
	FlagOneway   = 2 // must not be answered
)

// ServerVersion is what we say we are: the ordinal of RocketMQ 5.5.0. Clients
// switch features on by it.
const ServerVersion = 513

// A Command is a frame: a request or a response. The zero value is an empty JSON
// request of a Java client.
//
// A decoded command aliases the frame, and what it holds is valid as long as the
// frame is and until the next Decode.
type Command struct {
	Code     int32 // Req… of a request, Resp… of a response
	Language Language
	Version  int32 // the sender's version, an ordinal
	Opaque   int32 // by which a response finds its request
	Flag     int32 // FlagResponse, FlagOneway
	Remark   string
	Encoding Encoding
	// OpaqueMissing says that a decoded JSON header had no opaque. A server then
	// gives it a number of its own.
	OpaqueMissing bool
	Ext           Ext
	Body          []byte
}

// IsResponse tells whether c answers a request.
func (c *Command) IsResponse() bool { return c.Flag&FlagResponse != 0 }

// IsOneway tells whether c must not be answered.
func (c *Command) IsOneway() bool { return c.Flag&FlagOneway != 0 }

// Name gives the name of the code of a request or response.
func (c *Command) Name() string {
	if c.IsResponse() {
		return RespName(c.Code)
	}
	return ReqName(c.Code)
}

// Reply makes a response to c: in its encoding, with its opaque and our version.
func (c *Command) Reply(code int32, remark string) *Command {
	return &Command{
		Code: code, Language: LanguageJava, Version: ServerVersion, Opaque: c.Opaque, Flag: FlagResponse,
		Remark: remark, Encoding: c.Encoding,
	}
}

// A frame begins with two words: the length of what follows the first, and the
// header's encoding (top byte) and length.
const (
	lengthSize = 4
	frameHead  = 8
	headerMask = 0xFFFFFF
)

// FrameSize tells from the first bytes of b how long the frame is that b begins
// with, both words included. It is 0 when b is too short to tell, and may be more
// than len(b). The error is a [*FrameError]: the frame is longer than max, too
// short to be one, or its header does not fit.
func FrameSize(b []byte, max int) (n int, err error) {
	if len(b) < lengthSize {
		return 0, nil
	}
	length := int64(int32(binary.BigEndian.Uint32(b)))
	if length < frameHead-lengthSize {
		return 0, &FrameError{Field: "length", Actual: length, Limit: frameHead - lengthSize}
	}
	if length+lengthSize > int64(max) {
		return 0, &FrameError{Field: "length", Actual: length, Limit: int64(max) - lengthSize}
	}
	if len(b) >= frameHead {
		if header := int64(binary.BigEndian.Uint32(b[4:]) & headerMask); header > length-4 {
			return 0, &FrameError{Field: "header length", Actual: header, Limit: length - 4}
		}
	}
	return int(length) + lengthSize, nil
}

// Decode reads a whole frame, as [FrameSize] measures it, into c, which may have
// held another. Everything in c but Remark aliases frame or c's own memory. Errors
// are [*FrameError] and [*HeaderError]; c is then worth nothing.
func (c *Command) Decode(frame []byte) error {
	header, err := c.open(frame)
	if err != nil {
		return err
	}
	return c.decodeHeader(header)
}

// open empties c, takes the frame apart and returns its header.
func (c *Command) open(frame []byte) (header []byte, err error) {
	n, err := FrameSize(frame, math.MaxInt)
	if err != nil {
		return nil, err
	}
	if n == 0 || n != len(frame) {
		return nil, &FrameError{Field: "length", Actual: int64(n) - lengthSize, Limit: int64(len(frame)) - lengthSize}
	}
	c.reset()
	word := binary.BigEndian.Uint32(frame[4:])
	end := frameHead + int(word&headerMask)
	c.Body = frame[end:]
	c.Encoding = Encoding(word >> 24)
	return frame[frameHead:end:end], nil
}

func (c *Command) decodeHeader(header []byte) error {
	switch c.Encoding {
	case JSON:
		return c.decodeJSON(header)
	case Binary:
		return c.decodeBinary(header)
	}
	return &HeaderError{Encoding: c.Encoding, Why: "has an encoding that does not exist"}
}

func (c *Command) reset() {
	c.Code, c.Language, c.Version, c.Opaque, c.Flag = 0, LanguageUnknown, 0, 0, 0
	c.Remark, c.OpaqueMissing = "", false
	c.Ext.Reset()
}

// Append appends c as a whole frame in c.Encoding. Keys are sorted, nothing is
// written for an empty remark or empty ext fields. The caller keeps the header
// under 16 MiB and the frame under 2 GiB; Append panics otherwise, for the bytes
// would not be a frame.
func (c *Command) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	encoding := JSON
	if c.Encoding == Binary {
		encoding = Binary
		dst = c.appendBinary(dst)
	} else {
		dst = c.appendJSON(dst)
	}
	header := len(dst) - start - frameHead
	dst = append(dst, c.Body...)
	length := len(dst) - start - lengthSize
	if header > headerMask || length > math.MaxInt32 {
		panic("protocol: append command: header or body does not fit a frame")
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(length))
	binary.BigEndian.PutUint32(dst[start+4:], uint32(header)|uint32(encoding)<<24)
	return dst
}
