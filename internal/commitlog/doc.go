// Package commitlog is the log of a shard: segments of frames on the disk, and their newest part in memory.
package commitlog
