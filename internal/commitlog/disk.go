package commitlog

import "github.com/metaqio/metaq/message"

// WriteBack asks the operating system to begin putting on the disk what was written since the last WriteBack, and does not wait. Called every
// MiB or so under durability async, it leaves little to do for the sync that follows, and short waits for the writes beside it. It promises
// nothing. Any goroutine but the tail's holder, which a busy disk would delay; one at a time.
func (l *Log) WriteBack() {
	to := l.Written()
	pos := max(l.Synced(), message.Position(l.begun.Swap(int64(to))))
	for pos < to {
		s, ok := l.find(pos)
		if !ok || !s.acquire() {
			return // it is advice
		}
		end := min(to, s.end())
		if f, err := s.open(); err == nil {
			startWriteBack(f, int64(pos-s.start), int64(end-pos))
		}
		if s.release() != nil {
			return
		}
		pos = end
	}
}
