package broker

import (
	"strconv"

	"github.com/metaqio/metaq/message"
)

// parking says where a message waits, and for what: a time, or the decision of its producer.
type parking struct {
	in    *destination // nil: not at all
	queue int32
	due   int64 // ms
	half  bool
}

func (p parking) on() bool { return p.in != nil }

// appendProperty appends the property that says what the message with a unique key waits for.
func (p parking) appendProperty(dst []byte, props int, key []byte) []byte {
	if p.half {
		return message.AppendPropertyAt(dst, props, message.PropertyTransactionID, string(key))
	}
	return message.AppendPropertyAt(dst, props, message.PropertyTimerOutMs, strconv.FormatInt(p.due, 10))
}

// room is how many bytes of properties are kept for what is added when the message leaves.
func (p parking) room() int {
	if p.half {
		return halfRoom
	}
	return 0
}

// halfRoom is more than TRANSACTION_CHECK_TIMES and TIMER_OUT_MS take.
const halfRoom = 64

// sendTimed parks a message that is to be delivered later, or sends it at once when its time has come.
func (p *Pass) sendTimed(r *SendRequest, d *destination, queueID int32, info *scanned) (Sent, error) {
	park, err := p.parkingOf(r, info)
	if err != nil {
		return Sent{}, err
	}
	return p.add(r, d, queueID, info, park)
}

// parkingOf decides when and where: a delay level beats the timer properties, and
// of those the first in the order seconds, milliseconds, absolute time counts.
func (p *Pass) parkingOf(r *SendRequest, info *scanned) (parking, error) {
	now := p.b.now()
	if info.delay > 0 {
		if info.timer != 0 { // it does not count, and is not to be seen
			r.Properties = withoutTimer(r.Properties)
			*info = scan(r.Properties)
		}
		level := min(int(info.delay), len(p.conf.DelayLevels))
		return p.park(message.TopicSchedule, int32(level-1), now+p.conf.DelayLevels[level-1].Milliseconds())
	}
	text := string(r.Properties[info.timerAt : info.timerAt+info.timerLen])
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return parking{}, refuse(MessageIllegal, "timer property %q is not a number", text)
	}
	due := n
	limit := p.conf.MaxTimer.Milliseconds()
	switch info.timer { // nothing overflows: what is past is past, and what is too far is too far
	case 1:
		due = now + min(max(n, 0), limit/1000+1)*1000
	case 2:
		due = now + min(max(n, 0), limit+1)
	}
	if due <= now {
		return parking{}, nil
	}
	if due-now > limit && !r.internal {
		return parking{}, refuse(MessageIllegal, "timer message illegal, the delay time should not be bigger than the max delay %dms", limit)
	}
	return p.park(message.TopicTimer, 0, due)
}

func withoutTimer(props []byte) []byte {
	for _, name := range []string{message.PropertyTimerDelaySec, message.PropertyTimerDelayMs, message.PropertyTimerDeliverMs} {
		props = message.AppendWithout(nil, props, name)
	}
	return props
}

func (p *Pass) park(topic string, queue int32, due int64) (parking, error) {
	in := p.find([]byte(topic))
	if in == nil || int(queue) >= len(in.queues.Queues) {
		return parking{}, refuse(Internal, "topic %s for delayed messages is missing", topic)
	}
	return parking{in: in, queue: queue, due: due}, nil
}
