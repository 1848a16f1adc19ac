package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
)

// Options of a Client. Zero values take the defaults that are named here.
type Options struct {
	// Timeout is for connecting and for each call: 5 s.
	Timeout time.Duration
}

// Client administrates the brokers that a server knows.
type Client struct {
	server  string
	timeout time.Duration

	mu      sync.Mutex
	conns   map[string]*remoting.Client
	brokers []Broker // once they are known
}

// Connect connects to a server: host:port of a name server or of a broker, or several, separated by semicolons, of which the first
// that answers is taken.
func Connect(ctx context.Context, servers string, o Options) (*Client, error) {
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	c := &Client{timeout: o.Timeout, conns: map[string]*remoting.Client{}}
	var problems []error
	for server := range strings.FieldsFuncSeq(servers, func(r rune) bool { return r == ';' || r == ',' || r == ' ' }) {
		c.server = server
		_, err := c.conn(ctx, server)
		if err == nil {
			return c, nil
		}
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		return nil, errors.New("no server given")
	}
	return nil, errors.Join(problems...)
}

// Close closes all connections.
func (c *Client) Close() error {
	c.mu.Lock()
	conns := c.conns
	c.conns = nil
	c.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close() // it has no error to give
		<-conn.Done()
	}
	return nil
}

// conn gives the connection to a server.
func (c *Client) conn(ctx context.Context, addr string) (*remoting.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn := c.conns[addr]; conn != nil && conn.Err() == nil {
		return conn, nil
	}
	if c.conns == nil {
		return nil, remoting.ErrClosed
	}
	conn, err := remoting.Dial(ctx, addr, remoting.ClientOptions{Timeout: c.timeout, MaxFrame: maxFrame})
	if err != nil {
		return nil, err
	}
	c.conns[addr] = conn
	return conn, nil
}

// maxFrame bounds answers: pulls may ask for much.
const maxFrame = 64 << 20

// header is a typed request header.
type header interface{ Encode(e *protocol.Ext) }

// noHeader is that of requests without one.
type noHeader struct{}

func (noHeader) Encode(*protocol.Ext) {}

// call asks a server. An answer other than SUCCESS, or one of the codes that are also right, is an *Error.
func (c *Client) call(ctx context.Context, addr string, code int32, h header, body []byte, right ...int32) (*protocol.Command, error) {
	return c.callFor(ctx, c.timeout, addr, code, h, body, right...)
}

// callFor is call with a time to wait.
func (c *Client) callFor(
	ctx context.Context, timeout time.Duration, addr string, code int32, h header, body []byte, right ...int32,
) (*protocol.Command, error) {
	conn, err := c.conn(ctx, addr)
	if err != nil {
		return nil, err
	}
	cmd := &protocol.Command{Code: code, Language: protocol.LanguageGo, Version: protocol.ServerVersion, Body: body}
	h.Encode(&cmd.Ext)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := conn.Call(ctx, cmd)
	if err != nil {
		return nil, fmt.Errorf("ask %s for %s: %w", addr, protocol.ReqName(code), err)
	}
	if answer.Code == protocol.RespSuccess || slices.Contains(right, answer.Code) {
		return answer, nil
	}
	return nil, &Error{Request: code, Server: addr, Code: answer.Code, Remark: strings.Join(strings.Fields(answer.Remark), " ")}
}

// callInto is call for an answer whose body is JSON.
func (c *Client) callInto(ctx context.Context, addr string, code int32, h header, into any) error {
	answer, err := c.call(ctx, addr, code, h, nil)
	if err != nil {
		return err
	}
	if err := protocol.ParseJSON(answer.Body, into); err != nil {
		return fmt.Errorf("read answer of %s to %s: %w", addr, protocol.ReqName(code), err)
	}
	return nil
}
