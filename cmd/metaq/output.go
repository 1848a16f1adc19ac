package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/daemon"
)

// A format is the value of --output.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
)

// String, Set and Type implement pflag.Value.
func (f *format) String() string { return string(*f) }

func (f *format) Set(v string) error {
	switch format(v) {
	case formatTable, formatJSON:
		*f = format(v)
		return nil
	}
	return fmt.Errorf("it is table or json")
}

func (f *format) Type() string { return "table|json" }

// outputFlag gives a command --output.
func outputFlag(cmd *cobra.Command) *format {
	f := formatTable
	cmd.Flags().VarP(&f, "output", "o", "how results are printed: table or json")
	return &f
}

// A grid is what a command prints as a table: one heading and one row of cells a line.
type grid struct {
	Header []any
	Rows   [][]any
}

func (g *grid) add(cells ...any) { g.Rows = append(g.Rows, cells) }

// printResult writes a command's result to stdout: value as indented JSON, or the grid as a table.
func printResult(cmd *cobra.Command, f format, value any, g grid) error {
	w := cmd.OutOrStdout()
	if f == formatJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(value); err != nil {
			return fmt.Errorf("print result: %w", err)
		}
		return nil
	}
	t := table.NewWriter()
	t.SetOutputMirror(w)
	style := table.StyleLight
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft = ""
	style.Box.PaddingRight = "  "
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	t.AppendHeader(g.Header)
	for _, row := range g.Rows {
		t.AppendRow(row)
	}
	t.Render()
	return nil
}

// colour paints words on a terminal and leaves them alone elsewhere, and where NO_COLOR is set.
func colour(w io.Writer, c text.Color, word string) string {
	f, ok := w.(*os.File)
	if _, no := os.LookupEnv("NO_COLOR"); no || !ok || !daemon.IsTerminal(f) {
		return word
	}
	return text.Colors{c}.EscapeSeq() + word + text.Reset.EscapeSeq()
}
