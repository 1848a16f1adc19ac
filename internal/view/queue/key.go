package queue

import "encoding/binary"

// Keys of the view in the store (big-endian; part of the on-disk format):
//
//	'q' 'n'                                       → next topic id u64 │ log start u64
//	'q' 't' name                                  → topic id u64 │ number of queues u32
//	'q' 'm' topic id u64 │ queue u32              → next offset u64 │ smallest offset u64
//	'q' 'i' topic id u64 │ queue u32 │ chunk u64  → entries of that chunk, 20 bytes each:
//	                                                position u64 │ size u32 │ tag hash u64
const (
	prefix    = 'q'
	kindNext  = 'n'
	kindTopic = 't'
	kindMeta  = 'm'
	kindIndex = 'i'
)

func topicKey(name string) []byte { return append([]byte{prefix, kindTopic}, name...) }

func metaKey(dst []byte, topic uint64, queue int32) []byte {
	dst = append(dst, prefix, kindMeta)
	dst = binary.BigEndian.AppendUint64(dst, topic)
	return binary.BigEndian.AppendUint32(dst, uint32(queue))
}

func indexKey(dst []byte, topic uint64, queue int32, chunk int64) []byte {
	dst = append(dst, prefix, kindIndex)
	dst = binary.BigEndian.AppendUint64(dst, topic)
	dst = binary.BigEndian.AppendUint32(dst, uint32(queue))
	return binary.BigEndian.AppendUint64(dst, uint64(chunk))
}

// topicRange covers all keys of kind that belong to a topic.
func topicRange(kind byte, topic uint64) (from, to []byte) {
	from = binary.BigEndian.AppendUint64([]byte{prefix, kind}, topic)
	return from, binary.BigEndian.AppendUint64([]byte{prefix, kind}, topic+1)
}
