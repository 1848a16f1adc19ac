package broker

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"strconv"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/internal/shard"
	"github.com/metaqio/metaq/internal/view/key"
	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/message"
)

// SendRequest is a message, or a batch of messages, to be stored. The slices are not kept.
type SendRequest struct {
	Topic         []byte
	DefaultTopic  []byte // template when the topic has to be made
	DefaultQueues int32
	QueueID       int32 // negative: any
	SysFlag, Flag int32
	BornTime      int64 // ms
	BornHost      netip.AddrPort
	StoreHost     netip.AddrPort // the address that clients are told
	Reconsumed    int32
	// MaxReconsume overrides the group's limit when the message goes to a retry topic; negative: it does not.
	MaxReconsume int32
	Batch        bool   // Body holds several messages (SEND_BATCH)
	Properties   []byte // "name\1value\2…"
	Body         []byte

	dead     string           // why it goes to a dead-letter topic instead; "" when it does not
	internal bool             // the broker itself sends it: limits for clients do not count
	arrived  bool             // its delay is over
	resumed  bool             // an internal one: it is a half message again
	prepared message.Position // of the half message that is committed; 0: none is
	reply    bool             // it is for a client first, so it goes on when nothing can be stored
}

// Sent says where a request's messages are in the pass's batch.
type Sent struct {
	First, Count int   // of Batch.Msgs
	QueueID      int32 // that the client is told
	// KeyAt and KeyLen say where in Batch.Records the unique key is; of a batch of messages, none is.
	KeyAt, KeyLen int32
}

// Full says whether a request has no room beside what is in the pass's batch
// already: then the pass is to be ended, and a new one begun.
func (p *Pass) Full(r *SendRequest) bool {
	size := len(p.batch.Records) + len(p.batch.Commands)
	if size == 0 {
		return false
	}
	size += len(r.Body) + recordRoom
	if r.Batch {
		size += len(r.Body) / memberMin * (memberRoom + len(r.Topic))
	}
	return size > p.b.shard.MaxBatch()
}

// Sizes in bytes for Full.
const (
	recordRoom = 48 << 10 // more than a record has besides its body
	memberMin  = 22       // what a member of a batch has at least
	memberRoom = 160      // more than becomes of it, besides body, properties and topic
)

// Send puts messages into the pass's batch. They are stored once the batch is done.
func (p *Pass) Send(r *SendRequest) (Sent, error) {
	if why := p.b.refusing.Load(); why != nil && !r.internal && !r.reply {
		return Sent{}, why
	}
	d, err := p.destination(r)
	if err != nil {
		return Sent{}, err
	}
	queueID, err := p.chooseQueue(r, d)
	if err != nil {
		return Sent{}, err
	}
	if len(r.Body) > p.conf.MaxMessageBytes && !r.internal {
		return Sent{}, refuse(MessageIllegal, "the message body has %d bytes, the limit is %d (maxMessageSize, max-message-bytes)", len(r.Body), p.conf.MaxMessageBytes)
	}
	if r.SysFlag&message.FlagCompressionMask > message.FlagCompressionZLIB {
		return Sent{}, refuse(MessageIllegal, "unknown compression type %d in sysFlag, known are 0 to 3", r.SysFlag&message.FlagCompressionMask>>8)
	}
	if r.Batch {
		return p.sendBatch(r, d, queueID)
	}
	return p.sendOne(r, d, queueID)
}

// destination finds the topic that a message is for, after what has to be checked first.
func (p *Pass) destination(r *SendRequest) (*destination, error) {
	d := p.find(r.Topic)
	if d == nil {
		return nil, p.unknownTopic(r)
	}
	if d.odd {
		return p.oddDestination(r, d)
	}
	if p.conf.Permission&permWrite == 0 && d.topic.Order && !r.internal {
		return nil, refuse(NoPermission, "the broker[%s] sending message is forbidden", p.conf.Name)
	}
	return d, nil
}

const (
	permWrite = 2
	permRead  = 4
)

// unknownTopic says what to do about a topic that is not there.
func (p *Pass) unknownTopic(r *SendRequest) error {
	name := string(r.Topic)
	if err := message.ValidTopic(name); err != nil {
		return &Error{InvalidName, err.Error()}
	}
	if sendForbidden(name) {
		return refuse(TopicForbidden, "Sending message to topic[%s] is forbidden.", name)
	}
	return ErrCold // it may be made
}

// sendForbidden says whether clients may not send to a topic. Delayed messages lie
// in the timer topic, and what says when they are due is the broker's to write.
func sendForbidden(topic string) bool {
	return message.SendForbidden(topic) || topic == message.TopicTimer
}

// oddDestination is destination for topics with a meaning of their own.
func (p *Pass) oddDestination(r *SendRequest, d *destination) (*destination, error) {
	if sendForbidden(d.topic.Name) && !r.internal {
		return nil, refuse(TopicForbidden, "Sending message to topic[%s] is forbidden.", d.topic.Name)
	}
	name, ok := message.GroupOfRetryTopic(d.topic.Name)
	if !ok || r.internal {
		return d, nil
	}
	if r.Batch {
		return nil, refuse(MessageIllegal, "a batch cannot be sent to the retry topic %s", d.topic.Name)
	}
	g := p.b.groups.Get([]byte(name))
	if g == nil {
		if p.mayCreateGroup(name) {
			return nil, ErrCold
		}
		return nil, refuse(GroupNotFound, "subscription group not exist, %s", name)
	}
	if why := p.b.isDead(r, &g.Group); why != "" {
		dead := p.find([]byte(message.DLQTopic(name)))
		if dead == nil {
			return nil, ErrCold
		}
		r.QueueID, r.dead = 0, why
		return dead, nil
	}
	return d, nil
}

// isDead says why a message for the retry topic of g goes to the dead letters
// instead: it was tried too often, or the group consumes in order (it holds queue
// locks), and then sends only what it gives up. "" when it does not.
func (b *Broker) isDead(r *SendRequest, g *entry.Group) string {
	if r.internal {
		return ""
	}
	limit := g.RetryMaxTimes
	if r.MaxReconsume >= 0 {
		limit = r.MaxReconsume
	}
	switch {
	case r.Reconsumed > limit:
		return maxAttempts
	case b.locks.held(g.Name):
		return givenUp
	}
	return ""
}

func (p *Pass) chooseQueue(r *SendRequest, d *destination) (int32, error) {
	n := max(d.topic.WriteQueues, d.topic.ReadQueues)
	if r.QueueID >= n && r.internal && n > 0 {
		return r.QueueID % n, nil // the topic has shrunk while the message was delayed
	}
	if r.QueueID >= n {
		return 0, refuse(InvalidQueue, "request queueId[%d] is illegal, topic %s has %d queues", r.QueueID, d.topic.Name, n)
	}
	if r.QueueID >= 0 {
		return r.QueueID, nil
	}
	if d.topic.WriteQueues <= 0 {
		return 0, refuse(InvalidQueue, "topic %s has no queue to write to", d.topic.Name)
	}
	return rand.Int32N(d.topic.WriteQueues), nil
}

func (p *Pass) sendOne(r *SendRequest, d *destination, queueID int32) (Sent, error) {
	if len(r.Properties) > message.MaxProperties {
		return Sent{}, propertiesTooLarge(len(r.Properties), message.MaxProperties)
	}
	info := scan(r.Properties)
	if !info.half {
		if err := checkFlags(r); err != nil {
			return Sent{}, err
		}
	}
	if info.oddDelay && !r.internal {
		return Sent{}, refuse(MessageIllegal, "the delay level (DELAY) is not a number")
	}
	if p.isHalf(r, &info) {
		return p.sendHalf(r, d, queueID, &info)
	}
	if info.timed() && r.dead == "" && !r.arrived {
		return p.sendTimed(r, d, queueID, &info)
	}
	return p.add(r, d, queueID, &info, parking{})
}

// checkFlags refuses messages that say they are half or rolled back and have
// nothing else of a transaction: RocketMQ acknowledges them and shows them to nobody.
func checkFlags(r *SendRequest) error {
	if t := r.SysFlag & message.FlagTransactionMask; t != 0 && t != message.FlagTransactionCommit && !r.internal {
		return refuse(MessageIllegal, "sysFlag %#x says that the message is part of a transaction, its properties do not (TRAN_MSG)", r.SysFlag)
	}
	return nil
}

func propertiesTooLarge(n, limit int) error {
	return refuse(MessageIllegal, "the properties have %d bytes, the limit is %d", n, limit)
}

// add encodes one message into the batch.
func (p *Pass) add(r *SendRequest, d *destination, queueID int32, info *scanned, park parking) (Sent, error) {
	rec := message.Record{
		Topic: d.name, Body: r.Body, QueueID: queueID, Flag: r.Flag, SysFlag: p.sysFlag(r, d), ReconsumeTimes: r.Reconsumed,
		BornTime: r.BornTime, BornHost: r.BornHost, StoreHost: r.StoreHost, PreparedOffset: int64(r.prepared),
	}
	target := d
	if park.on() {
		target = park.in
		rec.Topic, rec.QueueID = target.name, park.queue
	}
	if int(rec.QueueID) >= len(target.queues.Queues) {
		return Sent{}, refuse(InvalidQueue, "request queueId[%d] is illegal, topic %s has %d queues", rec.QueueID, target.name, len(target.queues.Queues))
	}
	b := p.batch
	start := len(b.Records)
	dst := message.BeginRecord(b.Records, &rec)
	props := len(dst)
	dst, keyAt, keyLen := p.appendProperties(dst, r, info)
	tag := info.tagHash(dst[props:])
	if park.on() {
		dst = message.AppendPropertyAt(dst, props, message.PropertyRealTopic, d.topic.Name)
		dst = message.AppendPropertyAt(dst, props, message.PropertyRealQueueID, strconv.Itoa(int(queueID)))
		dst = park.appendProperty(dst, props, dst[keyAt:keyAt+keyLen])
	}
	if size, limit := len(dst)-props, message.MaxProperties-park.room(); size > limit {
		return Sent{}, propertiesTooLarge(size, limit)
	}
	dst, err := message.EndRecord(dst, start, props)
	if err != nil {
		return Sent{}, err
	}
	b.Records = dst
	b.Msgs = append(b.Msgs, shard.Msg{
		Target: target.queues.Queues[rec.QueueID], Start: int32(start), Size: int32(len(dst) - start), Tag: tag,
		TimeAt: int32(message.StoreTimeAt(dst[start:])), Watched: park.on(),
	})
	b.Keys = index(b.Keys, len(b.Msgs)-1, target.keys, dst[keyAt:keyAt+keyLen], dst[props+info.keysAt:props+info.keysAt+info.keysLen])
	return Sent{First: len(b.Msgs) - 1, Count: 1, QueueID: queueID, KeyAt: int32(keyAt), KeyLen: int32(keyLen)}, nil
}

// index appends the keys by which message number n is to be found.
func index(dst []shard.Key, n int, topic key.Hash, unique, keys []byte) []shard.Key {
	dst = append(dst, shard.Key{Hash: uint64(topic.Of(unique)), Msg: int32(n)})
	if len(keys) == 0 {
		return dst
	}
	for word := range key.Words(keys) {
		if !bytes.Equal(word, unique) {
			dst = append(dst, shard.Key{Hash: uint64(topic.Of(word)), Msg: int32(n)})
		}
	}
	return dst
}

// sysFlag keeps what the producer may say and adds what the broker knows.
func (p *Pass) sysFlag(r *SendRequest, d *destination) int32 {
	f := r.SysFlag &^ (message.FlagTransactionMask | message.FlagNeedUnwrap | message.FlagInnerBatch | message.FlagMultiTags)
	if d.topic.MultiTag {
		f |= message.FlagMultiTags
	}
	if r.prepared != 0 {
		f |= message.FlagTransactionCommit
	}
	return f
}

// appendProperties appends the producer's properties and the broker's own, and
// says where the unique key is.
func (p *Pass) appendProperties(dst []byte, r *SendRequest, info *scanned) (out []byte, keyAt, keyLen int) {
	at, props := len(dst), r.Properties
	switch {
	case r.dead != "":
		dst = message.AppendWithout(dst, props, message.PropertyDelayLevel)
		dst = message.AppendPropertyAt(dst, at, message.PropertyDelayLevel, "-1")
		letter := deadLetter{reason: r.dead, attempts: r.Reconsumed, client: r.BornHost.String(), at: p.b.now()}
		dst = letter.append(dst, at)
		*info = scan(dst[at:])
	case info.receipt:
		dst = message.AppendWithout(dst, props, message.PropertyPopReceipt)
		*info = scan(dst[at:])
	default:
		dst = append(dst, props...)
	}
	keyAt, keyLen = at+info.keyAt, info.keyLen
	if keyLen == 0 {
		if len(dst) > at && dst[len(dst)-1] != 2 {
			dst = append(dst, 2)
		}
		dst = append(dst, message.PropertyUniqueKey+"\x01"...)
		keyAt = len(dst)
		dst = message.AppendUniqueKey(dst)
		keyLen = len(dst) - keyAt
		dst = append(dst, 2)
	}
	own := p.b.ownProperties.Load()
	if info.own {
		return p.appendMissing(dst, at), keyAt, keyLen
	}
	if len(dst) > at && dst[len(dst)-1] != 2 {
		dst = append(dst, 2)
	}
	return append(dst, *own...), keyAt, keyLen
}

// appendMissing adds those of the broker's own properties that a message does not have yet.
func (p *Pass) appendMissing(dst []byte, at int) []byte {
	for name, value := range message.Properties(*p.b.ownProperties.Load()) {
		if _, ok := message.Property(dst[at:], string(name)); !ok {
			dst = message.AppendPropertyAt(dst, at, string(name), string(value))
		}
	}
	return dst
}

// sendBatch encodes the members of a batch; all of them or none.
func (p *Pass) sendBatch(r *SendRequest, d *destination, queueID int32) (Sent, error) {
	if len(d.name) > message.MaxTopic {
		return Sent{}, refuse(MessageIllegal, "a batch cannot be sent to topic %s: its name has %d bytes, the limit for batches is %d", d.topic.Name, len(d.name), message.MaxTopic)
	}
	if int(queueID) >= len(d.queues.Queues) {
		return Sent{}, refuse(InvalidQueue, "request queueId[%d] is illegal, topic %s has %d queues", queueID, d.topic.Name, len(d.queues.Queues))
	}
	if err := checkFlags(r); err != nil {
		return Sent{}, err
	}
	if info := scan(r.Properties); info.half {
		return Sent{}, refuse(MessageIllegal, "a batch cannot be a half message (TRAN_MSG)")
	}
	b := p.batch
	msgs, records := len(b.Msgs), len(b.Records)
	rec := message.Record{
		Topic: d.name, QueueID: queueID, SysFlag: p.sysFlag(r, d), ReconsumeTimes: r.Reconsumed,
		BornTime: r.BornTime, BornHost: r.BornHost, StoreHost: r.StoreHost,
	}
	keys := len(b.Keys)
	err := p.addMembers(r, &rec, d, d.queues.Queues[queueID])
	if size := len(b.Records) - records; err == nil && size > p.b.shard.MaxBatch() {
		err = refuse(MessageIllegal, "the batch has %d bytes as it would be stored, the limit is %d (ring-bytes / 8)", size, p.b.shard.MaxBatch())
	}
	if err != nil || len(b.Msgs) == msgs {
		b.Msgs, b.Records, b.Keys = b.Msgs[:msgs], b.Records[:records], b.Keys[:keys]
		if err == nil {
			err = refuse(MessageIllegal, "the batch has no message in it")
		}
		return Sent{}, err
	}
	return Sent{First: msgs, Count: len(b.Msgs) - msgs, QueueID: queueID}, nil
}

func (p *Pass) addMembers(r *SendRequest, rec *message.Record, d *destination, q *queue.Queue) error {
	b := p.batch
	members := message.NewBatchReader(r.Body)
	for {
		flag, body, props, ok := members.Next()
		if !ok {
			break
		}
		if members.Len() > message.MaxBatch {
			return refuse(MessageIllegal, "the batch has more than %d messages", message.MaxBatch)
		}
		rec.Flag, rec.Body = flag, body
		info := scan(props)
		if info.half {
			return refuse(MessageIllegal, "message %d of the batch is a half message (TRAN_MSG): those cannot be in a batch", members.Len())
		}
		start := len(b.Records)
		dst := message.BeginRecord(b.Records, rec)
		at := len(dst)
		dst = append(dst, props...)
		keyAt, keyLen := at+info.keyAt, info.keyLen
		if keyLen == 0 {
			if len(props) > 0 && dst[len(dst)-1] != 2 {
				dst = append(dst, 2)
			}
			dst = append(dst, message.PropertyUniqueKey+"\x01"...)
			keyAt = len(dst)
			dst = message.AppendUniqueKey(dst)
			keyLen = len(dst) - keyAt
			dst = append(dst, 2)
		}
		dst, err := message.EndRecord(dst, start, at)
		if err != nil {
			return refuse(MessageIllegal, "message %d of the batch: the properties have %d bytes, the limit is %d", members.Len(), len(props), message.MaxProperties)
		}
		b.Records = dst
		b.Msgs = append(b.Msgs, shard.Msg{
			Target: q, Start: int32(start), Size: int32(len(dst) - start), Tag: info.tagHash(props), TimeAt: int32(message.StoreTimeAt(dst[start:])),
		})
		b.Keys = index(b.Keys, len(b.Msgs)-1, d.keys, dst[keyAt:keyAt+keyLen], props[info.keysAt:info.keysAt+info.keysLen])
	}
	return badMember(members.Len()+1, members.Err())
}

// badMember says what is wrong with a member of a batch. The length of its
// properties has 16 bits, so one that is too large is known by not agreeing with its size.
func badMember(n int, err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*message.FormatError](err); ok && f.Field == "properties length" && f.Limit > message.MaxProperties {
		return refuse(MessageIllegal, "message %d of the batch: the properties have %d bytes, the limit is %d", n, f.Limit, message.MaxProperties)
	}
	return refuse(MessageIllegal, "message %d of the batch: %v", n, err)
}
