package ops_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
	"github.com/metaqio/metaq/message"
)

// client sends and pulls by the classic protocol.
type client struct {
	t *testing.T
	*remoting.Client
}

func (s *server) dial() *client {
	s.t.Helper()
	c, err := remoting.Dial(s.t.Context(), s.addrs["broker"], remoting.ClientOptions{Timeout: limit})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	return &client{s.t, c}
}

// sendCommand is a send to a queue of a topic, which is made if there is none.
func sendCommand(topic string, queue int32, body []byte) *protocol.Command {
	c := &protocol.Command{Code: protocol.ReqSendMessageV2, Version: protocol.ServerVersion, Body: body}
	h := protocol.SendMessageRequest{
		ProducerGroup: []byte("ops"), Topic: []byte(topic), DefaultTopic: []byte(message.TopicAutoCreate), DefaultTopicQueueNums: 8,
		QueueId: queue, BornTimestamp: time.Now().UnixMilli(),
	}
	h.EncodeShort(&c.Ext)
	return c
}

func (c *client) call(cmd *protocol.Command) *protocol.Command {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	answer, err := c.Call(ctx, cmd)
	require.NoError(c.t, err)
	return answer
}

// send sends one message.
func (c *client) send(topic string, queue int32, body []byte) *protocol.Command {
	c.t.Helper()
	return c.call(sendCommand(topic, queue, body))
}

// mustSend sends one message that has to be accepted.
func (c *client) mustSend(topic string, queue int32, body []byte) {
	c.t.Helper()
	a := c.send(topic, queue, body)
	require.EqualValues(c.t, protocol.RespSuccess, a.Code, a.Remark)
}

// pullCommand asks for messages of a queue; it waits for some as long as hold says.
func pullCommand(topic string, queue int32, offset int64, hold time.Duration) *protocol.Command {
	c := &protocol.Command{Code: protocol.ReqPullMessage, Version: protocol.ServerVersion}
	h := protocol.PullMessageRequest{
		ConsumerGroup: []byte("ops"), Topic: []byte(topic), QueueId: queue, QueueOffset: offset, MaxMsgNums: 1000, SysFlag: 4,
		Subscription: []byte("*"), ExpressionType: []byte("TAG"), Lo: true,
	}
	if hold > 0 {
		h.SysFlag |= 2
		h.SuspendTimeoutMillis = hold.Milliseconds()
	}
	h.Encode(&c.Ext)
	return c
}

// read reads a whole queue and checks each record and its offset.
func (c *client) read(topic string, queue int32) (bodies []string) {
	c.t.Helper()
	for {
		a := c.call(pullCommand(topic, queue, int64(len(bodies)), 0))
		if a.Code == protocol.RespPullNotFound {
			return bodies
		}
		require.EqualValues(c.t, protocol.RespSuccess, a.Code, a.Remark)
		for b := a.Body; len(b) > 0; {
			var r message.Record
			n, err := r.Parse(b)
			require.NoError(c.t, err)
			require.NoError(c.t, r.CheckBody())
			require.EqualValues(c.t, len(bodies), r.QueueOffset)
			bodies = append(bodies, string(r.Body))
			b = b[n:]
		}
	}
}
