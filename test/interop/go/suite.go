package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// kind says how a scenario may run.
type kind int

const (
	shared     kind = iota // beside others
	restarting             // alone, and only if the server can be restarted
)

type scenario struct {
	name  string
	kind  kind
	limit time.Duration
	body  func(*rig)
}

// suite has the scenarios and runs them.
type suite struct {
	name       string
	nameServer string // host:port, from METAQ_NS
	restart    string // shell command, takes kill or term as last word; from RESTART_CMD
	parallel   int    // scenarios side by side, from INTEROP_PARALLEL
	scenarios  []scenario

	mu             sync.Mutex // guards the counts and the lines on stdout
	passed, failed int
}

func newSuite(name string) *suite {
	parallel, err := strconv.Atoi(os.Getenv("INTEROP_PARALLEL"))
	if err != nil || parallel < 1 {
		parallel = 12
	}
	return &suite{name: name, nameServer: os.Getenv("METAQ_NS"), restart: os.Getenv("RESTART_CMD"), parallel: parallel}
}

func (s *suite) add(name string, body func(*rig)) {
	s.addFor(name, shared, 100*time.Second, body)
}

func (s *suite) addFor(name string, k kind, limit time.Duration, body func(*rig)) {
	s.scenarios = append(s.scenarios, scenario{name, k, limit, body})
}

// run plays the scenarios that are wanted, all if none is named, and tells
// whether all passed.
func (s *suite) run(wanted []string) (bool, error) {
	for _, name := range wanted {
		if !slices.ContainsFunc(s.scenarios, func(c scenario) bool { return c.name == name }) {
			return false, fmt.Errorf("no scenario is called %s", name)
		}
	}
	chosen := func(c scenario) bool { return len(wanted) == 0 || slices.Contains(wanted, c.name) }
	var all sync.WaitGroup
	slots := make(chan struct{}, s.parallel)
	for _, c := range s.scenarios {
		if c.kind == shared && chosen(c) {
			slots <- struct{}{}
			all.Go(func() {
				s.play(c)
				<-slots
			})
		}
	}
	all.Wait()
	for _, c := range s.scenarios {
		if c.kind != restarting || !chosen(c) {
			continue
		}
		if s.restart == "" {
			s.say("-- %s/%s: left out, RESTART_CMD is not set", s.name, c.name)
			continue
		}
		s.play(c)
	}
	s.say("%d passed, %d failed", s.passed, s.failed)
	return s.failed == 0, nil
}

func (s *suite) play(c scenario) {
	begin := time.Now()
	r := &rig{suite: s, scenario: c.name}
	end := make(chan string, 1)
	go func() {
		defer func() {
			switch why := recover().(type) {
			case nil:
				end <- ""
			case failure:
				end <- string(why)
			default:
				panic(why)
			}
		}()
		c.body(r)
	}()
	var why string
	select {
	case why = <-end:
	case <-time.After(c.limit):
		why = fmt.Sprintf("no end after %s, after %q", c.limit, r.lastStep())
	}
	r.close()
	s.report(c.name, why, time.Since(begin), r.remarks())
}

func (s *suite) report(name, why string, took time.Duration, notes string) {
	s.mu.Lock()
	if why == "" {
		s.passed++
	} else {
		s.failed++
	}
	s.mu.Unlock()
	if why == "" {
		s.say("ok %s/%s (%.1f s)%s", s.name, name, took.Seconds(), notes)
	} else {
		s.say("FAIL %s/%s: %s (%.1f s)%s", s.name, name, why, took.Seconds(), notes)
	}
}

func (s *suite) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Printf(format+"\n", args...)
}
