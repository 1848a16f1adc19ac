package daemon

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDefaultsAreValidAndReadable(t *testing.T) {
	s := Defaults()
	require.Empty(t, s.Validate())
	require.Equal(t, "./data", s.Data)
	require.Equal(t, DurabilitySync, s.Durability)
	require.Equal(t, 10909, s.VIPPort)
	require.Equal(t, 8, s.DefaultTopicQueues)
	require.Equal(t, 4<<20, s.MaxMessageBytes)
	require.Equal(t, 72*time.Hour, s.RetentionTime)
	require.EqualValues(t, 64<<20, s.CheckpointBytes)
	require.Len(t, s.DelayLevels, 18)
	require.Equal(t, slog.LevelInfo, s.LogLevel)
	require.True(t, s.AutoCreateTopics && s.AutoCreateGroups)
}

func TestEverySettingWritesWhatItReads(t *testing.T) {
	names := map[string]bool{}
	for _, row := range Table {
		require.False(t, names[row.Name], "%s is there twice", row.Name)
		names[row.Name] = true
		require.NotEmpty(t, row.Help, row.Name)
		require.NotEmpty(t, row.Group, row.Name)
		require.NotEmpty(t, row.Kind(), row.Name)
		s := Defaults()
		require.NoError(t, row.set(&s, row.Value(Defaults())), row.Name)
		s.derive()
		require.Equal(t, Defaults(), s, row.Name)
		require.Equal(t, plain(row.Default), plain(row.Value(s)), "default of %s is written in another way than values are", row.Name)
	}
}

func TestEveryMappedKeyNamesASettingThatNamesIt(t *testing.T) {
	for key, f := range foreignKeys {
		switch f.verdict {
		case mapped:
			row, ok := Lookup(f.to)
			require.True(t, ok, "%s -> %s", key, f.to)
			require.Contains(t, row.RocketMQ, key)
		case guarded:
			require.NotNil(t, f.accept, key)
			require.NotEmpty(t, f.reason, key)
		case unneeded:
			require.NotEmpty(t, f.reason, key)
		}
	}
	for _, row := range Table {
		for _, key := range row.RocketMQ {
			key, _, _ = strings.Cut(key, " (")
			require.Contains(t, foreignKeys, key)
		}
	}
}

// load reads one file of the given name and content, and assignments.
func load(t *testing.T, name, content string, assignments ...string) (Settings, Report, error) {
	t.Helper()
	src := Sources{Assignments: assignments}
	if name != "" {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		src.Files = []string{path}
	}
	return Load(src)
}

func TestLaterSourcesWin(t *testing.T) {
	dir := t.TempDir()
	conf, yaml := filepath.Join(dir, "broker.conf"), filepath.Join(dir, "metaq.yaml")
	require.NoError(t, os.WriteFile(conf, []byte("listenPort = 20911\nbrokerName = one\nbrokerClusterName=c1\nmaxMessageSize=1048576\n"), 0o600))
	require.NoError(t, os.WriteFile(yaml, []byte("shard: two\ngrpc-port: 18081\nallow-anonymous: true\n"), 0o600))
	s, report, err := Load(Sources{
		Files:       []string{conf, yaml},
		Environ:     []string{"PATH=/bin", "METAQ_SHARD=three", "METAQ_HTTP_PORT=18080"},
		Flags:       map[string]string{"shard": "four", "data": "/d"},
		Assignments: []string{"shard=five", "retention-time=7d"},
	})
	require.NoError(t, err)
	require.Equal(t, "five", s.Shard)
	require.Equal(t, "c1", s.Cluster)
	require.Equal(t, 20911, s.BrokerPort)
	require.Equal(t, 20909, s.VIPPort, "follows the broker's port")
	require.Equal(t, 18081, s.GRPCPort)
	require.Equal(t, 18080, s.HTTPPort)
	require.Equal(t, "/d", s.Data)
	require.Equal(t, 1<<20, s.MaxMessageBytes)
	require.Equal(t, 7*24*time.Hour, s.RetentionTime)
	require.True(t, s.AllowAnonymous)
	require.Equal(t, "--set shard", report.Origins["shard"])
	require.Equal(t, conf+": listenPort", report.Origins["broker-port"])
	require.Equal(t, "METAQ_HTTP_PORT", report.Origins["http-port"])
	require.NotContains(t, report.Origins, "log-level", "defaults have no origin")
}

func TestBrokerConfIsUnderstood(t *testing.T) {
	s, report, err := load(t, "broker.conf", `
# as shipped with Apache RocketMQ, and some more
brokerClusterName = DefaultCluster
brokerName = broker-a
brokerId = 0
deleteWhen = 04
fileReservedTime = 48
brokerRole = ASYNC_MASTER
flushDiskType = ASYNC_FLUSH
flushIntervalCommitLog=500
namesrvAddr=10.0.0.1:9876;ns-2:9876
brokerIP1=203.0.113.7
bindAddress=127.0.0.1
enablePropertyFilter=true
messageDelayLevel=1s 2m 3h 1d
cleanFileForciblyEnable=false
diskSpaceCleanForciblyRatio=80
sendMessageThreadPoolNums=16
serverChannelMaxIdleTimeSeconds=60
brokerPermission = 4
`)
	require.NoError(t, err)
	require.Equal(t, DurabilityAsync, s.Durability)
	require.Equal(t, 500*time.Millisecond, s.SyncInterval)
	require.Equal(t, 48*time.Hour, s.RetentionTime)
	require.Equal(t, []string{"10.0.0.1:9876", "ns-2:9876"}, s.Nameservers)
	require.Equal(t, Advertise{"broker": "203.0.113.7", "vip": "203.0.113.7"}, s.Advertise)
	require.Equal(t, DelayLevels{time.Second, 2 * time.Minute, 3 * time.Hour, 24 * time.Hour}, s.DelayLevels)
	require.Equal(t, 100, s.DiskMaxUse, "never early")
	require.Equal(t, time.Minute, s.IdleTimeout)
	require.Equal(t, 4, s.BrokerPermission)
	notes := strings.Join(report.Notes, "\n")
	require.Contains(t, notes, "deleteWhen: not needed, because expired segments are dropped when they expire")
	require.Contains(t, notes, "enablePropertyFilter: not needed, because SQL92 filters are always on")
	require.NotContains(t, notes, "brokerRole", "a harmless value needs no note")
}

func TestNamesrvConfHasItsOwnListenPort(t *testing.T) {
	s, _, err := load(t, "namesrv.conf", "listenPort=19876\nkvConfigPath=/x\n")
	require.NoError(t, err)
	require.Equal(t, 19876, s.NameserverPort)
	require.Equal(t, 10911, s.BrokerPort)
}

func TestWhatWouldChangeAGuaranteeIsRefused(t *testing.T) {
	for _, line := range []string{
		"brokerRole=SLAVE", "brokerId=1", "aclEnable=true", "authenticationEnabled=true", "inSyncReplicas=2",
		"enableDLegerCommitLog=true", "haMasterAddress=10.0.0.1:10912", "tls.server.mode=enforcing",
		"messageStorePlugIn=org.apache.rocketmq.tieredstore.TieredMessageStore", "enableControllerMode=true", "enableTopicList=false",
	} {
		_, _, err := load(t, "broker.conf", line)
		require.ErrorContains(t, err, "is refused, because", line)
	}
	for _, line := range []string{"brokerRole=SYNC_MASTER", "brokerId=0", "aclEnable=false", "inSyncReplicas=1", "tls.server.mode=permissive"} {
		_, _, err := load(t, "broker.conf", line)
		require.NoError(t, err, line)
	}
}

func TestUnknownNamesAreRefusedWithTheNearest(t *testing.T) {
	for wrong, near := range map[string]string{
		"brokerport":      "broker-port",
		"broker_port":     "broker-port",
		"retention-tme":   "retention-time",
		"autoCreateTopic": "auto-create-topics",
		"flushDiskTyp":    "flushDiskType",
		"loglevel":        "log-level",
	} {
		_, _, err := load(t, "", "", wrong+"=1")
		require.ErrorContains(t, err, `did you mean "`+near+`"?`)
	}
	_, _, err := load(t, "", "", "completelydifferentthing=1")
	require.ErrorContains(t, err, "lists them all")
	_, _, err = Load(Sources{Environ: []string{"METAQ_BROKER_PROT=1"}})
	require.ErrorContains(t, err, `METAQ_BROKER_PROT: there is no setting "broker-prot"; did you mean "broker-port"?`)
	_, report, err := Load(Sources{Environ: []string{"METAQ_ARGS=--x", "METAQ_START=y", "METAQ=/bin/metaq"}})
	require.NoError(t, err, "variables of tools are no settings")
	require.Equal(t, []string{"METAQ_ARGS: is no setting, and was left alone", "METAQ_START: is no setting, and was left alone"}, report.Notes)
}

func TestKubernetesServiceLinksAreNoSettings(t *testing.T) {
	s, _, err := Load(Sources{Environ: []string{
		"METAQ_SERVICE_HOST=10.0.0.9", "METAQ_SERVICE_PORT=9876", "METAQ_SERVICE_PORT_NAMESERVER=9876", "METAQ_PORT=tcp://10.0.0.9:9876",
		"METAQ_PORT_9876_TCP=tcp://10.0.0.9:9876", "METAQ_PORT_9876_TCP_ADDR=10.0.0.9", "METAQ_PORT_9876_TCP_PROTO=tcp",
		"METAQ_BROKER_PORT=tcp://10.0.0.9:10911", "METAQ_HTTP_PORT=18080",
	}})
	require.NoError(t, err)
	require.Equal(t, 10911, s.BrokerPort)
	require.Equal(t, 18080, s.HTTPPort)
}

func TestAllProblemsAreToldAtOnce(t *testing.T) {
	_, _, err := load(t, "metaq.yaml", "broker-port: x\ndurabilty: sync\nring-bytes: 1MiB\nbind: 0.0.0.0\ngrpc-port: 9876\n")
	problems, ok := errors.AsType[*ProblemsError](err)
	require.True(t, ok)
	all := strings.Join(problems.Problems, "\n")
	for _, part := range []string{
		`broker-port: "x" is not a port`, `did you mean "durability"?`, "ring-bytes: 1MiB is less than four times max-message-bytes",
		"bind: 0.0.0.0 can be reached from outside", "grpc-port: 9876 is the nameserver-port too",
	} {
		require.Contains(t, all, part)
	}
	require.Len(t, problems.Problems, 5)
}

func TestRulesBetweenSettings(t *testing.T) {
	for _, c := range []struct{ assignments, problem string }{
		{"bind=0.0.0.0", "bind: 0.0.0.0 can be reached from outside"},
		{"bind=::", "bind: :: can be reached"},
		{"bind=0.0.0.0 allow-anonymous=true", ""},
		{"bind=127.0.0.5", ""},
		{"bind=::1", ""},
		{"bind=localhost", ""},
		{"bind=example.org", "is not an IP address"},
		{"broker-port=0", ""},
		{"broker-port=10913", ""},
		{"broker-port=8080", "http-port: 8080 is the broker-port too"},
		{"broker-port=2", ""},
		{"broker-port=-1 nameserver-port=-1 grpc-port=-1 http-port=-1", "all ports are off"},
		{"broker-port=70000", "is not a port"},
		{"ring-bytes=17000000", "multiple of 64KiB"},
		{"segment-bytes=4MiB", "segment-bytes: 4MiB is less than twice"},
		{"retention-bytes=1GiB", "less than two segments"},
		{"disk-max-use=95", "disk-stop-use: 90 is below disk-max-use"},
		{"disk-max-use=100", ""},
		{"shard=a/b", "has the character '/'"},
		{"broker-permission=7", "is not a permission"},
		{"message-delay-levels=1x", "is not a delay"},
		{"advertise=broker=h:1,broker=h:2", "second rule"},
		{"advertise=x=h:1", `there is no listener "x"`},
		{"advertise=h:1", "a port needs a listener"},
		{"advertise=broker=h:99999", "is not a port"},
		{"nameservers=a:1,b", `"b" is not host:port`},
		{"data=", "is empty"},
		{"max-message-bytes=9m maxMessageSize=5m", "sets the same to another value"},
	} {
		_, _, err := load(t, "", "", strings.Fields(c.assignments)...)
		if c.problem == "" {
			require.NoError(t, err, c.assignments)
		} else {
			require.ErrorContains(t, err, c.problem, c.assignments)
		}
	}
}

func TestVIPPortFollowsTheBroker(t *testing.T) {
	for assignments, want := range map[string]int{
		"": 10909, "broker-port=20000": 19998, "broker-port=0": 0, "broker-port=-1": -1, "broker-port=1": -1, "vip-port=5": 5, "vip-port=-1": -1,
	} {
		s, _, err := load(t, "", "", strings.Fields(assignments)...)
		require.NoError(t, err)
		require.Equal(t, want, s.VIPPort, assignments)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	for _, c := range []struct{ name, content, problem string }{
		{"metaq.toml", "x=1", "unknown kind"},
		{"metaq.yaml", "a: [", "parse YAML"},
		{"metaq.yaml", "advertise:\n  broker:\n    host: h\n", "settings are flat"},
		{"metaq.yaml", "- a\n", "parse YAML"},
		{"broker.conf", "a\\u00z=1", "parse properties"},
	} {
		_, _, err := load(t, c.name, c.content)
		require.ErrorContains(t, err, c.problem, "%s: %s", c.name, c.content)
	}
	_, _, err := Load(Sources{Files: []string{"/nowhere/metaq.yaml"}})
	require.ErrorContains(t, err, "/nowhere/metaq.yaml: there is no such configuration file")
	_, _, err = load(t, "", "", "bare")
	require.ErrorContains(t, err, "--set bare: a name and a value are needed")
}

func TestYAMLListsAndRules(t *testing.T) {
	s, _, err := load(t, "m.yaml", "nameservers: [a:1, b:2]\nadvertise:\n  broker: h:1\n  vip: h\nready-file:\nmax-pull-messages: 32\n")
	require.NoError(t, err)
	require.Equal(t, []string{"a:1", "b:2"}, s.Nameservers)
	require.Equal(t, Advertise{"broker": "h:1", "vip": "h"}, s.Advertise)
	require.Equal(t, 32, s.MaxPullMessages)
	s, _, err = load(t, "empty.yaml", "")
	require.NoError(t, err)
	require.Equal(t, Defaults(), s)
}

func TestRocketMQNamesAreReadBackAsTheyWereWritten(t *testing.T) {
	s, _, err := load(t, "", "", "durability=async", "retention-time=48h", "max-message-bytes=1MiB", "shard=b", "advertise=broker=h:1",
		"nameservers=a:1;b:2", "disk-max-use=100")
	require.NoError(t, err)
	conf := s.RocketMQ()
	require.Equal(t, "ASYNC_FLUSH", conf["flushDiskType"])
	require.Equal(t, "48", conf["fileReservedTime"])
	require.Equal(t, "1048576", conf["maxMessageSize"])
	require.Equal(t, "a:1;b:2", conf["namesrvAddr"])
	require.Equal(t, "h", conf["brokerIP1"])
	require.Equal(t, "false", conf["cleanFileForciblyEnable"])

	var lines strings.Builder
	for k, v := range conf {
		lines.WriteString(k + "=" + v + "\n")
	}
	again, _, err := load(t, "broker.conf", lines.String())
	require.NoError(t, err, "every key that we tell is one that we read")
	require.Equal(t, conf, func() map[string]string { again.BrokerPort = s.BrokerPort; return again.RocketMQ() }())
}

func TestAdvertisedAddresses(t *testing.T) {
	a := Advertise{"": "example.org", "broker": "10.0.0.1:30911", "vip": "[2001:db8::1]"}
	for listener, want := range map[string]string{
		"broker": "10.0.0.1:30911", "vip": "[2001:db8::1]:10909", "grpc": "example.org:10909",
	} {
		got, ok := a.Address(listener, 10909)
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	_, ok := Advertise{"broker": "h"}.Address("nameserver", 9876)
	require.False(t, ok)
	bare, err := parseAdvertise("2001:db8::2")
	require.NoError(t, err)
	got, _ := bare.Address("broker", 1)
	require.Equal(t, "[2001:db8::2]:1", got)
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4194304": 4 << 20, "4MiB": 4 << 20, "4 mib": 4 << 20, "4m": 4 << 20, "1.5GiB": 3 << 29, "10GB": 1e10, "7b": 7,
		"9223372036854775807": 1<<63 - 1,
	} {
		got, err := ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "-1", "x", "1XB", "NaN", "1e30", "KiB", "9223372036854775808"} {
		_, err := ParseSize(text)
		require.Error(t, err, text)
	}
	require.Equal(t, "4MiB", FormatSize(4<<20))
	require.Equal(t, "1025", FormatSize(1025))
}

func FuzzLoadFile(f *testing.F) {
	f.Add("bind: 127.0.0.1\nadvertise: {broker: h}\n", true)
	f.Add("brokerName = x\nmessageDelayLevel=1s\n", false)
	f.Fuzz(func(t *testing.T, content string, yaml bool) {
		parse := parseProperties
		if yaml {
			parse = parseYAML
		}
		pairs, err := parse([]byte(content))
		if err != nil {
			return
		}
		for _, row := range Table {
			if v, ok := pairs[row.Name]; ok {
				s := Defaults()
				if row.set(&s, v) == nil {
					require.NoError(t, row.set(&s, row.Value(s)), "%s=%q", row.Name, v)
				}
			}
		}
	})
}
