package broker

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// attribute is what a topic attribute may be; see RocketMQ's TopicAttributes.
type attribute struct {
	values []string // possible values; empty: a number from min to max
	min    int64
	max    int64
	fixed  bool // can't be changed or removed
}

var topicAttributes = map[string]attribute{
	"queue.type":            {values: []string{"SimpleCQ", "BatchCQ"}, fixed: true},
	"cleanup.policy":        {values: []string{"DELETE", "COMPACTION"}, fixed: true},
	"message.type":          {values: []string{"NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED", "UNSPECIFIED", "PRIORITY", "LITE"}},
	"reserve.time":          {min: -1, max: 1<<63 - 1},
	"lite.topic.expiration": {min: -1, max: 43200},
}

// unbuilt lists values that would change how messages are kept, which this version does not do.
var unbuilt = map[string]string{"queue.type": "BatchCQ", "cleanup.policy": "COMPACTION"}

// changeAttributes applies changes "+key" → value and "-key" → "" to a topic's
// attributes. The result is nil when there are none.
func changeAttributes(old, changes map[string]string, creating bool) (map[string]string, error) {
	out := maps.Clone(old)
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		value := changes[key]
		if key == "" || key[0] != '+' && key[0] != '-' {
			return nil, refuse(Internal, "wrong format key: %s: it begins with + or -", key)
		}
		name := key[1:]
		a, known := topicAttributes[name]
		_, twice := changes[otherSign(key)]
		switch {
		case twice:
			return nil, refuse(Internal, "key duplication: %s", name)
		case !known:
			return nil, refuse(Internal, "attribute %q is not known", name)
		case strings.HasPrefix(key, "-") && creating:
			return nil, refuse(Internal, "only add attribute is supported while creating topic. key: %s", name)
		case strings.HasPrefix(key, "-"):
			if _, set := out[name]; !set {
				return nil, refuse(Internal, "attempt to delete a nonexistent key: %s", name)
			}
			if a.fixed {
				return nil, refuse(Internal, "attempt to update an unchangeable attribute. key: %s", name)
			}
			delete(out, name)
			continue
		case !a.allows(value):
			return nil, refuse(Internal, "value %q is not possible for attribute %s", value, name)
		case a.fixed && !creating:
			return nil, refuse(Internal, "attempt to update an unchangeable attribute. key: %s", name)
		case unbuilt[name] == value && value != "":
			return nil, refuse(Internal, "attribute %s=%s is not supported by this version", name, value)
		}
		if out == nil {
			out = map[string]string{}
		}
		out[name] = value
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

// otherSign is the key that asks for the opposite.
func otherSign(key string) string {
	if key[0] == '+' {
		return "-" + key[1:]
	}
	return "+" + key[1:]
}

func (a attribute) allows(value string) bool {
	if len(a.values) > 0 {
		return slices.Contains(a.values, value)
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return err == nil && n >= a.min && n <= a.max
}
