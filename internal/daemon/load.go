package daemon

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/knadh/koanf/v2"
)

// Sources are the places that settings come from. A later one wins: defaults, files in order, environment, flags, assignments.
type Sources struct {
	Files       []string          // YAML (.yaml, .yml) or RocketMQ properties (.conf, .properties)
	Environ     []string          // as os.Environ: METAQ_BROKER_PORT=… sets broker-port
	Flags       map[string]string // by the name of the setting
	Assignments []string          // "name=value", as given to --set
}

// A Report tells how settings came about.
type Report struct {
	Origins map[string]string // setting -> "broker.conf: maxMessageSize", "METAQ_BIND", "--set"; defaults are not in it
	Notes   []string          // what was read and sets nothing: RocketMQ keys that are not needed, variables that are no settings
}

// A ProblemsError lists everything that is wrong with a configuration.
type ProblemsError struct{ Problems []string }

func (e *ProblemsError) Error() string { return strings.Join(e.Problems, "\n") }

// loader collects values and problems of all sources.
type loader struct {
	values   *koanf.Koanf
	origins  map[string]string
	notes    []string
	problems []string
}

// separator of koanf's paths; no name of a setting contains it, so values stay flat.
const separator = "/"

// Load reads all sources and returns the settings. An error is a *ProblemsError with one line for each thing that is wrong.
func Load(src Sources) (Settings, Report, error) {
	l := &loader{values: koanf.New(separator), origins: map[string]string{}}
	defaults := layer{}
	for _, t := range Table {
		defaults[t.Name] = t.Default
	}
	l.put(defaults)
	for _, file := range src.Files {
		l.file(file)
	}
	l.environment(src.Environ)
	l.flags(src.Flags)
	l.assignments(src.Assignments)

	s := l.settings()
	report := Report{Origins: l.origins, Notes: l.notes}
	s.derive()
	l.problems = append(l.problems, s.Validate()...)
	if len(l.problems) > 0 {
		return Settings{}, report, &ProblemsError{Problems: l.problems}
	}
	return s, report, nil
}

// layer is what one source says, by the names of settings. It is a koanf.Provider.
type layer map[string]any

// Read implements koanf.Provider.
func (l layer) Read() (map[string]any, error) { return l, nil }

// ReadBytes implements koanf.Provider; layers are never bytes.
func (l layer) ReadBytes() ([]byte, error) { return nil, fmt.Errorf("a layer has no bytes") }

func (l *loader) put(values layer) {
	if err := l.values.Load(values, nil); err != nil {
		l.problems = append(l.problems, err.Error())
	}
}

func (l *loader) problem(origin, format string, args ...any) {
	l.problems = append(l.problems, origin+": "+fmt.Sprintf(format, args...))
}

// settings converts the text of all layers together. A value that is wrong is reported and replaced by its default, so that the rules
// between settings can be checked all the same.
func (l *loader) settings() (s Settings) {
	for _, t := range Table {
		if err := t.set(&s, l.values.String(t.Name)); err != nil {
			l.problem(l.origins[t.Name], "%v", err)
			_ = t.set(&s, t.Default) // Defaults checks that this works
		}
	}
	return s
}

// source adds the pairs of one source. origin makes the place of a key in messages.
func (l *loader) source(pairs map[string]string, namesrv bool, origin func(key string) string) {
	out, from := layer{}, map[string]string{}
	for _, key := range orderedKeys(pairs) {
		setting, value, ok := l.resolve(key, pairs[key], namesrv, origin(key))
		if !ok {
			continue
		}
		_, own := byName[key]
		if before, twice := from[setting]; twice && own && out[setting] != value {
			l.problem(origin(key), "%s sets the same to another value; keep one of them", before)
			continue
		}
		out[setting], from[setting] = value, key
		l.origins[setting] = origin(key)
	}
	l.put(out)
}

// orderedKeys sorts RocketMQ keys by their place in the tables (a later one wins over an earlier one), then our own names.
func orderedKeys(pairs map[string]string) (keys []string) {
	for _, f := range slices.Concat(brokerConf, namesrvConf) {
		if _, ok := pairs[f.key]; ok {
			keys = append(keys, f.key)
		}
	}
	var rest []string
	for key := range pairs {
		if _, ok := foreignKeys[key]; !ok {
			rest = append(rest, key)
		}
	}
	slices.Sort(rest)
	return append(keys, rest...)
}

// resolve turns a key of a user, ours or RocketMQ's, into a setting and its value.
func (l *loader) resolve(key, value string, namesrv bool, origin string) (setting, converted string, ok bool) {
	if _, own := byName[key]; own {
		return key, value, true
	}
	f, known := foreignKeys[key]
	if other, replaced := namesrvOnly[key]; namesrv && replaced {
		f, known = other, true
	}
	if !known {
		if near := Nearest(key); near != "" {
			l.problem(origin, "there is no setting %q; did you mean %q?", key, near)
		} else {
			l.problem(origin, "there is no setting %q; docs/operations.md lists them all", key)
		}
		return "", "", false
	}
	switch f.verdict {
	case unneeded:
		l.notes = append(l.notes, fmt.Sprintf("%s: not needed, because %s", origin, f.reason))
		return "", "", false
	case guarded:
		if !f.accept(value) {
			l.problem(origin, "%s=%s is refused, because %s", key, value, f.reason)
		}
		return "", "", false
	}
	converted, err := f.convert(value)
	if err != nil {
		l.problem(origin, "%v", err)
		return "", "", false
	}
	return f.to, converted, converted != ""
}

func (l *loader) file(path string) {
	pairs, err := readFile(path)
	if err != nil {
		l.problem(path, "%v", err)
		return
	}
	namesrv := strings.Contains(strings.ToLower(filepath.Base(path)), "namesrv")
	l.source(pairs, namesrv, func(key string) string { return path + ": " + key })
}

func (l *loader) flags(flags map[string]string) {
	l.source(flags, false, func(key string) string { return "--" + key })
}

func (l *loader) assignments(list []string) {
	pairs := map[string]string{}
	for _, a := range list {
		key, value, ok := strings.Cut(a, "=")
		if !ok {
			l.problem("--set "+a, "a name and a value are needed: --set name=value")
			continue
		}
		pairs[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	l.source(pairs, false, func(key string) string { return "--set " + key })
}
