package entry

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/message"
)

// samples is every command, with and without contents.
func samples() []Command {
	topic := Topic{
		Name: "T", ReadQueues: 4, WriteQueues: 1 << 30, Perm: 7, MultiTag: true, SysFlag: -1, Order: true, Attributes: map[string]string{"b": "2", "a": "1", "": "x", "e": ""},
	}
	group := Group{
		Name: "G", ConsumeEnable: true, FromMinEnable: true, BroadcastEnable: true, Orderly: true, RetryQueues: 2, RetryMaxTimes: -1, BrokerID: -3,
		SlowBrokerID: 1 << 40, NotifyIDsChanged: true, SysFlag: 5, TimeoutMinutes: 15, RetryPolicy: `{"type":"EXPONENTIAL"}`, Attributes: map[string]string{"k": "v"},
	}
	items := []QueueAt{{0, 0}, {7, 1 << 40}, {1, 5}, {-1, -1}}
	return []Command{
		&PutTopic{}, &PutTopic{Topic: topic, Actor: "someone at 10.0.0.1:5"}, &DeleteTopic{}, &DeleteTopic{Name: "T", Actor: "a"},
		&PutGroup{}, &PutGroup{Group: group, Actor: "a"}, &PutGroup{Group: DefaultGroup("G")}, &DeleteGroup{}, &DeleteGroup{Name: "G", CleanOffsets: true, Actor: "a"},
		&CommitOffsets{}, &CommitOffsets{Group: "G", Topic: "T", Items: items}, &ResetOffsets{}, &ResetOffsets{Group: "G", Topic: "T", Items: items, Pending: true, Actor: "a"},
		&DropLog{}, &DropLog{Before: 1 << 50, Reason: "old"}, &TimerDone{}, &TimerDone{Parked: message.Position(1 << 50)},
		&PutSetting{}, &PutSetting{Name: "n", Value: strings.Repeat("long", 1000), Actor: "a"},
		&EndTransaction{}, &EndTransaction{Half: 1 << 50, Decision: Commit, Answer: true, Actor: "p at 10.0.0.1:5"}, &EndTransaction{Half: 1, Decision: Resume},
		&CheckTransaction{}, &CheckTransaction{Half: 1 << 50, Checks: 15, Next: 1 << 41},
	}
}

// blank is an empty command of the same kind.
func blank(c Command) Command { return reflect.New(reflect.TypeOf(c).Elem()).Interface().(Command) }

func TestEveryCommandIsReadAsItWasWritten(t *testing.T) {
	kinds := map[Kind]bool{}
	for _, c := range samples() {
		kinds[c.Kind()] = true
		body := c.AppendBody(nil)
		require.Equal(t, body, c.AppendBody(nil), "equal commands have equal bytes")
		got := blank(c)
		require.NoError(t, got.ParseBody(body))
		require.Equal(t, c, got)
		again := blank(c)
		require.NoError(t, again.ParseBody(append(body, 0x7a|0x80, 0x7f, 0))) // an unknown field behind
		require.Equal(t, c, again)
	}
	require.Len(t, kinds, 11)
}

func TestARunOfCommandsIsReadInOrder(t *testing.T) {
	var run []byte
	for _, c := range samples() {
		run = Append(run, c)
	}
	r := NewReader(run)
	for _, c := range samples() {
		raw, ok := r.Next()
		require.True(t, ok)
		require.Equal(t, c.Kind(), raw.Kind)
		require.Equal(t, c.AppendBody(nil), append([]byte(nil), raw.Body...))
	}
	_, ok := r.Next()
	require.False(t, ok)
	require.NoError(t, r.Err())
}

// The length of a body is a varint: bodies around its steps.
func TestLengthsOfBodies(t *testing.T) {
	for _, n := range []int{0, 1, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 16370, 16380, 16381, 16382, 16383, 16384, 16385, 70_000} {
		c := &PutSetting{Value: strings.Repeat("v", n), Actor: "end"}
		run := Append(Append([]byte("before"), c), &TimerDone{Parked: 9})
		r := NewReader(run[len("before"):])
		raw, ok := r.Next()
		require.True(t, ok)
		var got PutSetting
		require.NoError(t, got.ParseBody(raw.Body))
		require.Equal(t, *c, got, n)
		raw, ok = r.Next()
		require.True(t, ok)
		require.Equal(t, KindTimerDone, raw.Kind)
	}
}

func TestADamagedRunIsAnError(t *testing.T) {
	whole := Append(nil, &PutSetting{Name: "name", Value: "value"})
	for cut := 1; cut < len(whole); cut++ {
		r := NewReader(whole[:cut])
		_, ok := r.Next()
		require.False(t, ok)
		require.ErrorIs(t, r.Err(), ErrMalformed)
		_, ok = r.Next()
		require.False(t, ok, "an error stays")
	}
	r := NewReader([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	_, ok := r.Next()
	require.False(t, ok)
	require.ErrorIs(t, r.Err(), ErrMalformed)
	for _, body := range [][]byte{{0x0a}, {0x0a, 5, 'a'}, {0xff}, {0x08, 0xff}, {0x0f}} {
		for _, c := range samples() {
			require.ErrorIs(t, blank(c).ParseBody(body), ErrMalformed)
		}
	}
}

func TestEqualLooksAtEveryField(t *testing.T) {
	for _, c := range samples() {
		switch c := c.(type) {
		case *PutTopic:
			everyField(t, reflect.ValueOf(&c.Topic), func(x, y any) bool { return x.(*Topic).Equal(y.(*Topic)) })
		case *PutGroup:
			everyField(t, reflect.ValueOf(&c.Group), func(x, y any) bool { return x.(*Group).Equal(y.(*Group)) })
		}
	}
}

// everyField changes one field after the other of a copy.
func everyField(t *testing.T, of reflect.Value, equal func(x, y any) bool) {
	t.Helper()
	same := reflect.New(of.Elem().Type())
	same.Elem().Set(of.Elem())
	require.True(t, equal(of.Interface(), same.Interface()))
	for i := range of.Elem().NumField() {
		other := reflect.New(of.Elem().Type())
		other.Elem().Set(of.Elem())
		switch f := other.Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString(f.String() + "x")
		case reflect.Bool:
			f.SetBool(!f.Bool())
		case reflect.Map:
			f.Set(reflect.ValueOf(map[string]string{"other": "1"}))
		default:
			f.SetInt(f.Int() + 1)
		}
		require.False(t, equal(of.Interface(), other.Interface()), of.Elem().Type().Field(i).Name)
	}
}

// FuzzRun reads any bytes: what can be read can be written again, and is then read the same.
func FuzzRun(f *testing.F) {
	var run []byte
	for _, c := range samples() {
		run = Append(run, c)
		f.Add(Append(nil, c))
	}
	f.Add(run)
	f.Fuzz(func(t *testing.T, run []byte) {
		r := NewReader(run)
		for raw, ok := r.Next(); ok; raw, ok = r.Next() {
			for _, c := range samples() {
				if c.Kind() != raw.Kind {
					continue
				}
				first := blank(c)
				if first.ParseBody(raw.Body) != nil {
					continue
				}
				body := first.AppendBody(nil)
				second := blank(c)
				if err := second.ParseBody(body); err != nil {
					t.Fatalf("%T: what was read cannot be read again: %v", c, err)
				}
				if again := second.AppendBody(nil); !bytes.Equal(again, body) {
					t.Fatalf("%T: %x becomes %x", c, body, again)
				}
			}
		}
	})
}

func BenchmarkAppendCommit(b *testing.B) {
	c := &CommitOffsets{Group: "some-group", Topic: "some-topic", Items: []QueueAt{{3, 123456}}}
	var run []byte
	b.ReportAllocs()
	for b.Loop() {
		run = Append(run[:0], c)
	}
}
