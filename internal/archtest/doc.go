// Package archtest keeps the house in the shape that docs/ARCHITECTURE.md draws.
//
// It has no code of its own, only tests. They list the module's packages with `go list`, read the sources with go/parser and fail with
// the reason when
//
//   - a package imports its own floor or a higher one (table floors), or is missing in the table;
//   - a big library is imported by another package than its owner (table owners), or reaches the public packages at all;
//   - a package has no doc.go with a package comment;
//   - a file is longer than 500 lines (tests 1,000) or a function than 70 (tests 100); generated code and tables are excepted;
//   - a test calls time.Sleep, or a comment promises work instead of doing it.
//
// What it does not do: judge style (golangci-lint does, `make lint`) or look into other modules (tools, test/interop).
// Imports of test files are free, except for the owners of big libraries.
//
// The rules are plain functions over a list of packages, and are tested themselves against a made-up house (rules_test.go).
// To add a package: give it a line in the table of floors_test.go, a doc.go, and a line in docs/ARCHITECTURE.md.
//
// Goroutines: none. Files: reads the module's sources, writes nothing.
package archtest
