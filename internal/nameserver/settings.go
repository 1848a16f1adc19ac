package nameserver

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metaqio/metaq/internal/protocol"
)

// Settings are those of RocketMQ's namesrv.conf that clients, tools or brokers can notice. Administrators change them with UPDATE_NAMESRV_CONFIG.
type Settings struct {
	OrderMessageEnable                bool          // routes carry the order configuration of their topic
	ReturnOrderTopicConfigToBroker    bool          // registrations are answered with all order configurations
	DeleteTopicWithBrokerRegistration bool          // a registration removes the broker's topics that it does not name
	SupportActingMaster               bool          // a slave is shown as master of read-only topics while there is none
	NotifyMinBrokerIDChanged          bool          // replicas are told when the smallest id among them changes
	EnableTopicList                   bool          // 224, 304 and 311 to 313 are served
	EnableAllTopicList                bool          // 206 names topics, else its list is empty
	NeedWaitForService                bool          // routes are refused for WaitForService after the start
	WaitForService                    time.Duration // whole seconds
	ScanNotActiveBrokerInterval       time.Duration // between scans for silent brokers, whole ms
	ProductEnvName                    string        // has no effect
}

// DefaultSettings are RocketMQ's defaults.
func DefaultSettings() Settings {
	return Settings{
		ReturnOrderTopicConfigToBroker: true, EnableTopicList: true, EnableAllTopicList: true,
		WaitForService: 45 * time.Second, ScanNotActiveBrokerInterval: scanPeriod, ProductEnvName: "center",
	}
}

// A settingKey is a key of namesrv.conf.
type settingKey struct {
	get func(*Settings) string
	set func(*Settings, string) error
}

func boolKey(field func(*Settings) *bool) settingKey {
	return settingKey{
		get: func(s *Settings) string { return strconv.FormatBool(*field(s)) },
		set: func(s *Settings, v string) error {
			if v != "true" && v != "false" {
				return errors.New("must be true or false")
			}
			*field(s) = v == "true"
			return nil
		},
	}
}

func durationKey(field func(*Settings) *time.Duration, unit, least, most time.Duration) settingKey {
	return settingKey{
		get: func(s *Settings) string { return strconv.FormatInt(int64(*field(s)/unit), 10) },
		set: func(s *Settings, v string) error {
			n, err := strconv.ParseInt(v, 10, 32)
			if d := time.Duration(n) * unit; err == nil && d >= least && d <= most {
				*field(s) = d
				return nil
			}
			return fmt.Errorf("must be a number from %d to %d", least/unit, most/unit)
		},
	}
}

// settingKeys are the keys that can be changed.
var settingKeys = map[string]settingKey{
	"orderMessageEnable":                boolKey(func(s *Settings) *bool { return &s.OrderMessageEnable }),
	"returnOrderTopicConfigToBroker":    boolKey(func(s *Settings) *bool { return &s.ReturnOrderTopicConfigToBroker }),
	"deleteTopicWithBrokerRegistration": boolKey(func(s *Settings) *bool { return &s.DeleteTopicWithBrokerRegistration }),
	"supportActingMaster":               boolKey(func(s *Settings) *bool { return &s.SupportActingMaster }),
	"notifyMinBrokerIdChanged":          boolKey(func(s *Settings) *bool { return &s.NotifyMinBrokerIDChanged }),
	"enableTopicList":                   boolKey(func(s *Settings) *bool { return &s.EnableTopicList }),
	"enableAllTopicList":                boolKey(func(s *Settings) *bool { return &s.EnableAllTopicList }),
	"needWaitForService":                boolKey(func(s *Settings) *bool { return &s.NeedWaitForService }),
	"waitSecondsForService":             durationKey(func(s *Settings) *time.Duration { return &s.WaitForService }, time.Second, 0, time.Hour),
	"scanNotActiveBrokerInterval": durationKey(func(s *Settings) *time.Duration { return &s.ScanNotActiveBrokerInterval },
		time.Millisecond, 100*time.Millisecond, time.Hour),
	"productEnvName": {
		get: func(s *Settings) string { return s.ProductEnvName },
		set: func(s *Settings, v string) error { s.ProductEnvName = v; return nil },
	},
	"clusterTest": {
		get: func(*Settings) string { return "false" },
		set: func(_ *Settings, v string) error {
			if v != "false" {
				return errors.New("must be false: routes of other environments are not looked up")
			}
			return nil
		},
	},
}

// settingBlackList are the keys that RocketMQ refuses to change.
var settingBlackList = []string{"configBlackList", "configStorePath", "kvConfigPath"}

// errBlackList is RocketMQ's remark for them.
var errBlackList = errors.New("Can not update config in black list.") //nolint:staticcheck // the text that tools know

// with gives s changed by the values of keys. Nothing is changed when one of them is wrong.
func (s Settings) with(values map[string]string) (Settings, error) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if slices.Contains(settingBlackList, name) {
			return s, errBlackList
		}
		key, ok := settingKeys[name]
		if !ok {
			return s, fmt.Errorf("%s is not a setting that can be changed while the name server runs", name)
		}
		if err := key.set(&s, values[name]); err != nil {
			return s, fmt.Errorf("%s %w", name, err)
		}
	}
	return s, nil
}

// text writes settings as properties.
func (s *Settings) text() []byte {
	var b strings.Builder
	names := slices.AppendSeq([]string{"configBlackList"}, maps.Keys(settingKeys))
	slices.Sort(names)
	for _, name := range names {
		value := strings.Join(settingBlackList, ";")
		if key, ok := settingKeys[name]; ok {
			value = key.get(s)
		}
		fmt.Fprintf(&b, "%s=%s\n", name, value)
	}
	return []byte(b.String())
}

// parseProperties reads what Java calls properties: a key and a value a line.
func parseProperties(text string) (map[string]string, error) {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		i := strings.IndexAny(line, "=:")
		if i <= 0 {
			return nil, fmt.Errorf("%.64q is not key=value", line)
		}
		values[strings.TrimSpace(line[:i])] = strings.ReplaceAll(strings.TrimSpace(line[i+1:]), `\`, "")
	}
	return values, nil
}

// updateConfig answers 318.
func (s *Server) updateConfig(c Conn, cmd *protocol.Command) *protocol.Command {
	values, err := parseProperties(string(cmd.Body))
	if err != nil {
		return cmd.Reply(protocol.RespSystemError, "string2Properties error: "+err.Error())
	}
	s.fileMu.Lock()
	defer s.fileMu.Unlock()
	s.mu.RLock()
	settings, err := s.settings.with(values)
	kv, changed := s.kv, maps.Clone(s.changed)
	s.mu.RUnlock()
	switch {
	case errors.Is(err, errBlackList):
		return cmd.Reply(protocol.RespNoPermission, err.Error())
	case err != nil:
		return cmd.Reply(protocol.RespInvalidParameter, err.Error())
	case len(values) == 0:
		return cmd.Reply(protocol.RespSuccess, "")
	}
	maps.Copy(changed, values)
	if err := s.save(kv, changed); err != nil {
		return cmd.Reply(protocol.RespSystemError, err.Error())
	}
	s.mu.Lock()
	s.settings, s.changed = settings, changed
	s.table.generation++
	s.mu.Unlock()
	s.log.Info("name server settings changed", "by", c.Remote(), "values", values)
	return cmd.Reply(protocol.RespSuccess, "")
}

// getConfig answers 319.
func (s *Server) getConfig(_ Conn, cmd *protocol.Command) *protocol.Command {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.withBody(cmd, s.settings.text())
}
