package httpdoor

import (
	"fmt"
	"strings"
)

// Reference returns the documentation of all metrics of ours as Markdown: a table for each heading.
func Reference() string {
	var b strings.Builder
	heading := ""
	for _, f := range families {
		if f.heading != heading {
			heading = f.heading
			fmt.Fprintf(&b, "\n## %s\n\n| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n", heading)
		}
		var labels []string
		if f.shard {
			labels = append(labels, "`shard`")
		}
		for _, l := range f.labels {
			labels = append(labels, "`"+l+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, f.kind, strings.Join(labels, ", "), f.help)
	}
	return strings.TrimPrefix(b.String(), "\n")
}
