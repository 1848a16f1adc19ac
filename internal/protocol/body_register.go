package protocol

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// RegisterBrokerBody is the body of 103: a broker's topics.
type RegisterBrokerBody struct {
	FilterServerList            []string           `json:"filterServerList"` // obsolete, empty
	TopicConfigSerializeWrapper TopicConfigWrapper `json:"topicConfigSerializeWrapper"`
}

const (
	// bareWrapperBefore is the version from which on a registration has a
	// RegisterBrokerBody around its topics: 3.0.11.
	bareWrapperBefore = 37
	// maxInflated bounds what a compressed registration may become, in bytes.
	maxInflated = 32 << 20
	// topicMemory is what a topic takes in memory, about; see memoryPerByte.
	topicMemory = 200
	// zlibMagic begins a zlib stream. A JSON text never does.
	zlibMagic = 0x78
)

// ParseRegisterBroker reads the body of a registration by a broker of that version.
// Whether it is compressed is seen from its first byte: brokers of 5.x compress it and
// say that they did not. crc is the header's bodyCrc32, 0 for none. The error is a
// [*BodyError].
func ParseRegisterBroker(b []byte, version, crc int32) (*RegisterBrokerBody, error) {
	if crc != 0 && crc != BodyCRC(b) {
		return nil, &BodyError{Why: fmt.Sprintf("has the CRC %d instead of %d", BodyCRC(b), crc)}
	}
	body := new(RegisterBrokerBody)
	switch {
	case len(b) > 0 && b[0] == zlibMagic:
		return body, body.inflate(b)
	case version < bareWrapperBefore:
		return body, ParseJSON(b, &body.TopicConfigSerializeWrapper)
	}
	return body, ParseJSON(b, body)
}

// BodyCRC is the bodyCrc32 of a registration.
func BodyCRC(b []byte) int32 { return int32(crc32.ChecksumIEEE(b) & 0x7FFFFFFF) }

// inflate reads the compressed form: counted pieces, each behind its length.
func (body *RegisterBrokerBody) inflate(b []byte) error {
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return &BodyError{Why: "has no zlib stream: " + err.Error()}
	}
	p := pieces{from: io.LimitReader(z, maxInflated)}
	wrapper := &body.TopicConfigSerializeWrapper
	if text := p.next(); p.err == nil {
		p.err = ParseJSON(text, &wrapper.DataVersion)
	}
	wrapper.TopicConfigTable = map[string]TopicConfig{}
	for range p.count() {
		text := p.next()
		if p.charge(topicMemory); p.err != nil {
			return p.err
		}
		topic, err := parseTopicText(string(text))
		if err != nil {
			return &BodyError{At: p.at, Why: err.Error()}
		}
		wrapper.TopicConfigTable[topic.TopicName] = topic
	}
	if text := p.next(); p.err == nil {
		p.err = ParseJSON(text, &body.FilterServerList)
	}
	if p.err != nil || p.ended() { // before 5.0 that was all
		return p.err
	}
	wrapper.TopicQueueMappingInfoMap = map[string]TopicQueueMappingInfo{}
	for range p.count() {
		var info TopicQueueMappingInfo
		if text := p.next(); p.err == nil {
			p.err = ParseJSON(text, &info)
		}
		if p.charge(topicMemory); p.err != nil {
			return p.err
		}
		wrapper.TopicQueueMappingInfoMap[info.Topic] = info
	}
	return p.err
}

// pieces reads lengths and what they announce. The first error stays.
type pieces struct {
	from  io.Reader
	at    int // bytes read
	spent int // memory taken
	err   error
	head  [4]byte
	have  int // bytes of head that were read ahead
}

// charge bounds the memory that is taken by a multiple of what was read.
func (p *pieces) charge(n int) {
	if p.spent += n; p.err == nil && p.spent > slackMemory+memoryPerByte*p.at {
		p.err = &BodyError{At: p.at, Why: "would take much more memory than it has bytes"}
	}
}

// word reads an i32.
func (p *pieces) word(what string) int {
	if p.err != nil {
		return 0
	}
	if _, err := io.ReadFull(p.from, p.head[p.have:]); err != nil {
		p.err = &BodyError{At: p.at, Why: "ends before a " + what + ": " + err.Error()}
		return 0
	}
	p.have = 0
	p.at += len(p.head)
	n := int(int32(binary.BigEndian.Uint32(p.head[:])))
	if n < 0 || n > maxInflated {
		p.err = &BodyError{At: p.at, Why: fmt.Sprintf("has a %s of %d", what, n)}
		return 0
	}
	return n
}

func (p *pieces) count() int { return p.word("count") }

// next reads a piece. It grows with what is there, not with what is announced.
func (p *pieces) next() []byte {
	n := p.word("length")
	if p.err != nil {
		return nil
	}
	var piece bytes.Buffer
	got, err := io.CopyN(&piece, p.from, int64(n))
	p.at += int(got)
	if err != nil {
		p.err = &BodyError{At: p.at, Why: "ends inside a piece: " + err.Error()}
	}
	return piece.Bytes()
}

// ended tells whether nothing follows.
func (p *pieces) ended() bool {
	n, err := io.ReadFull(p.from, p.head[:1])
	p.have = n
	return errors.Is(err, io.EOF)
}

// parseTopicText reads "name readQueueNums writeQueueNums perm filterType attributes";
// attributes may be missing.
func parseTopicText(text string) (TopicConfig, error) {
	parts := strings.SplitN(text, " ", 6)
	if len(parts) < 5 {
		return TopicConfig{}, fmt.Errorf("has a topic of %d parts: %.64q", len(parts), text)
	}
	c := TopicConfig{TopicName: parts[0], TopicFilterType: parts[4], Attributes: map[string]string{}}
	for i, into := range []*int32{&c.ReadQueueNums, &c.WriteQueueNums, &c.Perm} {
		n, err := strconv.ParseInt(parts[i+1], 10, 32)
		if err != nil {
			return TopicConfig{}, fmt.Errorf("has a topic with a bad number: %.64q", text)
		}
		*into = int32(n)
	}
	if len(parts) == 6 && parts[5] != "" {
		if err := ParseJSON([]byte(parts[5]), &c.Attributes); err != nil {
			return TopicConfig{}, fmt.Errorf("has a topic with bad attributes: %w", err)
		}
	}
	return c, nil
}

// AppendRegisterBroker appends the body of a registration; compressed loses the order
// and sysFlag of topics, which have no place in that form.
func AppendRegisterBroker(dst []byte, body *RegisterBrokerBody, compressed bool) []byte {
	if !compressed {
		return AppendJSON(dst, body)
	}
	wrapper := &body.TopicConfigSerializeWrapper
	var out []byte
	piece := func(b []byte) {
		out = binary.BigEndian.AppendUint32(out, uint32(len(b)))
		out = append(out, b...)
	}
	piece(AppendJSON(nil, wrapper.DataVersion))
	out = binary.BigEndian.AppendUint32(out, uint32(len(wrapper.TopicConfigTable)))
	for _, name := range slices.Sorted(maps.Keys(wrapper.TopicConfigTable)) {
		c := wrapper.TopicConfigTable[name]
		text := fmt.Appendf(nil, "%s %d %d %d %s ", c.TopicName, c.ReadQueueNums, c.WriteQueueNums, c.Perm, c.TopicFilterType)
		piece(AppendJSON(text, c.Attributes))
	}
	piece(AppendJSON(nil, body.FilterServerList))
	out = binary.BigEndian.AppendUint32(out, uint32(len(wrapper.TopicQueueMappingInfoMap)))
	for _, name := range slices.Sorted(maps.Keys(wrapper.TopicQueueMappingInfoMap)) {
		piece(AppendJSON(nil, wrapper.TopicQueueMappingInfoMap[name]))
	}
	buf := bytes.NewBuffer(dst)
	z := zlib.NewWriter(buf)
	// A Buffer takes everything: neither call can fail.
	_, _ = z.Write(out)
	_ = z.Close()
	return buf.Bytes()
}
