package nameserver

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
)

func kvCall(s *Server, code int32, namespace, key string, value ...string) *protocol.Command {
	ext := []string{"namespace", namespace, "key", key}
	if len(value) > 0 {
		ext = append(ext, "value", value[0])
	}
	return ask(s, connAt("127.0.0.1"), code, 513, nil, ext...)
}

func TestKVConfigurationSurvives(t *testing.T) {
	fs := vfs.NewCrashableMem()
	open := func(fs vfs.FS) *Server { return newServer(t, Options{FS: fs, Dir: "/nameserver"}) }
	s := open(fs)
	success(t, kvCall(s, protocol.ReqPutKvConfig, "ORDER_TOPIC_CONFIG", "T", "a:8;b:8"))
	success(t, kvCall(s, protocol.ReqPutKvConfig, "N", "k\u00fc", "v \"\u00fc\""))
	success(t, kvCall(s, protocol.ReqPutKvConfig, "N", "gone", "v"))
	success(t, kvCall(s, protocol.ReqDeleteKvConfig, "N", "gone"))
	success(t, kvCall(s, protocol.ReqDeleteKvConfig, "N", "never"))
	success(t, ask(s, connAt("127.0.0.1"), protocol.ReqUpdateNamesrvConfig, 513, []byte("orderMessageEnable=true\nwaitSecondsForService=7\n")))

	s = open(fs.CrashClone(vfs.CrashCloneCfg{}))
	r := kvCall(s, protocol.ReqGetKvConfig, "ORDER_TOPIC_CONFIG", "T")
	value, _ := r.Ext.Get("value")
	require.Equal(t, "a:8;b:8", string(value))
	r = ask(s, connAt("127.0.0.1"), protocol.ReqGetKvlistByNamespace, 513, nil, "namespace", "N")
	require.Equal(t, `{"table":{"kü":"v \"ü\""}}`, string(r.Body))
	require.True(t, s.settings.OrderMessageEnable)
	require.Equal(t, 7*time.Second, s.settings.WaitForService)

	r = kvCall(s, protocol.ReqGetKvConfig, "N", "gone")
	require.EqualValues(t, protocol.RespQueryNotFound, r.Code)
	require.Equal(t, "No config item, Namespace: N Key: gone", r.Remark)
	success(t, kvCall(s, protocol.ReqDeleteKvConfig, "N", "kü"))
	r = ask(s, connAt("127.0.0.1"), protocol.ReqGetKvlistByNamespace, 513, nil, "namespace", "N")
	require.EqualValues(t, protocol.RespQueryNotFound, r.Code)
	require.Equal(t, "No config item, Namespace: N", r.Remark)
	r = kvCall(s, protocol.ReqPutKvConfig, "N", "k")
	require.EqualValues(t, protocol.RespSystemError, r.Code)
	require.Equal(t, "header field value is missing", r.Remark)
}

func TestFailedWriteChangesNothing(t *testing.T) {
	fail := errorfs.Toggle{Injector: errorfs.ErrInjected}
	mem := vfs.NewMem()
	s := newServer(t, Options{FS: errorfs.Wrap(mem, &fail), Dir: "/d"})
	success(t, kvCall(s, protocol.ReqPutKvConfig, "N", "k", "v"))
	fail.On()
	r := kvCall(s, protocol.ReqPutKvConfig, "N", "k", "w")
	require.EqualValues(t, protocol.RespSystemError, r.Code)
	require.Contains(t, r.Remark, "/d/nameserver.json")
	r = ask(s, connAt("127.0.0.1"), protocol.ReqUpdateNamesrvConfig, 513, []byte("orderMessageEnable=true"))
	require.EqualValues(t, protocol.RespSystemError, r.Code)
	require.False(t, s.settings.OrderMessageEnable)
	for _, server := range []*Server{s, newServer(t, Options{FS: mem, Dir: "/d"})} {
		r = kvCall(server, protocol.ReqGetKvConfig, "N", "k")
		value, _ := r.Ext.Get("value")
		require.Equal(t, "v", string(value))
	}
}

func TestForeignFileIsRefused(t *testing.T) {
	for content, why := range map[string]string{
		"{": "unexpected end", `{"format":"x","version":1}`: `format "x"`,
		`{"format":"metaq-nameserver","version":2}`:                                        "version 2, this program reads",
		`{"format":"metaq-nameserver","version":1,"settings":{"unknown":"x"}}`:             "unknown is not a setting",
		`{"format":"metaq-nameserver","version":1,"kv":{"N":{"k":{"deep":1}}}}`:            "cannot unmarshal object",
		`{"format":"metaq-nameserver","version":1,"settings":{"enableTopicList":"maybe"}}`: "must be true or false",
	} {
		fs := vfs.NewMem()
		require.NoError(t, replaceFile(fs, "/", "/"+fileName, []byte(content)))
		_, err := New(Options{FS: fs, Dir: "/"})
		require.ErrorIs(t, err, ErrFile, content)
		require.ErrorContains(t, err, why)
	}
}

func TestOrderConfiguration(t *testing.T) {
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	n := node{name: "a", addr: "10.0.0.1:1"}
	require.Empty(t, n.register(s, c, topicsOf("T", "U")).Body)
	success(t, kvCall(s, protocol.ReqPutKvConfig, "ORDER_TOPIC_CONFIG", "T", "a:8;b:8"))
	require.Equal(t, `{"table":{"T":"a:8;b:8"}}`, string(n.register(s, c, topicsOf("T", "U")).Body))
	require.Empty(t, routeOf(t, s, c, "T").OrderTopicConf, "not unless the setting says so")
	success(t, ask(s, c, protocol.ReqUpdateNamesrvConfig, 513, []byte("orderMessageEnable=true")))
	require.Equal(t, "a:8;b:8", routeOf(t, s, c, "T").OrderTopicConf)
	require.Empty(t, routeOf(t, s, c, "U").OrderTopicConf)
	r := ask(s, c, protocol.ReqGetRouteinfoByTopic, 317, nil, "topic", "T")
	require.Contains(t, string(r.Body), `"filterServerTable":{},"orderTopicConf":"a:8;b:8","queueDatas":[`)
	success(t, kvCall(s, protocol.ReqDeleteKvConfig, "ORDER_TOPIC_CONFIG", "T"))
	require.Empty(t, routeOf(t, s, c, "T").OrderTopicConf)
	success(t, kvCall(s, protocol.ReqPutKvConfig, "ORDER_TOPIC_CONFIG", "T", "a:8"))
	success(t, ask(s, c, protocol.ReqUpdateNamesrvConfig, 513, []byte("returnOrderTopicConfigToBroker=false")))
	require.Empty(t, n.register(s, c, topicsOf("T", "U")).Body)
}

func TestUpdateOfSettings(t *testing.T) {
	c := connAt("127.0.0.1")
	for _, x := range []struct {
		body   string
		code   int32
		remark string
	}{
		{"", 0, ""},
		{"# comment\n! too\n\n", 0, ""},
		{"clusterTest=false\nproductEnvName=center\\:1\n", 0, ""},
		{"scanNotActiveBrokerInterval: 100\r\n", 0, ""},
		{"orderMessageEnable=yes", protocol.RespInvalidParameter, "orderMessageEnable must be true or false"},
		{"waitSecondsForService=-1", protocol.RespInvalidParameter, "waitSecondsForService must be a number from 0 to 3600"},
		{"scanNotActiveBrokerInterval=99", protocol.RespInvalidParameter, "from 100 to 3600000"},
		{"clusterTest=true", protocol.RespInvalidParameter, "clusterTest must be false"},
		{"listenPort=1", protocol.RespInvalidParameter, "listenPort is not a setting that can be changed while the name server runs"},
		{"kvConfigPath=/x", protocol.RespNoPermission, "Can not update config in black list."},
		{"configStorePath=/x\norderMessageEnable=true", protocol.RespNoPermission, "Can not update config in black list."},
		{"a", protocol.RespSystemError, `string2Properties error: "a" is not key=value`},
	} {
		s := newServer(t, Options{})
		r := ask(s, c, protocol.ReqUpdateNamesrvConfig, 513, []byte(x.body))
		require.Equal(t, x.code, r.Code, x.body)
		require.Contains(t, r.Remark, x.remark)
		require.False(t, s.settings.OrderMessageEnable)
	}
	s := newServer(t, Options{})
	success(t, ask(s, c, protocol.ReqUpdateNamesrvConfig, 513, []byte("productEnvName=x")))
	require.Contains(t, string(ask(s, c, protocol.ReqGetNamesrvConfig, 513, nil).Body), "\nproductEnvName=x\n")
}

func TestNotReadyAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := DefaultSettings()
		settings.NeedWaitForService = true
		s, c := newServer(t, Options{Settings: &settings}), connAt("127.0.0.1")
		success(t, node{name: "a", addr: "10.0.0.1:1"}.register(s, c, topicsOf("T", "U")))
		r := ask(s, c, protocol.ReqGetRouteinfoByTopic, 513, nil, "topic", "T")
		require.EqualValues(t, protocol.RespSystemError, r.Code)
		require.Equal(t, "name server not ready", r.Remark)
		pass(45 * time.Second)
		require.NotNil(t, routeOf(t, s, c, "T"))
	})
}

func TestCodes(t *testing.T) {
	s, c := newServer(t, Options{}), connAt("127.0.0.1")
	require.Equal(t, []int32{100, 101, 102, 103, 104, 105, 106, 205, 206, 216, 217, 219, 224, 304, 311, 312, 313, 318, 319, 322, 327, 901, 904}, s.Codes())
	for _, code := range s.Codes() {
		require.Equal(t, code == 100 || code == 102 || code == 318, s.Blocks(code))
		require.NotNil(t, ask(s, c, code, 513, nil))
		require.Nil(t, s.Serve(c, &protocol.Command{Code: code, Flag: protocol.FlagOneway}))
	}
	r := ask(s, c, 9999, 513, nil)
	require.EqualValues(t, protocol.RespRequestCodeNotSupported, r.Code)
	require.Equal(t, " request type 9999 not supported", r.Remark)
	require.False(t, s.Blocks(9999))
}

func TestPropertiesText(t *testing.T) {
	values, err := parseProperties(" a = b \r\nc:d=e\nf=\n")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "b", "c": "d=e", "f": ""}, values)
	_, err = parseProperties(strings.Repeat("x", 1000))
	require.ErrorContains(t, err, "is not key=value")
	require.Less(t, len(err.Error()), 100)
}
