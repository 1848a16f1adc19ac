package remotingdoor_test

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/message"
)

// exchange is what a client asked Apache's broker, and its answer.
type exchange struct {
	ID         string
	Command    string
	Oneway     bool
	Unanswered bool
	Push       bool // by the broker
	Request    string
	Response   string
}

func (e *exchange) frames(t *testing.T) (request, response *protocol.Command) {
	t.Helper()
	decode := func(text string) *protocol.Command {
		frame, err := hex.DecodeString(text)
		require.NoError(t, err)
		c := new(protocol.Command)
		require.NoError(t, c.Decode(frame))
		return c
	}
	request = decode(e.Request)
	if e.Response != "" {
		response = decode(e.Response)
	}
	return request, response
}

// TestRecordedRequestsAreAnsweredLikeByApache replays what official clients asked an
// Apache broker, and compares codes, remarks, names and values of the header's
// fields, names in bodies, and of pulled messages the properties.
func TestRecordedRequestsAreAnsweredLikeByApache(t *testing.T) {
	files, err := filepath.Glob("testdata/recorded/*.jsonl")
	require.NoError(t, err)
	require.Len(t, files, 16)
	used := map[string]bool{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			p := &replay{t: t, used: used, delayed: map[string]bool{}, halves: map[string]ext{}, version: 1 << 60}
			set := func(context.Context, map[string]string, string) error { return nil }
			p.rig = start(t, rigOptions{config: quickLevels, set: set, settings: map[string]string{"brokerName": "broker-a"}})
			p.c, p.prepare = p.rig.client(t), p.rig.client(t)
			for _, e := range readExchanges(t, file) {
				p.one(&e)
			}
		})
	}
	for id := range knownDifferences {
		require.True(t, used[id], "%s does not differ any more", id)
	}
}

func readExchanges(t *testing.T, file string) (out []exchange) {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e exchange
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
		out = append(out, e)
	}
	require.NoError(t, lines.Err())
	return out
}

// replay brings the broker to where Apache's was, and asks the same.
type replay struct {
	t          *testing.T
	rig        *rig
	c, prepare *client
	last       message.Record    // of the last answer with records
	delayed    map[string]bool   // topic and queue to which delayed messages are on their way
	halves     map[string]ext    // where half messages are, by unique key
	half       *protocol.Command // the last one that was sent
	used       map[string]bool
	version    int64  // of the last subscription, higher than that of any pull
	condition  string // by which SQL92 consumers subscribe
}

// knownDifferences are decided: see docs/compat.md.
var knownDifferences = map[string]string{
	"java-delay/5 fields":      "no recall handle as long as there is no recall",
	"java-delay/6 fields":      "no recall handle as long as there is no recall",
	"java-delay/7 fields":      "no recall handle as long as there is no recall",
	"java-delay/9 code":        "timers reach further",
	"java-delay/9 remark":      "timers reach further",
	"java-delay/9 fields":      "timers reach further",
	"java-tx/14 properties":    "decided without a check here",
	"mqadmin/2 body":           "brokerVersion and a few more keys",
	"go-push/7 properties":     "members of a batch get a unique key if they have none",
	"mqadmin/76 remark":        "the key is named",
	"mqadmin/182 body":         "no static topics",
	"java-retry/18 properties": "the last attempt is marked",
	"java-sql/19 remark":       "says what is wrong in other words",
}

func (p *replay) one(e *exchange) {
	request, want := e.frames(p.t)
	if e.Unanswered || e.Push {
		return
	}
	p.before(request, want)
	p.rewrite(request, want)
	if e.Oneway {
		require.NoError(p.t, p.c.Oneway(request))
		return
	}
	got, err := p.c.Call(p.t.Context(), request)
	require.NoError(p.t, err, e.ID)
	if (request.Code == protocol.ReqPullMessage || request.Code == protocol.ReqLitePullMessage) && got.Code == 0 {
		p.last = records(p.t, got.Body)[0]
	}
	p.noteHalf(request, got)
	for name, difference := range p.compare(request, want, got) {
		id := e.ID + " " + name
		if knownDifferences[id] != "" {
			p.used[id] = true
			continue
		}
		p.t.Errorf("%s (%s %s): %s", id, protocol.ReqName(request.Code), e.Command, difference)
	}
}

func get(c *protocol.Command, names ...string) string {
	for _, n := range names {
		if v, ok := c.Ext.Get(n); ok {
			return string(v)
		}
	}
	return ""
}

func atoi(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// before makes what the recorded answer shows to have been there.
func (p *replay) before(request, want *protocol.Command) {
	topic, queue := get(request, "topic", "b"), atoi(get(request, "queueId", "e"))
	group := get(request, "consumerGroup", "group")
	known := want == nil || want.Code != protocol.RespTopicNotExist
	if topic != "" && known && !strings.HasPrefix(topic, "%") && !message.IsSystemTopic(topic) && topic != "broker-a" && request.Code != protocol.ReqUpdateAndCreateTopic {
		if _, ok := p.rig.b.Topic(topic); !ok {
			p.prepare.makeTopic(topic, 4)
		}
	}
	if request.Code == protocol.ReqEndTransaction {
		p.sendHalf(get(request, "transactionId"))
	}
	if want == nil {
		return
	}
	switch request.Code {
	case protocol.ReqCheckClientConfig:
		var body protocol.CheckClientRequest
		require.NoError(p.t, protocol.ParseJSON(request.Body, &body))
		p.condition = body.SubscriptionData.SubString
	case protocol.ReqPullMessage, protocol.ReqLitePullMessage:
		if get(request, "expressionType") == protocol.ExpressionSQL92 {
			p.version++
			s := subscription(topic, p.condition, p.version)
			s.ExpressionType = protocol.ExpressionSQL92
			p.prepare.beat(heartbeat("192.0.2.2@vec", consumer(group, s)))
		} else if atoi(get(request, "sysFlag"))&flagSubscription == 0 {
			p.member(group, "192.0.2.2@vec", topic)
		}
		p.fill(request, want)
	case protocol.ReqQueryConsumerOffset:
		if want.Code == 0 {
			p.reach(topic, queue, 1, nil)
		}
	case protocol.ReqGetMaxOffset:
		p.reach(topic, queue, atoi(get(want, "offset")), nil)
	case protocol.ReqGetEarliestMsgStoretime, protocol.ReqSearchOffsetByTimestamp:
		p.reach(topic, queue, 2, nil)
	case protocol.ReqGetConsumerListByGroup, protocol.ReqGetConsumerConnectionList:
		if want.Code == 0 {
			p.member(group, "192.0.2.2@vec", "VAdmin")
		}
	case protocol.ReqGetProducerConnectionList:
		if want.Code == 0 {
			h := heartbeat("192.0.2.2@vec")
			h.ProducerDataSet = []protocol.ProducerData{{GroupName: get(request, "producerGroup")}}
			p.prepare.beat(h)
		}
	case protocol.ReqGetConsumeStats:
		p.progress(get(request, "consumerGroup"), want)
	case protocol.ReqQueryTopicConsumeByWho:
		var body protocol.GroupList
		require.NoError(p.t, protocol.ParseJSON(want.Body, &body))
		for _, g := range body.GroupList {
			p.prepare.commit(g, topic, 0, 0)
		}
	case protocol.ReqGetTopicStatsInfo:
		p.reach(topic, 0, 1, nil)
	case protocol.ReqGetTopicConfig:
		if group, ok := strings.CutPrefix(topic, "%RETRY%"); ok {
			p.member(group, "192.0.2.2@vec", "VAdmin")
		}
	case protocol.ReqInvokeBrokerToResetOffset:
		p.prepare.makeGroup(group, nil)
	case protocol.ReqViewMessageById:
		p.put(records(p.t, want.Body)[0], "VAdmin", 2)
		rs := p.prepare.read("VAdmin", 2, 0)
		p.last = rs[len(rs)-1]
	}
}

// progress makes a group have offsets where the recorded answer has them.
func (p *replay) progress(group string, want *protocol.Command) {
	var body protocol.ConsumeStats
	require.NoError(p.t, protocol.ParseJSON(want.Body, &body))
	for q := range body.OffsetTable {
		if _, ok := p.rig.b.Topic(q.Topic); !ok {
			p.prepare.makeTopic(q.Topic, 4)
		}
		p.prepare.commit(group, q.Topic, int(q.QueueId), 0)
	}
}

func (p *replay) member(group, id, topic string) {
	p.version++
	p.prepare.beat(heartbeat(id, consumer(group, subscription(topic, "*", p.version))))
}

// fill puts messages like the recorded ones into a queue, or waits for those that
// come by themselves, and has the pull look at them.
func (p *replay) fill(request, want *protocol.Command) {
	topic, queue := get(request, "topic"), atoi(get(request, "queueId"))
	switch want.Code {
	case protocol.RespSuccess:
		p.reach(topic, queue, atoi(get(want, "maxOffset")), records(p.t, want.Body))
		_, high := p.bounds(request)
		request.Ext.SetInt("queueOffset", int64(high-1))
	case protocol.RespPullRetryImmediately: // not one of them is wanted
		if atoi(get(request, "sysFlag"))&flagSubscription == 0 && get(request, "expressionType") != protocol.ExpressionSQL92 {
			p.version++
			p.prepare.beat(heartbeat("192.0.2.2@vec", consumer(get(request, "consumerGroup"), subscription(topic, "Wanted", p.version))))
		}
		_, high := p.bounds(request)
		p.reach(topic, queue, high+1, nil)
		request.Ext.SetInt("queueOffset", int64(high))
	case protocol.RespPullNotFound:
		p.reach(topic, queue, atoi(get(want, "maxOffset")), nil)
		_, high := p.bounds(request)
		request.Ext.SetInt("queueOffset", int64(high))
	default:
		p.reach(topic, queue, atoi(get(want, "maxOffset")), nil)
	}
}

// reach makes a queue have n messages at least, the last ones like those of the recording.
func (p *replay) reach(topic string, queue, n int, like []message.Record) {
	p.t.Helper()
	f := ext{"topic": topic, "queueId": queue}
	for i := 0; ; i++ {
		high := atoi(value(p.prepare.ok(protocol.ReqGetMaxOffset, f, nil), "offset"))
		switch {
		case strings.HasPrefix(topic, "%RETRY%") || p.delayed[topic+strconv.Itoa(queue)]:
			p.prepare.await(topic, queue, int64(n-1))
			return
		case high >= n && (i > 0 || len(like) == 0):
			return
		case len(like) > 0:
			p.put(like[0], topic, queue)
		default:
			p.prepare.mustSend(topic, queue, "filled", props("UNIQ_KEY", "FILLED", "WAIT", "true", "TAGS", "Unwanted"))
		}
	}
}

// put sends a message like a recorded one: without what the broker has put into it,
// and in a batch if there is nothing of the kind.
func (p *replay) put(r message.Record, topic string, queue int) {
	given := r.Properties
	for _, name := range []string{"CLUSTER", "MSG_REGION", "TRACE_ON"} {
		given = message.AppendWithout(nil, given, name)
	}
	if _, own := properties(r)["CLUSTER"]; own {
		p.prepare.mustSend(topic, queue, string(r.Body), string(given))
		return
	}
	p.prepare.ok(protocol.ReqSendBatchMessage, batchFields(topic, queue, ""), batch(batchMember{0, string(r.Body), string(given)}))
}

// rewrite puts into a request what is another in every run: positions, and long waits.
func (p *replay) rewrite(request, want *protocol.Command) {
	switch request.Code {
	case protocol.ReqPullMessage, protocol.ReqLitePullMessage:
		request.Ext.Set("suspendTimeoutMillis", "20")
	case protocol.ReqSendMessage, protocol.ReqSendMessageV2:
		p.delay(request)
	case protocol.ReqEndTransaction:
		for name, v := range p.halves[get(request, "transactionId")] {
			request.Ext.Set(name, v.(string))
		}
	case protocol.ReqConsumerSendMsgBack, protocol.ReqViewMessageById:
		request.Ext.SetInt("offset", int64(p.last.Position))
	}
}

// delay has messages that are to be delivered at a time come soon, and notes where delayed ones go.
func (p *replay) delay(request *protocol.Command) {
	given := get(request, "i", "properties")
	timed := false
	for name := range message.Properties([]byte(given)) {
		timed = timed || string(name) == "DELAY" || string(name) == "TRAN_MSG" || strings.HasPrefix(string(name), "TIMER_")
	}
	if !timed {
		return
	}
	p.delayed[get(request, "topic", "b")+get(request, "queueId", "e")] = true
	if _, at := message.Property([]byte(given), "TIMER_DELIVER_MS"); at {
		soon := strconv.FormatInt(time.Now().Add(500*time.Millisecond).UnixMilli(), 10)
		request.Ext.SetBytes("i", message.AppendProperty([]byte(given), "TIMER_DELIVER_MS", soon))
	}
}

// noteHalf notes where a half message is.
func (p *replay) noteHalf(request, got *protocol.Command) {
	if atoi(get(request, "sysFlag", "f"))&4 == 0 || get(request, "properties", "i") == "" {
		return
	}
	_, at, err := message.ParseOffsetID(get(got, "msgId"))
	require.NoError(p.t, err)
	p.halves[get(got, "transactionId")] = ext{"commitLogOffset": strconv.FormatInt(int64(at), 10), "tranStateTableOffset": get(got, "queueOffset")}
	p.half = request
}

// sendHalf sends a half message like the last one, to the next queue, unless it was recorded.
func (p *replay) sendHalf(key string) {
	if _, ok := p.halves[key]; ok {
		return
	}
	again := copyOf(p.half)
	queue, given := "queueId", "properties"
	if again.Code == protocol.ReqSendMessageV2 {
		queue, given = "e", "i"
	}
	next := (atoi(get(again, queue)) + 1) % 4
	again.Ext.SetInt(queue, int64(next))
	again.Ext.SetBytes(given, message.AppendProperty([]byte(get(again, given)), message.PropertyUniqueKey, key))
	p.delayed[get(again, "topic", "b")+strconv.Itoa(next)] = true
	got, err := p.prepare.Call(p.t.Context(), again)
	require.NoError(p.t, err)
	require.Equal(p.t, int32(0), got.Code, got.Remark)
	p.noteHalf(again, got)
}

func (p *replay) bounds(request *protocol.Command) (low, high int) {
	f := ext{"topic": get(request, "topic"), "queueId": get(request, "queueId")}
	return atoi(value(p.prepare.ok(protocol.ReqGetMinOffset, f, nil), "offset")), atoi(value(p.prepare.ok(protocol.ReqGetMaxOffset, f, nil), "offset"))
}

// unlike are fields whose values are others in every run.
var unlike = []string{"msgId", "queueOffset", "offset", "timestamp", "nextBeginOffset", "minOffset", "maxOffset", "totalTopicNum", "totalGroupNum", "version"}

// compare names what differs.
func (p *replay) compare(request, want, got *protocol.Command) map[string]string {
	out := map[string]string{}
	differ := func(name string, want, got any) {
		w, _ := json.Marshal(want)
		g, _ := json.Marshal(got)
		if string(w) != string(g) {
			out[name] = "Apache: " + string(w) + "\nhere:   " + string(g)
		}
	}
	differ("code", want.Code, got.Code)
	differ("version", want.Version, got.Version)
	if want.Code != 0 || request.Code == protocol.ReqPullMessage || request.Code == protocol.ReqLitePullMessage {
		differ("remark", want.Remark, got.Remark)
	}
	wf, gf := fieldsOf(want), fieldsOf(got)
	differ("fields", slices.Sorted(maps.Keys(wf)), slices.Sorted(maps.Keys(gf)))
	for name, v := range wf {
		if _, ok := gf[name]; ok && !slices.Contains(unlike, name) {
			differ(name, v, gf[name])
		}
	}
	switch request.Code {
	case protocol.ReqPullMessage, protocol.ReqLitePullMessage, protocol.ReqViewMessageById:
		if want.Code == 0 && got.Code == 0 {
			differ("properties", namesOfProperties(p.t, want.Body), namesOfProperties(p.t, got.Body))
		}
	case protocol.ReqGetBrokerConfig: // a text whose names are settings
	default:
		differ("body", namesIn(want.Body), namesIn(got.Body))
	}
	return out
}

func fieldsOf(c *protocol.Command) map[string]string {
	m := map[string]string{}
	for i := range c.Ext.Len() {
		f := c.Ext.At(i)
		m[string(f.Key)] = string(c.Ext.Value(f))
	}
	return m
}

func namesOfProperties(t *testing.T, body []byte) []string {
	return slices.Sorted(maps.Keys(properties(records(t, body)[0])))
}

// Names of members of JSON objects, as far as they are not topics, groups and the like.
var memberName = regexp.MustCompile(`"([a-z][A-Za-z0-9]+)":`)

func namesIn(body []byte) []string {
	names := map[string]bool{}
	for _, m := range memberName.FindAllSubmatch(body, -1) {
		names[string(m[1])] = true
	}
	return slices.Sorted(maps.Keys(names))
}
