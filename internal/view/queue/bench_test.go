package queue

import (
	"testing"

	"github.com/metaqio/metaq/message"
)

func benchQueue(b *testing.B) (*View, *Queue) {
	v := loaded(b, openStore(b), 1<<20)
	fold(b, v, putTopic("T", 1, 1))
	return v, v.Topic([]byte("T")).Queues[0]
}

func BenchmarkAppend(b *testing.B) {
	_, q := benchQueue(b)
	b.ReportAllocs()
	for b.Loop() {
		off := q.Assign(1)
		if !q.Append(off, message.Position(off)*200, 200, 7) {
			b.Fatal("refused")
		}
	}
}

func BenchmarkRead32(b *testing.B) {
	_, q := benchQueue(b)
	appendTo(b, q, 10_000)
	var dst [32]Entry
	at := message.QueueOffset(0)
	b.ReportAllocs()
	for b.Loop() {
		if n, err := q.Read(at, dst[:]); n != 32 || err != nil {
			b.Fatal(n, err)
		}
		if at += 32; at > 9000 {
			at = 0
		}
	}
}

func BenchmarkReadStored32(b *testing.B) {
	s := openStore(b)
	v := loaded(b, s, 1)
	fold(b, v, putTopic("T", 1, 1))
	q := v.Topic([]byte("T")).Queues[0]
	appendTo(b, q, 10_000)
	checkpoint(b, s, v)
	var dst [32]Entry
	at := message.QueueOffset(0)
	b.ReportAllocs()
	for b.Loop() {
		if n, err := q.Stored().Read(at, dst[:]); n != 32 || err != nil {
			b.Fatal(n, err)
		}
		if at += 32; at > 9000 {
			at = 0
		}
	}
}
