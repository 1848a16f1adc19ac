package daemon

import (
	"maps"
	"slices"
	"strings"
)

// Nearest returns the known name of a setting, ours or RocketMQ's, that is most like a wrong one, or "" when nothing is like it.
func Nearest(wrong string) string {
	best, bestDistance := "", 1<<30
	for _, known := range slices.Concat(slices.Sorted(maps.Keys(byName)), slices.Sorted(maps.Keys(foreignKeys))) {
		if d := distance(plain(wrong), plain(known)); d < bestDistance {
			best, bestDistance = known, d
		}
	}
	if bestDistance > max(1, len(plain(wrong))/3) {
		return ""
	}
	return best
}

// plain takes away what people write in different ways: case, dashes, dots and underscores.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_. ", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// distance counts the letters to add, remove or change to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}
