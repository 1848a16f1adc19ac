package daemon

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units of sizes, longest names first so that "MiB" is not taken for "B".
var units = []struct {
	name string
	size float64
}{
	{"kib", kib}, {"mib", mib}, {"gib", gib}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", kib}, {"m", mib}, {"g", gib}, {"t", 1 << 40}, {"b", 1},
}

// ParseSize reads a number of bytes with an optional unit: 4194304, 4MiB, 4m, 1.5 GiB, 10GB (decimal).
func ParseSize(v string) (int64, error) {
	low := strings.ToLower(strings.TrimSpace(v))
	factor := 1.0
	for _, u := range units {
		if number, ok := strings.CutSuffix(low, u.name); ok {
			low, factor = strings.TrimSpace(number), u.size
			break
		}
	}
	if n, err := strconv.ParseInt(low, 10, 64); err == nil && factor == 1 && n >= 0 {
		return n, nil
	}
	n, err := strconv.ParseFloat(low, 64)
	if err != nil || n < 0 || math.IsNaN(n) || n*factor >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is not a size: a number of bytes, or one with KiB, MiB, GiB or TiB", v)
	}
	return int64(n * factor), nil
}

// FormatSize writes a size with the largest unit that leaves a whole number.
func FormatSize(n int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"TiB", 1 << 40}, {"GiB", gib}, {"MiB", mib}, {"KiB", kib}} {
		if n >= u.size && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

func parseSizeBetween(v string, low, high int64) (int64, error) {
	n, err := ParseSize(v)
	if err != nil {
		return 0, err
	}
	if n < low || n > high {
		return 0, fmt.Errorf("%s is not between %s and %s", v, FormatSize(low), FormatSize(high))
	}
	return n, nil
}

func size(field func(*Settings) *int64, low, high int64) binding {
	return bind("bytes", field, func(v string) (int64, error) { return parseSizeBetween(v, low, high) }, FormatSize)
}

func intSize(field func(*Settings) *int, low, high int64) binding {
	return bind("bytes", field, func(v string) (int, error) {
		n, err := parseSizeBetween(v, low, high)
		return int(n), err
	}, func(n int) string { return FormatSize(int64(n)) })
}
