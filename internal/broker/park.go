package broker

import (
	"strconv"
	"time"

	"github.com/metaqio/metaq/message"
)

// parking says where a delayed message waits and until when.
type parking struct {
	in    *destination // nil: not at all
	queue int32
	due   int64 // ms
}

func (p parking) on() bool { return p.in != nil }

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
		level := min(int(info.delay), len(p.conf.DelayLevels))
		return p.park(message.TopicSchedule, int32(level-1), now+p.conf.DelayLevels[level-1].Milliseconds())
	}
	text := string(r.Properties[info.timerAt : info.timerAt+info.timerLen])
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return parking{}, refuse(MessageIllegal, "timer property %q is not a number", text)
	}
	due := n
	switch info.timer {
	case 1:
		due = now + n*1000
		if n > int64(p.conf.MaxTimer/time.Second) {
			due = now + p.conf.MaxTimer.Milliseconds() + 1 // also where n*1000 overflows
		}
	case 2:
		due = now + min(n, p.conf.MaxTimer.Milliseconds()+1)
	}
	if due <= now {
		return parking{}, nil
	}
	if due-now > p.conf.MaxTimer.Milliseconds() {
		return parking{}, refuse(MessageIllegal, "timer message illegal, the delay time should not be bigger than the max delay %dms (timerMaxDelaySec, max-timer)", p.conf.MaxTimer.Milliseconds())
	}
	return p.park(message.TopicTimer, 0, due)
}

func (p *Pass) park(topic string, queue int32, due int64) (parking, error) {
	in := p.find([]byte(topic))
	if in == nil || int(queue) >= len(in.queues.Queues) {
		return parking{}, refuse(Internal, "topic %s for delayed messages is missing", topic)
	}
	return parking{in: in, queue: queue, due: due}, nil
}
