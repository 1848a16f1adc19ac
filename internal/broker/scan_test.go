package broker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/view/queue"
	"github.com/metaqio/metaq/message"
)

// FuzzScan holds the one look at all properties against looking for each by name:
// views fold by the latter, so the two must agree.
func FuzzScan(f *testing.F) {
	for _, p := range []string{
		"", "TAGS\x01a\x02UNIQ_KEY\x01k\x02", "TAGS\x01a\x02TAGS\x01b", "TAGS\x01\x02\x01\x02TAGS", "DELAY\x013\x02DELAY\x01x\x02",
		"TIMER_DELAY_MS\x015\x02TIMER_DELAY_SEC\x011\x02TIMER_DELIVER_MS\x019\x02TIMER_OUT_MS\x017\x02", "TRAN_MSG\x01true\x02POP_CK\x01x\x02CLUSTER\x01c",
	} {
		f.Add([]byte(p))
	}
	f.Fuzz(func(t *testing.T, props []byte) {
		s := scan(props)
		for name, got := range map[string][]byte{
			message.PropertyUniqueKey: props[s.keyAt : s.keyAt+s.keyLen], message.PropertyTags: props[s.tagAt : s.tagAt+s.tagLen],
		} {
			want, _ := message.Property(props, name)
			require.Equal(t, string(want), string(got), name)
		}
		require.Equal(t, queue.Tag(props), s.tagHash(props))
		for kind, name := range map[byte]string{1: message.PropertyTimerDelaySec, 2: message.PropertyTimerDelayMs, 3: message.PropertyTimerDeliverMs} {
			want, ok := message.Property(props, name)
			if s.timer == kind {
				require.Equal(t, string(want), string(props[s.timerAt:s.timerAt+s.timerLen]))
			} else if s.timer == 0 || kind < s.timer {
				require.False(t, ok, name)
			}
		}
		_, parked := message.Property(props, message.PropertyTimerOutMs)
		require.Equal(t, parked, s.parked)
		half, _ := message.Property(props, message.PropertyHalf)
		require.Equal(t, string(half) == "true", s.half)
	})
}
