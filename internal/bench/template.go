package bench

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

// In JSON an opaque is written in ten digits, so that all frames of a template are of one length.
const (
	opaqueBase   = 1_000_000_000
	opaqueDigits = 10
	bornDigits   = 13 // milliseconds since 1970, until the year 2286
	keySize      = 32 // a unique key: letters that are the template's own, and a counter
	keyDigits    = 12 // the counter, in hex
)

// message numbers are what differs between the messages of a template.
type sending struct {
	opaque int32
	born   int64 // ms since 1970
	queue  int
	mark   mark // of the first message; those behind it in a batch have the next sequences
}

// A template is the frame of a send with holes where messages differ: a message costs a copy and a few digits.
type template struct {
	frame     []byte
	encoding  protocol.Encoding
	opaqueAt  int
	bornAt    int
	queueAt   int
	queueSize int // digits; a queue's number has zeros in front
	keyAt     int // the counter of the header's unique key
	members   []templateMember
	fillerCRC uint32
	key       uint64 // the last counter used
}

// templateMember is a message in the frame. Of a message that is sent alone keyAt is 0: its key is the header's.
type templateMember struct {
	keyAt, bodyAt, bodyEnd int
}

// templateOptions describe a template.
type templateOptions struct {
	group, topic, broker string
	encoding             protocol.Encoding
	queues               int // numbers are below that
	size                 int // bytes of a body
	batch                int // messages in a frame; 1: no batch
}

func newTemplate(o templateOptions) (*template, error) {
	prefix := make([]byte, (keySize-keyDigits)/2)
	rand.Read(prefix) // never fails
	keyPrefix := strings.ToUpper(hex.EncodeToString(prefix))
	props := sendProperties(keyPrefix)
	fill, crc := filler(o.size)
	body := append(fill, make([]byte, markSize)...)
	t := &template{encoding: o.encoding, fillerCRC: crc, queueSize: len(fmt.Sprint(max(0, o.queues-1)))}

	cmd := &protocol.Command{
		Code: protocol.ReqSendMessageV2, Language: protocol.LanguageGo, Version: protocol.ServerVersion,
		Opaque: math.MaxInt32, Encoding: o.encoding, Body: body,
	}
	if o.batch > 1 {
		cmd.Code = protocol.ReqSendBatchMessage
		cmd.Body = nil
		for range o.batch {
			cmd.Body = message.AppendBatchMember(cmd.Body, 0, body, props)
		}
	}
	if len(cmd.Body) > maxFrame {
		return nil, fmt.Errorf("a batch of %d messages of %d bytes has %d bytes; a frame takes %d", o.batch, o.size, len(cmd.Body), maxFrame)
	}
	header := protocol.SendMessageRequest{
		ProducerGroup: []byte(o.group), Topic: []byte(o.topic), DefaultTopic: []byte(message.TopicAutoCreate), DefaultTopicQueueNums: 4,
		BornTimestamp: int64(math.Pow10(bornDigits - 1)), Properties: &protocol.Field{Value: props}, Bname: []byte(o.broker),
	}
	header.EncodeShort(&cmd.Ext)
	cmd.Ext.Set("e", strings.Repeat("0", t.queueSize))
	cmd.Ext.Set("j", "0")
	cmd.Ext.SetBool("k", false)
	cmd.Ext.SetBool("m", o.batch > 1)
	t.frame = cmd.Append(nil)
	t.findHoles(keyPrefix, len(cmd.Body))
	t.findMembers(o, keyPrefix, len(cmd.Body), len(props))
	return t, nil
}

// maxFrame is what servers take by default, less room for a header.
const maxFrame = 16<<20 - 4096

// sendProperties are those of every message, as the official clients set them.
func sendProperties(keyPrefix string) []byte {
	props := message.AppendProperty(nil, message.PropertyUniqueKey, keyPrefix+strings.Repeat("0", keyDigits))
	return message.AppendProperty(props, message.PropertyWait, "true")
}

// findHoles looks for the values that newTemplate has set. Names of topics and groups cannot contain what is looked for.
func (t *template) findHoles(keyPrefix string, body int) {
	header := t.frame[:len(t.frame)-body]
	after := func(json, binary string) int {
		what := json
		if t.encoding == protocol.Binary {
			what = binary
		}
		at := bytes.Index(header, []byte(what))
		if at < 0 {
			panic("bench: no " + what + " in the frame of a send")
		}
		return at + len(what)
	}
	t.bornAt = after(`"g":"`, "\x00\x01g\x00\x00\x00\x0d")
	t.queueAt = after(`"e":"`, "\x00\x01e\x00\x00\x00"+string(rune(t.queueSize)))
	t.keyAt = after(keyPrefix, keyPrefix)
	t.opaqueAt = binaryOpaqueAt
	if t.encoding == protocol.JSON {
		t.opaqueAt = after(`"opaque":`, "")
	}
}

// binaryOpaqueAt is where the opaque is in a frame with a binary header: behind both words, code, language and version.
const binaryOpaqueAt = 8 + 2 + 1 + 2

func (t *template) findMembers(o templateOptions, keyPrefix string, body, props int) {
	at := len(t.frame) - body
	if o.batch <= 1 {
		t.members = []templateMember{{bodyAt: at, bodyEnd: len(t.frame)}}
		return
	}
	size := body / o.batch
	key := bytes.Index(t.frame[at:], []byte(keyPrefix)) + len(keyPrefix)
	for i := range o.batch {
		start := at + i*size
		end := start + size - props - 2 // the length of the properties has two bytes
		t.members = append(t.members, templateMember{keyAt: start + key, bodyAt: end - o.size, bodyEnd: end})
	}
}

// append appends the frame of s.
func (t *template) append(dst []byte, s *sending) []byte {
	start := len(dst)
	dst = append(dst, t.frame...)
	f := dst[start:]
	if t.encoding == protocol.JSON {
		putDecimal(f[t.opaqueAt:t.opaqueAt+opaqueDigits], uint64(s.opaque))
	} else {
		binary.BigEndian.PutUint32(f[t.opaqueAt:], uint32(s.opaque))
	}
	putDecimal(f[t.bornAt:t.bornAt+bornDigits], uint64(s.born))
	putDecimal(f[t.queueAt:t.queueAt+t.queueSize], uint64(s.queue))
	t.key++
	putHex(f[t.keyAt:t.keyAt+keyDigits], t.key)
	m := s.mark
	for i := range t.members {
		if i > 0 {
			m.sequence++
		}
		at := &t.members[i]
		m.put(f[at.bodyAt:at.bodyEnd], t.fillerCRC)
		if at.keyAt > 0 {
			t.key++
			putHex(f[at.keyAt:at.keyAt+keyDigits], t.key)
		}
	}
	return dst
}

const digits = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899"

// putDecimal fills b with v in decimal, with zeros in front.
func putDecimal(b []byte, v uint64) {
	i := len(b)
	for i >= 2 {
		q := v / 100
		d := 2 * (v - 100*q)
		b[i-1], b[i-2] = digits[d+1], digits[d]
		v = q
		i -= 2
	}
	if i == 1 {
		b[0] = '0' + byte(v%10)
	}
}

const upperHex = "0123456789ABCDEF"

// putHex fills b with v in hex, with zeros in front.
func putHex(b []byte, v uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = upperHex[v&15]
		v >>= 4
	}
}
