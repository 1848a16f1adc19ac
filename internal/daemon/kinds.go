package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

const (
	auto     = "auto"
	portUnit = "0 = any free port, −1 = off"
)

// A binding connects a row of Table with a field of Settings: text in, text out.
type binding struct {
	kind string
	set  func(s *Settings, text string) error
	get  func(s *Settings) string
}

func bind[T any](kind string, field func(*Settings) *T, parse func(string) (T, error), format func(T) string) binding {
	return binding{
		kind: kind,
		set: func(s *Settings, text string) error {
			v, err := parse(strings.TrimSpace(text))
			if err == nil {
				*field(s) = v
			}
			return err
		},
		get: func(s *Settings) string { return format(*field(s)) },
	}
}

func same(s string) string { return s }

func text(field func(*Settings) *string) binding {
	return bind("text", field, func(v string) (string, error) {
		if v == "" {
			return "", errors.New("is empty")
		}
		return v, nil
	}, same)
}

func optionalText(field func(*Settings) *string) binding {
	return bind("text", field, func(v string) (string, error) { return v, nil }, same)
}

// name accepts what RocketMQ accepts as a name of a cluster or a broker: it becomes part of topic names.
func name(field func(*Settings) *string) binding {
	return bind("name", field, func(v string) (string, error) {
		switch {
		case v == "":
			return "", errors.New("is empty")
		case len(v) > 127:
			return "", fmt.Errorf("has %d bytes, 127 are allowed", len(v))
		}
		for _, r := range v {
			letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
			if !letter && !strings.ContainsRune("_-%|.", r) {
				return "", fmt.Errorf("has the character %q; letters, digits and _-%%|. are allowed", r)
			}
		}
		return v, nil
	}, same)
}

func toggle(field func(*Settings) *bool) binding {
	return bind("bool", field, parseBool, strconv.FormatBool)
}

func parseBool(v string) (bool, error) {
	switch strings.ToLower(v) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", v)
}

func integer(field func(*Settings) *int, low, high int) binding {
	return bind("number", field, func(v string) (int, error) {
		n, err := strconv.Atoi(strings.TrimSuffix(v, "%"))
		switch {
		case err != nil:
			return 0, fmt.Errorf("%q is not a whole number", v)
		case n < low || n > high:
			return 0, fmt.Errorf("%d is not between %d and %d", n, low, high)
		}
		return n, nil
	}, strconv.Itoa)
}

func parsePort(v string) (int, error) {
	n, err := strconv.Atoi(strings.Replace(v, "−", "-", 1))
	if err != nil || n < Off || n > 65535 {
		return 0, fmt.Errorf("%q is not a port: 1 to 65535, 0 for any free one, -1 for off", v)
	}
	return n, nil
}

func port(field func(*Settings) *int) binding {
	return bind("port", field, parsePort, strconv.Itoa)
}

func vipPort() binding {
	return binding{
		kind: "port",
		set: func(s *Settings, v string) error {
			if s.vipAuto = strings.TrimSpace(v) == auto; s.vipAuto {
				return nil
			}
			n, err := parsePort(strings.TrimSpace(v))
			if err == nil {
				s.VIPPort = n
			}
			return err
		},
		get: func(s *Settings) string {
			if s.vipAuto {
				return auto
			}
			return strconv.Itoa(s.VIPPort)
		},
	}
}

func address(field func(*Settings) *string) binding {
	return bind("address", field, func(v string) (string, error) {
		if v == "localhost" {
			return "127.0.0.1", nil
		}
		a, err := netip.ParseAddr(strings.Trim(v, "[]"))
		if err != nil {
			return "", fmt.Errorf("%q is not an IP address", v)
		}
		return a.String(), nil
	}, same)
}

func addresses(field func(*Settings) *[]string) binding {
	return bind("addresses", field, func(v string) (list []string, err error) {
		for _, part := range strings.FieldsFunc(v, func(r rune) bool { return r == ';' || r == ',' || r == ' ' }) {
			host, port, err := net.SplitHostPort(part)
			if err != nil || host == "" || !validPort(port) {
				return nil, fmt.Errorf("%q is not host:port", part)
			}
			list = append(list, part)
		}
		return list, nil
	}, func(list []string) string { return strings.Join(list, ";") })
}

func validPort(p string) bool {
	n, err := strconv.Atoi(p)
	return err == nil && n > 0 && n <= 65535
}

func choice[T ~string](field func(*Settings) *T, allowed ...T) binding {
	return bind("choice", field, func(v string) (T, error) {
		names := make([]string, len(allowed))
		for i, a := range allowed {
			if strings.EqualFold(v, string(a)) {
				return a, nil
			}
			names[i] = string(a)
		}
		return "", fmt.Errorf("%q is not one of %s", v, strings.Join(names, ", "))
	}, func(v T) string { return string(v) })
}

func duration(field func(*Settings) *time.Duration, low, high time.Duration) binding {
	return bind("duration", field, func(v string) (time.Duration, error) {
		d, err := parseDuration(v)
		switch {
		case err != nil:
			return 0, err
		case d < low || d > high:
			return 0, fmt.Errorf("%s is not between %s and %s", v, formatDuration(low), formatDuration(high))
		}
		return d, nil
	}, formatDuration)
}

// parseDuration is time.ParseDuration with days.
func parseDuration(v string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(v, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 36500 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: a number with ms, s, m, h or d", v)
	}
	return d, nil
}

// formatDuration writes 1m0s as 1m and 72h0m0s as 72h.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func level() binding {
	return bind("choice", func(s *Settings) *slog.Level { return &s.LogLevel }, func(v string) (l slog.Level, err error) {
		if err := l.UnmarshalText([]byte(v)); err != nil {
			return 0, fmt.Errorf("%q is not one of debug, info, warn, error", v)
		}
		return l, nil
	}, func(l slog.Level) string { return strings.ToLower(l.String()) })
}

func permission(field func(*Settings) *int) binding {
	return bind("number", field, func(v string) (int, error) {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 6 || n&1 != 0 {
			return 0, fmt.Errorf("%q is not a permission: 6 read and write, 4 read, 2 write, 0 none", v)
		}
		return n, nil
	}, strconv.Itoa)
}
