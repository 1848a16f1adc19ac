package remotingdoor

import (
	"context"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
)

// Most messages that a query gives; clients send what they like to have.
const (
	mostQueried       = 64 // maxMsgsNumBatch
	mostQueriedUnique = 32 // defaultQueryMaxNum
)

// QUERY_MESSAGE (12)
//
// * success: the newest records with the key, in the order of the log
// * nothing found: 22, with the same header
// * a query by unique key has a limit of its own, whatever it asks for
func queryMessage(ctx context.Context, r *request) *protocol.Command {
	var h protocol.QueryMessageRequest
	if err := h.Decode(&r.Ext); err != nil {
		return r.fail(err)
	}
	q := broker.Query{Topic: h.Topic, Key: h.Key, Begin: h.BeginTimestamp, End: h.EndTimestamp, Max: int(min(h.MaxNum, mostQueried))}
	switch h.IndexType {
	case "K":
		q.Kind = broker.WordOfKeys
	case "U":
		q.Kind = broker.UniqueKey
	case "T":
		q.Kind = broker.Tag
	}
	if h.UniqueKeyQuery {
		q.Kind, q.Max = broker.UniqueKey, mostQueriedUnique
	}
	var res broker.QueryResult
	if q.Max > 0 {
		var err error
		if res, err = r.d.b.Query(ctx, &q); err != nil {
			return r.fail(err)
		}
	}
	a := r.ok()
	if res.Count == 0 {
		a = r.Reply(protocol.RespQueryNotFound, "can not find message, maybe time range not correct")
	}
	answer := protocol.QueryMessageResponse{IndexLastUpdateTimestamp: res.LastTime, IndexLastUpdatePhyoffset: int64(res.LastPosition)}
	answer.Encode(&a.Ext)
	a.Body = res.Records
	return a
}
