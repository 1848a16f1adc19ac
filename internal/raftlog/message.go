package raftlog

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/metaqio/metaq/message"
)

// Message is what one node sends to another: a raft message and the frames of its entries.
type Message struct {
	raft *raftpb.Message
	// Frames are the whole frames of the entries, in order.
	Frames [][]byte
}

// To is the node that the message is for.
func (m *Message) To() uint64 { return m.raft.GetTo() }

// From is the node that sent it.
func (m *Message) From() uint64 { return m.raft.GetFrom() }

// String describes the message for logs and test output.
func (m *Message) String() string {
	return fmt.Sprintf("%d→%d %v term %d index %d, %d entries", m.From(), m.To(), m.raft.GetType(), m.raft.GetTerm(), m.raft.GetIndex(), len(m.Frames))
}

// descriptor is what raft carries of a frame.
//
//	┌──────────────┬──────────┐
//	│ position u64 │ size u64 │  big-endian
//	└──────────────┴──────────┘
const descriptorSize = 16

func appendDescriptor(dst []byte, pos message.Position, size int) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(pos))
	return binary.BigEndian.AppendUint64(dst, uint64(size))
}
