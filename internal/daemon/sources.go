package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/magiconair/properties"
	"go.yaml.in/yaml/v3"
)

// EnvPrefix begins the names of our environment variables.
const EnvPrefix = "METAQ_"

// maxConfigBytes bounds what is read as a configuration file.
const maxConfigBytes = mib

// readFile reads a configuration file as flat pairs of text.
func readFile(path string) (map[string]string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("there is no such configuration file")
	case err != nil:
		return nil, fmt.Errorf("read configuration: %w", err)
	case info.Size() > maxConfigBytes:
		return nil, fmt.Errorf("has %d bytes, which no configuration file has", info.Size())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		return parseYAML(b)
	case ".conf", ".properties":
		return parseProperties(b)
	}
	return nil, errors.New("is of an unknown kind: name it .yaml, or .conf or .properties for RocketMQ's format")
}

func parseProperties(b []byte) (map[string]string, error) {
	p, err := (&properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}).LoadBytes(b)
	if err != nil {
		return nil, fmt.Errorf("parse properties: %w", err)
	}
	pairs := p.Map()
	for k, v := range pairs {
		pairs[k] = strings.TrimSpace(v) // RocketMQ trims too; an invisible blank at a line's end is no value
	}
	return pairs, nil
}

func parseYAML(b []byte) (map[string]string, error) {
	var nodes map[string]yaml.Node
	if err := yaml.Unmarshal(b, &nodes); err != nil {
		return nil, fmt.Errorf("parse YAML: %w", err)
	}
	pairs := make(map[string]string, len(nodes))
	for key, n := range nodes {
		value, err := yamlText(&n)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", n.Line, key, err)
		}
		pairs[key] = value
	}
	return pairs, nil
}

// yamlText writes a value as it would stand on the command line: lists with commas, rules as name=value.
func yamlText(n *yaml.Node) (string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return "", nil
		}
		return n.Value, nil
	case yaml.SequenceNode:
		parts := make([]string, len(n.Content))
		for i, c := range n.Content {
			if c.Kind != yaml.ScalarNode {
				return "", errors.New("is a list of something else than plain values")
			}
			parts[i] = c.Value
		}
		return strings.Join(parts, ","), nil
	case yaml.MappingNode:
		var parts []string
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i+1].Kind != yaml.ScalarNode {
				return "", errors.New("is nested; settings are flat")
			}
			parts = append(parts, n.Content[i].Value+"="+n.Content[i+1].Value)
		}
		return strings.Join(parts, ","), nil
	}
	return "", errors.New("is not a plain value")
}

// serviceLink matches what Kubernetes adds to the environment for a service that happens to be called metaq….
var serviceLink = regexp.MustCompile(`_SERVICE_(HOST|PORT)(_\w+)?$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$`)

func isServiceLink(name, value string) bool {
	if !serviceLink.MatchString(name) {
		return false
	}
	// METAQ_BROKER_PORT may be ours or a link; only links hold addresses with a scheme.
	if _, ours := byName[envSetting(name)]; ours {
		return strings.HasPrefix(value, "tcp://") || strings.HasPrefix(value, "udp://")
	}
	return true
}

// envSetting is the setting that an environment variable names.
func envSetting(variable string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(variable, EnvPrefix)), "_", "-")
}

// environment adds METAQ_… variables. A name that is nearly that of a setting is refused, since a typo would go unnoticed otherwise;
// one that is like none belongs to a script or a tool (METAQ_ARGS, say), and is only named.
func (l *loader) environment(environ []string) {
	pairs := map[string]string{}
	for _, e := range environ {
		variable, value, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(variable, EnvPrefix) || isServiceLink(variable, value) {
			continue
		}
		name := envSetting(variable)
		if _, ours := byName[name]; !ours && Nearest(name) == "" {
			l.notes = append(l.notes, variable+": is no setting, and was left alone")
			continue
		}
		pairs[name] = value
	}
	l.source(pairs, false, func(key string) string {
		return EnvPrefix + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
	})
}
