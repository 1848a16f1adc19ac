package remotingdoor

import (
	"encoding/binary"
	"net/netip"
	"strconv"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

// The hot answers are written by hand: they are the same but for a few numbers, and
// there are millions of them a second.

// hexPairs are the two digits of every byte.
var hexPairs = func() (t [256][2]byte) {
	const digits = "0123456789ABCDEF"
	for i := range t {
		t[i] = [2]byte{digits[i>>4], digits[i&15]}
	}
	return t
}()

// appendHostHex is the address part of an offset message id.
func appendHostHex(dst []byte, host netip.AddrPort) []byte {
	id := message.AppendOffsetID(nil, host, 0)
	return append(dst, id[:len(id)-16]...)
}

func appendHex64(dst []byte, v uint64) []byte {
	var b [16]byte
	for i := 14; i >= 0; i -= 2 {
		b[i], b[i+1] = hexPairs[byte(v)][0], hexPairs[byte(v)][1]
		v >>= 8
	}
	return append(dst, b[:]...)
}

func itoa(v int64) string { return strconv.FormatInt(v, 10) }

// beginFrame leaves room for the two words of a frame; endFrame fills them. at is where the frame begins.
func beginFrame(dst []byte) []byte { return append(dst, 0, 0, 0, 0, 0, 0, 0, 0) }

// endHeader fills the second word of the frame at dst[at:], whose header ends here.
func endHeader(dst []byte, at int, enc protocol.Encoding) {
	binary.BigEndian.PutUint32(dst[at+4:], uint32(enc)<<24|uint32(len(dst)-at-8))
}

// endFrame fills the first word of the frame at dst[at:], which ends here.
func endFrame(dst []byte, at int) { binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4)) }

const jsonTail = `,"serializeTypeCurrentRPC":"JSON","version":513}`

// appendJSONEnd closes extFields and the header of a successful JSON answer.
func appendJSONEnd(dst []byte, opaque int32, remark string) []byte {
	dst = append(dst, `},"flag":1,"language":"JAVA","opaque":`...)
	dst = strconv.AppendInt(dst, int64(opaque), 10)
	if remark != "" {
		dst = append(dst, `,"remark":"`...)
		dst = append(dst, remark...)
		dst = append(dst, '"')
	}
	return append(dst, jsonTail...)
}

// binaryHead is the fixed part of a binary header up to the remark's length.
func appendBinaryHead(dst []byte, code, opaque int32, remark string) []byte {
	be := binary.BigEndian
	dst = be.AppendUint16(dst, uint16(code))
	dst = append(dst, byte(protocol.LanguageJava))
	dst = be.AppendUint16(dst, protocol.ServerVersion)
	dst = be.AppendUint32(dst, uint32(opaque))
	dst = be.AppendUint32(dst, protocol.FlagResponse)
	dst = be.AppendUint32(dst, uint32(len(remark)))
	return append(dst, remark...)
}

// beginValue begins a field of a binary header whose value is appended next; endValue fills its length.
func beginValue(dst []byte, key string) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(key)))
	dst = append(dst, key...)
	return append(dst, 0, 0, 0, 0)
}

func endValue(dst []byte, at int) []byte {
	binary.BigEndian.PutUint32(dst[at-4:], uint32(len(dst)-at))
	return dst
}

func appendIntField(dst []byte, key string, v int64) []byte {
	dst = beginValue(dst, key)
	return endValue(strconv.AppendInt(dst, v, 10), len(dst))
}

// appendSent appends the answer of a send: where its messages are.
func (w *worker) appendSent(dst []byte, f *flight, r *sendReply, hostHex []byte) []byte {
	key := f.keys[r.key:r.keyTo]
	if r.sent.KeyLen > 0 {
		key = f.batch.Records[r.sent.KeyAt : r.sent.KeyAt+r.sent.KeyLen]
	}
	conf := w.d.b.Config()
	at := len(dst)
	dst = beginFrame(dst)
	first := &f.batch.Msgs[r.sent.First]
	if r.enc == protocol.Binary {
		dst = appendBinaryHead(dst, protocol.RespSuccess, r.opaque, "")
		ext := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		dst = endValueText(dst, "MSG_REGION", conf.Region)
		dst = endValueText(dst, "TRACE_ON", strconv.FormatBool(conf.TraceOn))
		dst = beginValue(dst, "msgId")
		dst = endValue(appendMessageIDs(dst, f, r, hostHex), len(dst))
		dst = appendIntField(dst, "queueId", int64(r.sent.QueueID))
		dst = appendIntField(dst, "queueOffset", int64(first.Offset))
		if len(key) > 0 {
			dst = beginValue(dst, "transactionId")
			dst = endValue(append(dst, key...), len(dst))
		}
		binary.BigEndian.PutUint32(dst[ext:], uint32(len(dst)-ext-4))
	} else {
		dst = append(dst, w.sentHead(conf)...)
		dst = appendMessageIDs(dst, f, r, hostHex)
		dst = append(dst, `","queueId":"`...)
		dst = strconv.AppendInt(dst, int64(r.sent.QueueID), 10)
		dst = append(dst, `","queueOffset":"`...)
		dst = strconv.AppendInt(dst, int64(first.Offset), 10)
		dst = append(dst, '"')
		if len(key) > 0 {
			dst = append(dst, `,"transactionId":`...)
			dst = protocol.AppendJSONString(dst, key)
		}
		dst = appendJSONEnd(dst, r.opaque, "")
	}
	endHeader(dst, at, r.enc)
	endFrame(dst, at)
	return dst
}

// sentHead is how the JSON answers of sends begin, up to the message id.
func (w *worker) sentHead(conf *broker.Config) []byte {
	if conf == w.headFor {
		return w.head
	}
	dst := append(w.head[:0], `{"code":0,"extFields":{"MSG_REGION":`...)
	dst = protocol.AppendJSONString(dst, conf.Region)
	dst = append(dst, `,"TRACE_ON":"`...)
	dst = strconv.AppendBool(dst, conf.TraceOn)
	w.head, w.headFor = append(dst, `","msgId":"`...), conf
	return w.head
}

func endValueText(dst []byte, key, value string) []byte {
	dst = beginValue(dst, key)
	return endValue(append(dst, value...), len(dst))
}

// appendMessageIDs appends the offset ids of a request's messages, separated by commas.
func appendMessageIDs(dst []byte, f *flight, r *sendReply, hostHex []byte) []byte {
	for i := range r.sent.Count {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, hostHex...)
		dst = appendHex64(dst, uint64(f.batch.Position(r.sent.First+i)))
	}
	return dst
}

// statusTexts are the remarks of pulls, which clients show.
var statusTexts = [...]string{
	broker.Found:               "FOUND",
	broker.NoMatchedMessage:    "NO_MATCHED_MESSAGE",
	broker.MessageWasRemoving:  "MESSAGE_WAS_REMOVING",
	broker.OffsetOverflowOne:   "OFFSET_OVERFLOW_ONE",
	broker.OffsetOverflowBadly: "OFFSET_OVERFLOW_BADLY",
	broker.OffsetTooSmall:      "OFFSET_TOO_SMALL",
	broker.NoMessageInQueue:    "NO_MESSAGE_IN_QUEUE",
	broker.OffsetReset:         "OFFSET_RESET",
}

// pullCode is the response code of a pull that ended with a status, having asked for an offset.
func pullCode(st broker.PullStatus, asked message.QueueOffset) int32 {
	switch st {
	case broker.Found:
		return protocol.RespSuccess
	case broker.NoMatchedMessage, broker.MessageWasRemoving:
		return protocol.RespPullRetryImmediately
	case broker.OffsetOverflowOne:
		return protocol.RespPullNotFound
	case broker.NoMessageInQueue:
		if asked == 0 {
			return protocol.RespPullNotFound
		}
	}
	return protocol.RespPullOffsetMoved
}

// appendPulled appends the header of a pull's answer; the records follow, then endFrame.
func appendPulled(dst []byte, enc protocol.Encoding, opaque, code int32, r *broker.PullResult) []byte {
	at := len(dst)
	dst = beginFrame(dst)
	remark := statusTexts[r.Status]
	if enc == protocol.Binary {
		dst = appendBinaryHead(dst, code, opaque, remark)
		ext := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		dst = appendIntField(dst, "groupSysFlag", int64(r.GroupSysFlag))
		dst = appendIntField(dst, "maxOffset", int64(r.Max))
		dst = appendIntField(dst, "minOffset", int64(r.Min))
		dst = appendIntField(dst, "nextBeginOffset", int64(r.Next))
		dst = appendIntField(dst, "suggestWhichBrokerId", 0)
		dst = appendIntField(dst, "topicSysFlag", int64(r.TopicSysFlag))
		binary.BigEndian.PutUint32(dst[ext:], uint32(len(dst)-ext-4))
	} else {
		dst = append(dst, `{"code":`...)
		dst = strconv.AppendInt(dst, int64(code), 10)
		dst = append(dst, `,"extFields":{"groupSysFlag":"`...)
		dst = strconv.AppendInt(dst, int64(r.GroupSysFlag), 10)
		dst = append(dst, `","maxOffset":"`...)
		dst = strconv.AppendInt(dst, int64(r.Max), 10)
		dst = append(dst, `","minOffset":"`...)
		dst = strconv.AppendInt(dst, int64(r.Min), 10)
		dst = append(dst, `","nextBeginOffset":"`...)
		dst = strconv.AppendInt(dst, int64(r.Next), 10)
		dst = append(dst, `","suggestWhichBrokerId":"0","topicSysFlag":"`...)
		dst = strconv.AppendInt(dst, int64(r.TopicSysFlag), 10)
		dst = append(dst, '"')
		dst = appendJSONEnd(dst, opaque, remark)
	}
	endHeader(dst, at, enc)
	endFrame(dst, at)
	return dst
}
