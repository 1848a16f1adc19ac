package protocol

import (
	"bytes"
	"encoding/base64"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// entryCost is what an entry of a map takes beside key and value, about.
const entryCost = 8

// value reads what the reader stands on into v.
func (r *reader) value(v reflect.Value, depth int) error {
	if depth > maxBodyDepth {
		return r.fail("is nested too deeply")
	}
	if v.Type() == rawType {
		return r.raw(v, depth)
	}
	if v.CanAddr() && v.Kind() == reflect.Struct {
		if d, ok := reflect.TypeAssert[defaults](v.Addr()); ok {
			d.setDefaults()
		}
	}
	if r.isNull() {
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		if err := r.charge(int(p.Elem().Type().Size())); err != nil {
			return err
		}
		v.Set(p)
		return r.value(p.Elem(), depth)
	case reflect.Struct:
		return r.object(v, depth)
	case reflect.Map:
		return r.table(v, depth)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return r.bytes(v)
		}
		return r.list(v, depth)
	case reflect.Interface:
		x, err := r.any(depth)
		if err == nil && x != nil {
			v.Set(reflect.ValueOf(x))
		}
		return err
	}
	return r.simple(v, depth)
}

// simple reads a string, number or boolean, in quotes or not.
func (r *reader) simple(v reflect.Value, depth int) error {
	start := r.i
	if c := r.space(); c == '{' || c == '[' {
		if v.Kind() != reflect.String || v.Type().Implements(ordinalsType) {
			return r.fail("has an object or list instead of a single value")
		}
		start = r.i
		if err := r.skip(depth); err != nil { // a string of JSON, as Java makes of it
			return err
		}
		v.SetString(string(r.b[start:r.i]))
		return nil
	}
	text, quoted, err := r.scalar()
	if err != nil {
		return err
	}
	ok := true
	switch v.Kind() {
	case reflect.String:
		if v.Type().Implements(ordinalsType) {
			text = enumName(v.Interface().(ordinals).ordinals(), text)
		}
		v.SetString(string(text))
	case reflect.Bool:
		ok = setBool(v, text)
	case reflect.Float64:
		var f float64
		if f, ok = parseFloat(text, quoted); ok {
			v.SetFloat(f)
		}
	default:
		var n int64
		if n, ok = parseWhole(text, quoted); ok {
			if ok = !v.OverflowInt(n); ok {
				v.SetInt(n)
			}
		}
	}
	if !ok {
		r.i = start
		return r.fail("has something other than a " + v.Kind().String())
	}
	return nil
}

// enumName finds the name that text means: a name in any case, or its ordinal. A name
// that does not exist is null for Java, and empty here.
func enumName(names []string, text []byte) []byte {
	if n, ok := parseInt(text); ok {
		if n < 0 || n >= int64(len(names)) {
			return nil
		}
		return []byte(names[n])
	}
	for _, name := range names {
		if strings.EqualFold(name, string(text)) {
			return []byte(name)
		}
	}
	return nil
}

func setBool(v reflect.Value, text []byte) bool {
	switch {
	case bytes.EqualFold(text, []byte("true")), string(text) == "1":
		v.SetBool(true)
	case bytes.EqualFold(text, []byte("false")), string(text) == "0", len(text) == 0:
		v.SetBool(false)
	default:
		return false
	}
	return true
}

// parseFloat reads a number; an empty string is zero.
func parseFloat(text []byte, quoted bool) (float64, bool) {
	if len(text) == 0 {
		return 0, quoted
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil
}

// parseWhole reads an integer, also as 1.0 or 1e3; an empty string is zero.
func parseWhole(text []byte, quoted bool) (int64, bool) {
	if len(text) == 0 {
		return 0, quoted
	}
	if n, ok := parseInt(text); ok {
		return n, true
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// raw copies a value without looking at its meaning.
func (r *reader) raw(v reflect.Value, depth int) error {
	r.space()
	start := r.i
	if err := r.skip(depth); err != nil {
		return err
	}
	if text := r.b[start:r.i]; string(text) != "null" {
		v.SetBytes(bytes.Clone(text))
	}
	return nil
}

func (r *reader) bytes(v reflect.Value) error {
	start := r.i
	text, quoted, err := r.scalar()
	if err != nil {
		return err
	}
	out := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(out, text)
	if err != nil || !quoted {
		r.i = start
		return r.fail("has something other than base64")
	}
	v.SetBytes(out[:n])
	return nil
}

func (r *reader) list(v reflect.Value, depth int) error {
	if r.space() != '[' {
		return r.fail("has something other than a list")
	}
	elem := v.Type().Elem()
	out := reflect.MakeSlice(v.Type(), 0, 0)
	err := r.items(']', func() error {
		if r.isNull() {
			return nil
		}
		if err := r.charge(int(elem.Size())); err != nil {
			return err
		}
		out = reflect.Append(out, reflect.Zero(elem))
		return within(r.value(out.Index(out.Len()-1), depth+1), "["+strconv.Itoa(out.Len()-1)+"]")
	})
	v.Set(out)
	return err
}

func (r *reader) object(v reflect.Value, depth int) error {
	if r.space() != '{' {
		return r.fail("has something other than an object")
	}
	p := planOf(v.Type())
	return r.items('}', func() error {
		name, _, err := r.scalar()
		if err != nil {
			return err
		}
		if err := r.colon(); err != nil {
			return err
		}
		if m := p.find(name); m != nil {
			return within(r.value(v.FieldByIndex(m.index), depth+1), m.name)
		}
		if string(name) == "$ref" {
			return r.fail("has a reference to another place, which is not followed")
		}
		return r.skip(depth + 1)
	})
}

// table reads a map. With objects as keys it may also be a list of pairs.
func (r *reader) table(v reflect.Value, depth int) error {
	t := v.Type()
	v.Set(reflect.MakeMap(t))
	size := int(t.Key().Size()+t.Elem().Size()) + entryCost
	entry := func(between func() error) error {
		if err := r.charge(size); err != nil {
			return err
		}
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		if err := r.key(key, depth+1); err != nil {
			return err
		}
		if err := between(); err != nil {
			return err
		}
		if err := r.value(value, depth+1); err != nil {
			return within(err, "["+keyText(key)+"]")
		}
		v.SetMapIndex(key, value)
		return nil
	}
	switch c := r.space(); {
	case c == '{':
		return r.items('}', func() error { return entry(r.colon) })
	case c == '[' && t.Key().Kind() == reflect.Struct:
		return r.items(']', func() error { return r.pair(entry) })
	}
	return r.fail("has something other than an object")
}

// pair reads [key,value].
func (r *reader) pair(entry func(between func() error) error) error {
	if r.space() != '[' {
		return r.fail("has something other than a pair")
	}
	r.i++
	err := entry(func() error {
		if r.space() != ',' {
			return r.fail("misses a comma")
		}
		r.i++
		return nil
	})
	if err != nil {
		return err
	}
	if r.space() != ']' {
		return r.fail("misses the end of a pair")
	}
	r.i++
	return nil
}

func keyText(key reflect.Value) string {
	switch key.Kind() {
	case reflect.String:
		return key.String()
	case reflect.Struct:
		return string(AppendJSON(nil, key.Interface()))
	}
	return strconv.FormatInt(key.Int(), 10)
}

// key reads the key of a map. An object may be given as a string with its text.
func (r *reader) key(v reflect.Value, depth int) error {
	if v.Kind() != reflect.Struct {
		return r.simple(v, depth)
	}
	if c := r.space(); c != '"' && c != '\'' {
		return r.value(v, depth)
	}
	start := r.i
	text, err := r.str()
	if err != nil {
		return err
	}
	inner := reader{b: text, budget: r.budget}
	if err := inner.value(v, depth); err != nil || inner.space() != 0 || inner.i < len(text) {
		r.i = start
		return r.fail("has a key that is no object")
	}
	r.budget = inner.budget
	return nil
}

// any reads a value of unknown shape: nil, bool, a number as [Number], string, []any,
// map[string]any; an object with objects as keys becomes a list of maps with "key" and
// "value".
func (r *reader) any(depth int) (any, error) {
	if depth > maxBodyDepth {
		return nil, r.fail("is nested too deeply")
	}
	if err := r.charge(int(reflect.TypeFor[any]().Size()) + entryCost); err != nil {
		return nil, err
	}
	switch r.space() {
	case '[':
		list := []any{}
		err := r.items(']', func() error {
			x, err := r.any(depth + 1)
			list = append(list, x)
			return err
		})
		return list, err
	case '{':
		return r.anyObject(depth)
	}
	text, quoted, err := r.scalar()
	switch {
	case err != nil:
		return nil, err
	case quoted:
		return string(text), nil
	case string(text) == "null":
		return nil, nil
	case string(text) == "true", string(text) == "false":
		return len(text) == 4, nil
	}
	if _, err := strconv.ParseFloat(string(text), 64); err != nil {
		return nil, r.fail("has something that is no value")
	}
	return Number(text), nil
}

// A Number is the text of a number in a body of unknown shape.
type Number string

func (r *reader) anyObject(depth int) (any, error) {
	object := map[string]any{}
	var pairs []any
	err := r.items('}', func() error {
		var key any
		if c := r.space(); c == '{' || c == '[' {
			var err error
			if key, err = r.any(depth + 1); err != nil {
				return err
			}
		} else {
			text, _, err := r.scalar()
			if err != nil {
				return err
			}
			key = string(text)
		}
		if err := r.colon(); err != nil {
			return err
		}
		value, err := r.any(depth + 1)
		if name, ok := key.(string); ok {
			object[name] = value
		} else {
			pairs = append(pairs, map[string]any{"key": key, "value": value})
		}
		return err
	})
	if pairs != nil {
		for name, value := range object {
			pairs = append(pairs, map[string]any{"key": name, "value": value})
		}
		return pairs, err
	}
	return object, err
}
