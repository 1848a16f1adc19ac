package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Limits of length in lines. Tables (composite literals) and switches of one-liners do not count towards a function's length.
const (
	maxFile     = 500
	maxTestFile = 1000
	maxFunc     = 70
	maxTestFunc = 100
)

// Spelled in two parts, so that this file does not find itself.
var promise = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`)

// checkDoc demands a doc.go with a package comment.
func checkDoc(p pkg) []string {
	if len(p.GoFiles)+len(p.CgoFiles) == 0 {
		return nil // only tests, or left out on this system
	}
	name := filepath.Join(p.Dir, "doc.go")
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.PackageClauseOnly)
	switch {
	case os.IsNotExist(err):
		return []string{p.rel + " has no doc.go: tell what the package does, what it does not, its main types, goroutines and files"}
	case err != nil:
		return []string{fmt.Sprintf("%s: %v", name, err)}
	case f.Doc == nil || len(strings.TrimSpace(f.Doc.Text())) < 80:
		return []string{p.rel + "/doc.go has no package comment, or one that tells nothing"}
	}
	return nil
}

// checkSource holds one file against the limits of length and the banned words and calls.
func checkSource(shown string, src []byte) (problems []string) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, shown, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	if ast.IsGenerated(f) {
		return nil
	}
	test := strings.HasSuffix(shown, "_test.go")
	fileLimit, funcLimit := maxFile, maxFunc
	if test {
		fileLimit, funcLimit = maxTestFile, maxTestFunc
	}
	if n := strings.Count(string(src), "\n"); n > fileLimit {
		problems = append(problems, fmt.Sprintf("%s has %d lines, more than %d: split it by what its parts know", shown, n, fileLimit))
	}
	for i, line := range strings.Split(string(src), "\n") {
		if word := promise.FindString(line); word != "" {
			problems = append(problems, fmt.Sprintf("%s:%d says %s: do it now, or write an issue", shown, i+1, word))
		}
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			if n := lines(fset, fn); n > funcLimit {
				problems = append(problems, fmt.Sprintf("%s: %s has %d lines, more than %d: give its parts names",
					fset.Position(fn.Pos()), fn.Name.Name, n, funcLimit))
			}
		}
	}
	if test {
		problems = append(problems, checkSleep(fset, f)...)
	}
	return problems
}

// lines counts a function's lines without its tables.
func lines(fset *token.FileSet, fn *ast.FuncDecl) int {
	line := func(p token.Pos) int { return fset.Position(p).Line }
	n := line(fn.End()) - line(fn.Pos()) + 1
	ast.Inspect(fn.Body, func(node ast.Node) bool {
		switch t := node.(type) {
		case *ast.CompositeLit:
			n -= line(t.End()) - line(t.Pos())
			return false
		case *ast.SwitchStmt:
			if oneLiners(fset, t.Body) {
				n -= line(t.End()) - line(t.Pos())
				return false
			}
		case *ast.TypeSwitchStmt:
			if oneLiners(fset, t.Body) {
				n -= line(t.End()) - line(t.Pos())
				return false
			}
		}
		return true
	})
	return n
}

// oneLiners reports whether each case of a switch is at most one statement on one line.
func oneLiners(fset *token.FileSet, body *ast.BlockStmt) bool {
	for _, s := range body.List {
		c, ok := s.(*ast.CaseClause)
		if !ok || len(c.Body) > 1 {
			return false
		}
		for _, st := range c.Body {
			if fset.Position(st.Pos()).Line != fset.Position(st.End()).Line {
				return false
			}
		}
	}
	return true
}

func checkSleep(fset *token.FileSet, f *ast.File) (problems []string) {
	ast.Inspect(f, func(node ast.Node) bool {
		sel, ok := node.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "Sleep" {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && id.Name == "time" {
			problems = append(problems, fmt.Sprintf("%s: time.Sleep in a test: wait for the event itself (a channel, synctest.Wait); "+
				"inside a synctest bubble, advance the clock by <-time.After(d)", fset.Position(sel.Pos())))
		}
		return true
	})
	return problems
}
