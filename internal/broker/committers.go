package broker

import "sync"

// committers remembers which client was the last to commit each offset, so that a
// commit that goes back can be told apart: the client that brought the offset where
// it is may take it back (it seeks); another one only comes late, after it has lost
// the queue. They live in memory: after a restart nobody is known, and nothing goes back.
type committers struct {
	mu   sync.Mutex // guards the following
	last map[committed]string
}

// committed names an offset.
type committed struct {
	group, topic string
	queue        int32
}

// maxCommitters bounds the memory; beyond it the oldest knowledge is lost at once.
const maxCommitters = 1 << 18

func (c *committers) set(o committed, client string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil || len(c.last) >= maxCommitters {
		c.last = map[committed]string{}
	}
	c.last[o] = client
}

// is says whether the client was the last to commit the offset.
func (c *committers) is(group, topic []byte, queue int32, client *Client) bool {
	if client == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last[committed{string(group), string(topic), queue}] == client.ID
}
