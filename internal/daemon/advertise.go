package daemon

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Names of the listeners.
const (
	ListenerNameserver = "nameserver"
	ListenerBroker     = "broker"
	ListenerVIP        = "vip"
	ListenerGRPC       = "grpc"
	ListenerHTTP       = "http"
)

// Listeners names all listeners, in the order of their settings.
var Listeners = []string{ListenerNameserver, ListenerBroker, ListenerVIP, ListenerGRPC, ListenerHTTP}

// Advertise are the addresses told to clients, by listener: "host" or "host:port". The key "" stands for all listeners.
// What it does not name is advertised as the address by which the client reached us.
type Advertise map[string]string

// Address returns the address to tell for a listener that listens on port.
func (a Advertise) Address(listener string, port int) (hostPort string, ok bool) {
	rule, ok := a[listener]
	if !ok {
		if rule, ok = a[""]; !ok {
			return "", false
		}
	}
	if _, _, err := net.SplitHostPort(rule); err == nil {
		return rule, true
	}
	return net.JoinHostPort(strings.Trim(rule, "[]"), strconv.Itoa(port)), true
}

func (a Advertise) String() string {
	var parts []string
	for _, listener := range slices.Sorted(maps.Keys(a)) {
		if listener == "" {
			parts = append(parts, a[listener])
		} else {
			parts = append(parts, listener+"="+a[listener])
		}
	}
	return strings.Join(parts, ",")
}

func advertise(field func(*Settings) *Advertise) binding {
	return bind("rules", field, parseAdvertise, Advertise.String)
}

func parseAdvertise(v string) (Advertise, error) {
	rules := Advertise{}
	for part := range strings.SplitSeq(v, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		listener, target, named := strings.Cut(part, "=")
		if !named {
			listener, target = "", part
		}
		if named && !slices.Contains(Listeners, listener) {
			return nil, fmt.Errorf("%q: there is no listener %q; they are %s", part, listener, strings.Join(Listeners, ", "))
		}
		if _, twice := rules[listener]; twice {
			return nil, fmt.Errorf("%q: a second rule for the same listener", part)
		}
		if err := checkTarget(target, named); err != nil {
			return nil, fmt.Errorf("%q: %w", part, err)
		}
		rules[listener] = target
	}
	return rules, nil
}

// checkTarget accepts host, host:port, [v6] and [v6]:port.
func checkTarget(target string, portAllowed bool) error {
	host := target
	if h, p, err := net.SplitHostPort(target); err == nil {
		if !portAllowed {
			return fmt.Errorf("a port needs a listener, for example broker=%s", target)
		}
		if !validPort(p) {
			return fmt.Errorf("%q is not a port", p)
		}
		host = h
	}
	if strings.Contains(host, ":") && net.ParseIP(strings.Trim(host, "[]")) == nil {
		return fmt.Errorf("%q is neither a host nor an IP address", host)
	}
	if host == "" || strings.ContainsAny(host, " /;=") {
		return fmt.Errorf("%q is not a host", host)
	}
	return nil
}

// DelayLevels are the delays of the levels 1, 2, 3, …
type DelayLevels []time.Duration

// String writes the levels as RocketMQ does: 1s 5s 10s 30s 1m …
func (l DelayLevels) String() string {
	parts := make([]string, len(l))
	for i, d := range l {
		switch {
		case d%(24*time.Hour) == 0:
			parts[i] = strconv.FormatInt(int64(d/(24*time.Hour)), 10) + "d"
		case d%time.Hour == 0:
			parts[i] = strconv.FormatInt(int64(d/time.Hour), 10) + "h"
		case d%time.Minute == 0:
			parts[i] = strconv.FormatInt(int64(d/time.Minute), 10) + "m"
		default:
			parts[i] = strconv.FormatInt(int64(d/time.Second), 10) + "s"
		}
	}
	return strings.Join(parts, " ")
}

func delayLevels(field func(*Settings) *DelayLevels) binding {
	return bind("delays", field, func(v string) (levels DelayLevels, err error) {
		unit := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
		for part := range strings.FieldsSeq(v) {
			n, err := strconv.Atoi(part[:len(part)-1])
			u, ok := unit[part[len(part)-1]]
			if err != nil || !ok || n < 1 || n > 1_000_000 {
				return nil, fmt.Errorf("%q is not a delay: a number with s, m, h or d", part)
			}
			levels = append(levels, time.Duration(n)*u)
		}
		if len(levels) == 0 {
			return nil, fmt.Errorf("has no level")
		}
		return levels, nil
	}, DelayLevels.String)
}
