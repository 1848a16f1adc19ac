package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorded are answers of real servers, by the id of their exchange.
var recorded = sync.OnceValue(func() map[string][]byte {
	frames := map[string][]byte{}
	for _, name := range []string{"mqadmin", "mqadmin-more", "java-query", "java-send", "java-pull", "java-order"} {
		f, err := os.Open("../protocol/testdata/vectors/" + name + ".jsonl")
		if err != nil {
			panic(err)
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var v struct {
				ID       string
				Response *struct{ Frame string }
			}
			if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
				panic(err)
			}
			if v.Response != nil {
				frames[v.ID], _ = hex.DecodeString(v.Response.Frame)
			}
		}
		f.Close()
	}
	config := protocol.Command{Flag: protocol.FlagResponse, Body: []byte("brokerClusterName=DefaultCluster\nbrokerName=broker-a\n")}
	frames["config"] = config.Append(nil) // the recorded ones are long
	return frames
})

// recordedAddr is how the recorded broker called itself.
const recordedAddr = "127.0.0.2:20911"

// server answers each code as a recorded server did.
type server struct {
	addr    string
	mu      sync.Mutex
	answers map[int32]string // ids of exchanges
	asked   []*protocol.Command
}

func (s *server) Begin()                   {}
func (s *server) Flush()                   {}
func (s *server) Closed(*remoting.Session) {}

func (s *server) Serve(session *remoting.Session, c *protocol.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := new(protocol.Command)
	if err := kept.Decode(c.Append(nil)); err != nil {
		panic(err)
	}
	s.asked = append(s.asked, kept)
	frame := recorded()[s.answers[c.Code]]
	if frame == nil {
		session.Out = c.Reply(protocol.RespRequestCodeNotSupported, " request type not supported").Append(session.Out)
		return
	}
	var answer protocol.Command
	if err := answer.Decode(frame); err != nil {
		panic(err)
	}
	answer.Opaque = c.Opaque
	if len(answer.Body) > 0 && answer.Body[0] == '{' {
		answer.Body = bytes.ReplaceAll(answer.Body, []byte(recordedAddr), []byte(s.addr))
	}
	session.Out = answer.Append(session.Out)
}

// requests are those of a code.
func (s *server) requests(code int32) (list []*protocol.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.asked {
		if c.Code == code {
			list = append(list, c)
		}
	}
	return list
}

// field gives an ext field of a request.
func field(c *protocol.Command, name string) string {
	v, _ := c.Ext.Get(name)
	return string(v)
}

// connected starts a server with the usual answers and these, and connects to it.
func connected(t *testing.T, answers map[int32]string) (*Client, *server) {
	t.Helper()
	s := &server{answers: map[int32]string{
		protocol.ReqGetBrokerClusterInfo: "mqadmin/1", protocol.ReqGetRouteinfoByTopic: "java-send/1",
	}}
	for code, id := range answers {
		if s.answers[code] = id; id != "" {
			require.Contains(t, recorded(), id)
		}
	}
	srv, err := remoting.New(remoting.Options{NoLoop: true, NewWorker: func(remoting.Driver) remoting.Worker { return s }})
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.addr = ln.Addr().String()
	srv.Listen("broker", ln)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx) }()
	c, err := Connect(t.Context(), s.addr, Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		cancel()
		<-done
	})
	return c, s
}

func names(topics []Topic) (list []string) {
	for _, t := range topics {
		list = append(list, t.Name)
	}
	return list
}

func shown(props []byte) string {
	return strings.NewReplacer("\x01", "=", "\x02", ";").Replace(string(props))
}
