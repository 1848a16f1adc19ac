package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/metaqio/metaq/internal/commitlog"
	"github.com/metaqio/metaq/message"
)

// verifiedLog is what was found in one log.
type verifiedLog struct {
	Dir        string         `json:"dir"`
	Segments   int            `json:"segments"`
	Frames     map[string]int `json:"frames"` // by kind
	Records    uint64         `json:"records"`
	Start      int64          `json:"start"` // positions
	Tail       int64          `json:"tail"`
	FirstIndex uint64         `json:"first_index"`
	LastIndex  uint64         `json:"last_index"`
	FirstTime  int64          `json:"first_time"` // ms since 1970
	LastTime   int64          `json:"last_time"`
	Unfinished int64          `json:"unfinished"` // bytes behind the tail, which the next start removes
	Problems   []logProblem   `json:"problems"`
	Count      int            `json:"problem_count"` // Problems lists the first ones
}

type logProblem struct {
	File     string `json:"file"`
	Position int64  `json:"position"`
	Why      string `json:"why"`
}

func newLogVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check every frame of the log",
		Long: "Reads every frame of the logs below DIR (a data folder, that of a shard, or a log), checks its checksum and its place, and with\n" +
			"--contents also the records and commands in it. It changes nothing and needs no lock, so a server may run.\n" +
			"The exit code is 1 when something is damaged. Bytes behind the end of the log are no damage: the next start removes them.",
		Example: "  metaq log verify ./data\n  metaq log verify /var/lib/metaq/broker-a --contents --output json",
		Args:    arguments(cobra.ExactArgs(1)),
	}
	output := outputFlag(cmd)
	contents := cmd.Flags().Bool("contents", false, "also read each record and command, and check the bodies' own checksums")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dirs, err := logDirs(args[0])
		if err != nil {
			return err
		}
		var logs []verifiedLog
		for _, dir := range dirs {
			l, err := verifyLog(cmd, dir, *contents)
			if err != nil {
				return err
			}
			logs = append(logs, l)
		}
		return printVerified(cmd, *output, logs)
	}
	return cmd
}

// verifyLog checks one log, with a bar on a terminal.
func verifyLog(cmd *cobra.Command, dir string, contents bool) (verifiedLog, error) {
	line := newStatusLine(cmd)
	defer line.clear()
	start, last := time.Now(), time.Time{}
	report, err := commitlog.Verify(dir, nil, func(done, total int64) {
		if now := time.Now(); now.Sub(last) > 100*time.Millisecond {
			last = now
			line.set("%s %s %3.0f %%  %s MB/s", dir, bar(float64(done)/float64(max(total, 1))), 100*float64(done)/float64(max(total, 1)),
				thousands(float64(done)/1e6/max(now.Sub(start).Seconds(), 1e-3)))
		}
	})
	if err != nil {
		return verifiedLog{}, err
	}
	l := verifiedLog{
		Dir: dir, Segments: report.Segments, Frames: map[string]int{}, Records: report.Records, Start: int64(report.Start), Tail: int64(report.Tail),
		FirstIndex: report.FirstIndex, LastIndex: report.LastIndex, FirstTime: report.FirstTime, LastTime: report.LastTime,
		Unfinished: report.Behind, Problems: []logProblem{}, Count: report.Count,
	}
	for kind, n := range report.Frames {
		if n > 0 {
			l.Frames[frameKind(byte(kind))] = n
		}
	}
	for _, p := range report.Problems {
		l.Problems = append(l.Problems, logProblem{File: p.File, Position: int64(p.Position), Why: p.Why})
	}
	if contents {
		err = l.verifyContents(line)
	}
	return l, err
}

// maxContentProblems bounds what is listed.
const maxContentProblems = 1000

// verifyContents reads what is in the good frames.
func (l *verifiedLog) verifyContents(line *statusLine) error {
	last := time.Time{}
	return commitlog.Walk(l.Dir, nil, message.Position(l.Start), func(file string, f commitlog.Frame) error {
		if now := time.Now(); now.Sub(last) > 100*time.Millisecond {
			last = now
			line.set("%s contents %s", l.Dir, bar(float64(int64(f.Position)-l.Start)/float64(max(l.Tail-l.Start, 1))))
		}
		_, err := readFrame(f, func(item logItem) error {
			if item.record != nil {
				return item.record.CheckBody()
			}
			return nil
		})
		if err != nil {
			if l.Count++; len(l.Problems) < maxContentProblems {
				l.Problems = append(l.Problems, logProblem{File: file, Position: int64(f.Position), Why: err.Error()})
			}
		}
		return nil
	})
}

func printVerified(cmd *cobra.Command, output format, logs []verifiedLog) error {
	g := grid{Header: []any{"LOG", "SEGMENTS", "FRAMES", "RECORDS", "FROM", "TO", "UNFINISHED", "PROBLEMS"}}
	damaged := 0
	for _, l := range logs {
		frames := 0
		for _, n := range l.Frames {
			frames += n
		}
		g.add(l.Dir, l.Segments, frames, l.Records, l.Start, l.Tail, l.Unfinished, l.Count)
		damaged += l.Count
	}
	err := printResult(cmd, output, logs, g)
	if output == formatTable {
		for _, l := range logs {
			for _, p := range l.Problems {
				fmt.Fprintf(cmd.OutOrStdout(), "%s at position %d: %s\n", p.File, p.Position, p.Why)
			}
			if more := l.Count - len(l.Problems); more > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "%d more problems in %s\n", more, l.Dir)
			}
		}
	}
	if damaged > 0 {
		return errors.Join(err, fmt.Errorf("%d problems found", damaged))
	}
	return err
}
