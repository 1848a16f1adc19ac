package protocol

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// AppendJSON appends a body as the Java library writes it: compact, members in
// alphabetical order, null members left out; in maps, numbers as bare keys
// ({0:"10.0.0.1:10911"}) and whole objects as keys ({{"brokerName":…}:12}). v is a
// struct of this package, or a slice, map or pointer of such. A nil slice or map is an
// empty one unless it is marked omitempty, a nil pointer is left out.
func AppendJSON(dst []byte, v any) []byte {
	return writer{}.value(dst, reflect.ValueOf(v))
}

// AppendStandardJSON is AppendJSON with quoted keys, objects as keys in their text form,
// and \uXXXX for all that is not ASCII: what name servers answer to clients that read
// only standard JSON.
func AppendStandardJSON(dst []byte, v any) []byte {
	return writer{standard: true}.value(dst, reflect.ValueOf(v))
}

type writer struct{ standard bool }

func (w writer) text(dst []byte, s string) []byte { return appendString(dst, s, w.standard) }

func (w writer) value(dst []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.String:
		return w.text(dst, v.String())
	case reflect.Bool:
		return strconv.AppendBool(dst, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(dst, v.Int(), 10)
	case reflect.Float64:
		return appendDouble(dst, v.Float())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(dst, "null"...)
		}
		return w.value(dst, v.Elem())
	case reflect.Slice:
		return w.slice(dst, v)
	case reflect.Map:
		return w.table(dst, v)
	case reflect.Struct:
		return w.object(dst, v)
	}
	panic(fmt.Sprintf("protocol: append JSON: no form for %v", v.Kind()))
}

// appendDouble writes a point even into whole numbers, as Java does.
func appendDouble(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if bytes.IndexByte(dst[start:], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}

func (w writer) slice(dst []byte, v reflect.Value) []byte {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if v.Type() == rawType {
			if v.Len() == 0 {
				return append(dst, "null"...)
			}
			return append(dst, v.Bytes()...)
		}
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, v.Bytes())
		return append(dst, '"')
	}
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = w.value(dst, v.Index(i))
	}
	return append(dst, ']')
}

func (w writer) object(dst []byte, v reflect.Value) []byte {
	dst = append(dst, '{')
	first := true
	for _, m := range planOf(v.Type()).members {
		f := v.FieldByIndex(m.index)
		if absent(f, m.omitEmpty) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = w.text(dst, m.name)
		dst = append(dst, ':')
		dst = w.value(dst, f)
	}
	return append(dst, '}')
}

// absent tells whether a member is null: it is left out then.
func absent(f reflect.Value, omitEmpty bool) bool {
	switch f.Kind() {
	case reflect.Pointer, reflect.Interface:
		return f.IsNil()
	case reflect.Slice:
		return f.IsNil() && (omitEmpty || f.Type() == rawType)
	case reflect.Map:
		return f.IsNil() && omitEmpty
	}
	return omitEmpty && f.IsZero()
}

// table writes a map, sorted by key: the order means nothing, but the same map should
// give the same bytes.
func (w writer) table(dst []byte, v reflect.Value) []byte {
	keys := v.MapKeys()
	slices.SortFunc(keys, compareKeys)
	dst = append(dst, '{')
	for i, key := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = w.key(dst, key)
		dst = append(dst, ':')
		dst = w.value(dst, v.MapIndex(key))
	}
	return append(dst, '}')
}

func (w writer) key(dst []byte, key reflect.Value) []byte {
	if key.Kind() == reflect.String || !w.standard {
		return w.value(dst, key)
	}
	return w.text(dst, string(w.value(nil, key)))
}

func compareKeys(a, b reflect.Value) int {
	switch a.Kind() {
	case reflect.String:
		return cmp.Compare(a.String(), b.String())
	case reflect.Struct:
		return compareQueues(a.Interface().(MessageQueue), b.Interface().(MessageQueue))
	}
	return cmp.Compare(a.Int(), b.Int())
}
