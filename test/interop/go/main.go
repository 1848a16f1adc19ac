package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/apache/rocketmq-client-go/v2/rlog"
)

func main() {
	name := flag.String("suite", "go", "name that is printed before those of the scenarios")
	only := flag.String("only", "", "scenarios to run, comma-separated; all if empty")
	logFile := flag.String("log", "", "file for the log of the client; none if empty")
	flag.Parse()
	s := newSuite(*name)
	if s.nameServer == "" {
		fmt.Fprintln(os.Stderr, "METAQ_NS (host:port of the name server) is not set")
		os.Exit(2)
	}
	quiet(*logFile)
	for _, register := range []func(*suite){sending, bodies, groups, positions, pulling, retrying, transactions, restarts} {
		register(s)
	}
	var wanted []string
	if *only != "" {
		wanted = strings.Split(*only, ",")
	}
	good, err := s.run(wanted)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if !good {
		os.Exit(1)
	}
}

// quiet keeps the client's log off the terminal.
func quiet(file string) {
	if file == "" {
		rlog.SetLogLevel("fatal")
		return
	}
	if err := rlog.SetOutputPath(file); err != nil {
		fmt.Fprintln(os.Stderr, "log file:", err)
		os.Exit(2)
	}
}
