package main

import (
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
)

// A state is the result of one check.
type state string

const (
	stateOK   state = "ok"
	stateWarn state = "warn"
	stateFail state = "fail"
)

// A finding is what one check says.
type finding struct {
	Area  string `json:"area"` // machine, configuration or data
	Check string `json:"check"`
	State state  `json:"state"`
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // what to do about it
}

// findings collects what the checks of one area say.
type findings struct {
	area string
	list []finding
}

func (f *findings) ok(check, found string) { f.add(stateOK, check, found, "") }

func (f *findings) add(s state, check, found, do string) {
	f.list = append(f.list, finding{Area: f.area, Check: check, State: s, Found: found, Do: do})
}

func newDoctor() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "doctor [DIR]",
		GroupID: groupCheck,
		Short:   "Check machine, configuration and data, and say what to do",
		Long: "Checks the machine (open files, disk, clock, kernel), the configuration (the same flags as `metaq server`) and the data folder.\n" +
			"It changes nothing. The exit code is 1 when a check failed; warnings are no failure.",
		Example: "  metaq doctor\n  metaq doctor /var/lib/metaq --config /etc/metaq/broker.conf\n  metaq doctor --output json",
		Args:    arguments(cobra.MaximumNArgs(1)),
	}
	flags := addSettingsFlags(cmd)
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dir := ""
		if len(args) == 1 {
			dir = args[0]
		}
		list := examine(flags, dir)
		if err := printFindings(cmd, *output, list); err != nil {
			return err
		}
		for _, f := range list {
			if f.State == stateFail {
				return &reportedError{"a check failed"}
			}
		}
		return nil
	}
	return cmd
}

// examine runs all checks. dir replaces the data folder of the configuration.
func examine(flags *settingsFlags, dir string) []finding {
	configuration := &findings{area: "configuration"}
	settings := checkConfiguration(configuration, flags)
	if dir != "" {
		settings.Data = dir
	}
	machine := &findings{area: "machine"}
	checkMachine(machine, settings)
	data := &findings{area: "data"}
	checkData(data, settings.Data)
	return append(append(machine.list, configuration.list...), data.list...)
}

func printFindings(cmd *cobra.Command, f format, list []finding) error {
	w := cmd.OutOrStdout()
	paint := map[state]text.Color{stateOK: text.FgGreen, stateWarn: text.FgYellow, stateFail: text.FgRed}
	g := grid{Header: []any{"", "check", "found"}}
	for _, l := range list {
		g.add(colour(w, paint[l.State], string(l.State)), l.Check, l.Found)
		if l.Do != "" {
			g.add("", "", "→ "+l.Do)
		}
	}
	return printResult(cmd, f, list, g)
}
