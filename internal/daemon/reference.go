package daemon

import (
	"fmt"
	"slices"
	"strings"
)

// Reference returns the documentation of all settings as Markdown: a table for each group, then the RocketMQ keys.
func Reference() string {
	var b strings.Builder
	group := ""
	for _, t := range Table {
		if t.Group != group {
			group = t.Group
			fmt.Fprintf(&b, "\n### %s\n\n| setting | default | meaning | RocketMQ key |\n| --- | --- | --- | --- |\n", group)
		}
		help := t.Help
		if t.Unit != "" {
			help += " (" + t.Unit + ")"
		}
		if t.Reloadable {
			help += " *Reloadable.*"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", t.Name, code(t.Default), help, code(t.RocketMQ...))
	}
	b.WriteString("\n### Keys of broker.conf and namesrv.conf that set nothing\n\n")
	b.WriteString("| keys | what happens |\n| --- | --- |\n")
	for _, row := range foreignRows() {
		fmt.Fprintf(&b, "| %s | %s |\n", code(row.keys...), row.text)
	}
	return strings.TrimPrefix(b.String(), "\n")
}

func code(words ...string) string {
	var parts []string
	for _, w := range words {
		if w != "" {
			parts = append(parts, "`"+strings.ReplaceAll(w, " (", "` (")+"`")
		}
	}
	return strings.ReplaceAll(strings.Join(parts, ", "), ")`", ")")
}

type foreignRow struct {
	keys []string
	text string
}

// foreignRows joins keys with the same verdict and reason, refused ones first.
func foreignRows() (rows []foreignRow) {
	for _, v := range []verdict{guarded, unneeded} {
		for _, f := range slices.Concat(brokerConf, namesrvConf) {
			if f.verdict != v {
				continue
			}
			text := "not needed, because " + f.reason
			if v == guarded {
				text = "refused where it asks for more than there is, because " + f.reason
			}
			i := slices.IndexFunc(rows, func(r foreignRow) bool { return r.text == text })
			if i < 0 {
				i = len(rows)
				rows = append(rows, foreignRow{text: text})
			}
			rows[i].keys = append(rows[i].keys, f.key)
		}
	}
	return rows
}
