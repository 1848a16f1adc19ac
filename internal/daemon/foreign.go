package daemon

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A verdict says what becomes of a RocketMQ key.
type verdict byte

const (
	mapped   verdict = iota + 1 // it sets one of our settings
	unneeded                    // it is read and reported as not needed, with the reason
	guarded                     // it is refused, unless its value promises nothing that we would break
)

// A foreign is a key of RocketMQ's configuration files.
type foreign struct {
	key     string
	verdict verdict
	to      string                       // mapped: the setting
	convert func(string) (string, error) // mapped: its value; "" leaves the setting alone
	reason  string                       // unneeded, guarded: completes "… is not needed, because" or "… is refused, because"
	accept  func(string) bool            // guarded: values that are harmless
}

// to maps a key onto a setting with the same values.
func to(key, setting string) foreign {
	return foreign{key: key, verdict: mapped, to: setting, convert: func(v string) (string, error) { return v, nil }}
}

// toConverted maps a key whose values are written differently.
func toConverted(key, setting string, convert func(string) (string, error)) foreign {
	return foreign{key: key, verdict: mapped, to: setting, convert: convert}
}

// toWithUnit maps a bare number onto a duration.
func toWithUnit(key, setting string, unit time.Duration) foreign {
	return toConverted(key, setting, func(v string) (string, error) {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 0 || n > int64(1<<62/unit) {
			return "", fmt.Errorf("%q is not a whole number", v)
		}
		return formatDuration(time.Duration(n) * unit), nil
	})
}

// not reports keys that need nothing here, all for one reason.
func not(reason string, keys ...string) []foreign {
	list := make([]foreign, len(keys))
	for i, k := range keys {
		list[i] = foreign{key: k, verdict: unneeded, reason: reason}
	}
	return list
}

// unless refuses keys, all for one reason, unless the value is harmless.
func unless(accept func(string) bool, reason string, keys ...string) []foreign {
	list := make([]foreign, len(keys))
	for i, k := range keys {
		list[i] = foreign{key: k, verdict: guarded, reason: reason, accept: accept}
	}
	return list
}

func oneOf(values ...string) func(string) bool {
	return func(v string) bool {
		return slices.ContainsFunc(values, func(a string) bool { return strings.EqualFold(a, v) })
	}
}

// Values that promise nothing.
var (
	isFalse = oneOf("false")
	isEmpty = oneOf("")
	isZero  = oneOf("0")
	isOne   = oneOf("0", "1")
)

func flushDiskType(v string) (string, error) {
	switch strings.ToUpper(v) {
	case "SYNC_FLUSH":
		return string(DurabilitySync), nil
	case "ASYNC_FLUSH":
		return string(DurabilityAsync), nil
	}
	return "", fmt.Errorf("%q is neither SYNC_FLUSH nor ASYNC_FLUSH", v)
}

// cleanForcibly maps "never drop before its time" and leaves the threshold alone otherwise.
func cleanForcibly(v string) (string, error) {
	on, err := parseBool(v)
	if err != nil || on {
		return "", err
	}
	return "100", nil
}

// brokerIP maps the address that an Apache broker registers onto a rule for its two ports.
func brokerIP(v string) (string, error) {
	if err := checkTarget(v, false); err != nil {
		return "", err
	}
	return ListenerBroker + "=" + v + "," + ListenerVIP + "=" + v, nil
}

// foreignKeys indexes both tables; keys of namesrv.conf that the broker's file has too are in namesrvOnly.
var foreignKeys = func() map[string]foreign {
	m := map[string]foreign{}
	for _, f := range slices.Concat(brokerConf, namesrvConf) {
		if _, twice := m[f.key]; twice {
			panic("RocketMQ key listed twice: " + f.key)
		}
		m[f.key] = f
	}
	return m
}()

// namesrvOnly replaces rows of the broker's file when the file is a namesrv.conf.
var namesrvOnly = map[string]foreign{"listenPort": to("listenPort", "nameserver-port")}
