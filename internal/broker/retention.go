package broker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/metaqio/metaq/internal/entry"
	"github.com/metaqio/metaq/message"
)

// whyFull is why messages are given up before their time.
const whyFull = "disk fuller than disk-max-use"

// runRetention gives up old segments and watches the disk, until ctx ends.
func (b *Broker) runRetention(ctx context.Context) error {
	b.watchDisk()
	trimmed := b.trim()          // what was found before the last stop may not have been kept
	var dropped message.Position // segments may stay for a while after they were given up, because a view needs them
	tick := time.NewTicker(b.conf.Load().RetentionPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		use := b.watchDisk()
		if !trimmed {
			trimmed = b.trim()
		}
		if before, why := b.expired(use); before > dropped {
			if err := b.do(ctx, &entry.DropLog{Before: before, Reason: why}); err != nil {
				b.log.Warn("old segments cannot be given up", "error", err)
				continue
			}
			b.logDrop(before, why, use)
			dropped = before
			b.givenUp.Store(int64(before))
			trimmed = b.trim()
			b.shard.CheckpointNow()
		}
	}
}

// watchDisk refuses sends while the disk is fuller than it may be, and returns the share in use.
func (b *Broker) watchDisk() float64 {
	c := b.conf.Load()
	use := b.shard.DiskUse()
	if use <= c.DiskStopUse {
		if b.refusing.Swap(nil) != nil {
			b.log.Info("sends are accepted again", "disk_use", use)
		}
		return use
	}
	why := &Error{Unavailable, fmt.Sprintf("the disk of the broker is %.1f %% full, sends are refused above %.1f %% (diskSpaceWarningLevelRatio, disk-stop-use)", use*100, c.DiskStopUse*100)}
	if b.refusing.Swap(why) == nil {
		b.log.Warn("sends are refused: the disk is full", "disk_use", use, "limit", c.DiskStopUse)
	}
	return use
}

// expired says up to where retention gives the log up, and why.
func (b *Broker) expired(use float64) (before message.Position, why string) {
	c := b.conf.Load()
	segments := b.shard.Log().Segments()
	var total int64
	for _, s := range segments {
		total += s.Size
	}
	oldest := b.now() - c.RetentionTime.Milliseconds()
	for i := range max(len(segments)-1, 0) { // the newest stays
		s := segments[i]
		switch {
		case c.RetentionTime > 0 && s.LastTime < oldest:
			why = "older than retention-time"
		case c.RetentionBytes > 0 && total > c.RetentionBytes:
			why = "more than retention-bytes"
		case use > c.DiskMaxUse && i == 0:
			why = whyFull
		default:
			return before, why
		}
		total -= s.Size
		before = segments[i+1].Start
	}
	return before, why
}

// logDrop tells the operator what retention gave up: before its time, loudly, since nobody may have consumed it.
func (b *Broker) logDrop(before message.Position, why string, use float64) {
	level := slog.LevelInfo
	if why == whyFull {
		level = slog.LevelWarn
	}
	b.log.Log(context.Background(), level, "old messages are given up", "why", why, "log_begins_at", int64(before), "disk_use", use)
}

// trim finds the smallest offsets of all queues again, and says whether that is done.
func (b *Broker) trim() (done bool) {
	b.shard.RLock()
	bounds := b.queues.Bounds()
	b.shard.RUnlock()
	done = true
	for _, q := range bounds {
		ok, err := q.Trim()
		if err != nil {
			b.log.Error("queues cannot be trimmed", "error", err)
			return false
		}
		done = done && ok
	}
	return done
}
