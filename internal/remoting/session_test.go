package remoting

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

func TestAddresses(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		c := ts.client()
		s := ts.session(c)
		require.Equal(t, c.Local(), s.Remote())
		require.Equal(t, ts.addr, s.Local().String())
		require.True(t, s.Local().Addr().Is4())
		require.Equal(t, "broker", s.Listener())
	})
}

func TestServerRequests(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		c := ts.client(func(o *ClientOptions) {
			o.OnRequest = func(_ *Client, cmd *protocol.Command) *protocol.Command {
				if cmd.Code == codeNever {
					return nil
				}
				reply := cmd.Reply(7, "from the client")
				reply.Body = append([]byte("re: "), cmd.Body...)
				return reply
			}
		})
		s := ts.session(c)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				body := fmt.Appendf(nil, "request %d", i)
				reply, err := s.Request(context.Background(), &protocol.Command{Code: 307, Opaque: 5, Body: body})
				if err != nil || reply.Code != 7 || string(reply.Body) != "re: "+string(body) {
					t.Errorf("request %d: %v %v", i, reply, err)
				}
			})
			wg.Go(func() { // the other way at the same time, with the same numbers
				reply, err := c.Call(context.Background(), &protocol.Command{Code: codeFlush, Body: []byte{byte(i)}})
				if err != nil || !bytes.Equal(reply.Body, []byte{byte(i)}) {
					t.Errorf("call %d: %v %v", i, reply, err)
				}
			})
		}
		wg.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		_, err := s.Request(ctx, &protocol.Command{Code: codeNever})
		require.ErrorIs(t, err, context.DeadlineExceeded)

		failed := make(chan error, 1)
		go func() {
			_, err := s.Request(context.Background(), &protocol.Command{Code: codeNever})
			failed <- err
		}()
		c.Close()
		require.ErrorIs(t, wait(t, failed), ErrClosed)
		wait(t, ts.closed)
		_, err = s.Request(context.Background(), &protocol.Command{Code: codeNever})
		require.ErrorIs(t, err, ErrClosed)
	})
}

func TestAnswersNobodyAskedForAreIgnored(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		conn := ts.dial()
		stray := protocol.Command{Opaque: 99, Flag: protocol.FlagResponse}
		_, err := conn.Write(append(stray.Append(nil), request(codeEcho, 0, []byte("x"))...))
		require.NoError(t, err)
		expect(t, conn, "x")
	})
}

func TestNotify(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		got := make(chan string, 100)
		c := ts.client(func(o *ClientOptions) {
			o.OnRequest = func(_ *Client, cmd *protocol.Command) *protocol.Command {
				got <- fmt.Sprintf("%d %t %s", cmd.Code, cmd.IsOneway(), cmd.Body)
				return cmd.Reply(0, "must not be sent")
			}
		})
		s := ts.session(c)
		for range 3 {
			s.Notify(&protocol.Command{Code: 40, Body: []byte("b")})
		}
		for range 3 {
			require.Equal(t, "40 true b", wait(t, got))
		}
		ts.session(c)
		eventually(t, func() bool { return ts.srv.Stats().FramesIn >= 2 }, "counted")
		require.EqualValues(t, 2, ts.srv.Stats().FramesIn, "one-way requests are not answered")
	})
}

func TestPostFromManyGoroutines(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		var wg sync.WaitGroup
		var answers atomic.Int64
		const clients, calls = 8, 200
		for range clients {
			c := ts.client()
			for i := range calls {
				wg.Add(1)
				c.Go(&protocol.Command{Code: codeLater, Body: []byte{byte(i)}}, func(reply *protocol.Command, err error) {
					defer wg.Done()
					if err == nil && bytes.Equal(reply.Body, []byte{byte(i)}) {
						answers.Add(1)
					}
				})
			}
		}
		for range 16 {
			wg.Go(func() {
				for range clients * calls / 16 {
					(<-ts.later)()
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, clients*calls, answers.Load())
	})
}

func TestRunRunsOnTheDriver(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		got := make(chan *protocol.Command, 1000)
		c := ts.client(func(o *ClientOptions) {
			o.OnRequest = func(_ *Client, cmd *protocol.Command) *protocol.Command {
				got <- &protocol.Command{Code: cmd.Code}
				return nil
			}
		})
		s := ts.session(c)
		count := 0 // only the driver changes it
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range 100 {
					s.Run(func() {
						count++
						s.Out = (&protocol.Command{Code: int32(count), Flag: protocol.FlagOneway}).Append(s.Out)
					})
				}
			})
		}
		wg.Wait()
		for i := range 1000 {
			require.EqualValues(t, i+1, wait(t, got).Code)
		}
		c.Close()
		wait(t, ts.closed)
		ran := make(chan bool, 1)
		if s.Run(func() { ran <- true }) {
			require.True(t, wait(t, ran))
		}
	})
}

func TestWakeMakesAPass(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		passes := make(chan *testWorker, 1<<16)
		drivers := make(chan Driver, 100)
		shared := &testShared{t: t, closed: make(chan *Session, 10), onFlush: func(w *testWorker) { passes <- w }}
		ts := start(t, d, Options{NewWorker: func(dr Driver) Worker {
			drivers <- dr
			return &testWorker{testShared: shared}
		}})
		c := ts.client()
		_, err := c.Call(context.Background(), &protocol.Command{Code: codeEcho})
		require.NoError(t, err)
		driver := wait(t, drivers)
		for range 1000 { // more wake-ups than a byte counts
			for len(passes) > 0 {
				<-passes
			}
			driver.Wake()
			wait(t, passes)
		}
	})
}

func TestCloseSendsWhatIsPending(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		reason := errors.New("go away")
		ts := start(t, d, Options{}, func(w *testShared) {
			w.serve = func(s *Session, c *protocol.Command) {
				s.Out = c.Reply(0, "bye").Append(s.Out)
				s.Close(reason)
			}
			w.onClosed = func(s *Session) {
				s.Out = (&protocol.Command{Code: 77, Flag: protocol.FlagOneway}).Append(s.Out)
			}
		})
		conn := ts.dial()
		_, err := conn.Write(append(request(codeEcho, 0, nil), request(codeEcho, 1, nil)...))
		require.NoError(t, err)
		r := frameReader{conn: conn}
		c, err := r.next()
		require.NoError(t, err)
		require.Equal(t, "bye", c.Remark)
		c, err = r.next()
		require.NoError(t, err)
		require.EqualValues(t, 77, c.Code, "the last word, and no answer to the second request")
		_, err = r.next()
		require.Error(t, err)
		require.ErrorIs(t, wait(t, ts.closed).CloseReason(), reason)
		eventually(t, func() bool { return ts.srv.Stats().Closed[otherReason] == 1 }, "counted")
	})
}

func TestWorkerMayAppendAfterTheEnd(t *testing.T) {
	overDrivers(t, func(t *testing.T, d driverCase) {
		ts := start(t, d, Options{})
		c := ts.client()
		s := ts.session(c)
		c.Close()
		wait(t, ts.closed)
		s.Post([]byte("dropped"))
		s.Notify(&protocol.Command{})
		s.Close(nil)
		s.Run(func() {
			s.Touched()
			s.Out = append(s.Out, "dropped"...)
		})
		_, err := ts.client().Call(context.Background(), &protocol.Command{Code: codeEcho})
		require.NoError(t, err)
	})
}
