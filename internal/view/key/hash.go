package key

import (
	"bytes"
	"iter"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"github.com/metaqio/metaq/message"
)

// Hash stands for a topic and a key. It is part of the on-disk format; files keep
// its upper 48 bits.
type Hash uint64

// Topic is what the hashes of all keys of a topic have in common.
func Topic(name []byte) Hash { return Hash(bits.RotateLeft64(xxhash.Sum64(name), 32)) }

// Of is the hash of a key in a topic.
func (topic Hash) Of(key []byte) Hash { return topic ^ Hash(xxhash.Sum64(key)) }

// maxWords bounds how many words of KEYS are found by: one message could else fill the index.
const maxWords = 64

// Words are the words of a KEYS property, as they are separated by blanks, without
// those beyond the 64th.
func Words(keys []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for range maxWords {
			keys = bytes.TrimLeft(keys, " ")
			if len(keys) == 0 {
				return
			}
			end := bytes.IndexByte(keys, ' ')
			if end < 0 {
				end = len(keys)
			}
			if !yield(keys[:end]) {
				return
			}
			keys = keys[end:]
		}
	}
}

// each calls f for the hash of every key of a record.
func each(r *message.Record, f func(Hash)) {
	topic := Topic(r.Topic)
	unique, ok := message.Property(r.Properties, message.PropertyUniqueKey)
	if ok && len(unique) > 0 {
		f(topic.Of(unique))
	}
	if keys, ok := message.Property(r.Properties, message.PropertyKeys); ok {
		for word := range Words(keys) {
			if !bytes.Equal(word, unique) {
				f(topic.Of(word))
			}
		}
	}
}
