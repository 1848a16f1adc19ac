// Command gen writes zz_generated_*.go of the package in whose folder it runs from the
// definitions in defs/*.def: the constants and names of codes, and the typed headers
// with their Decode and Encode. `go generate ./internal/protocol` runs it.
//
// parse.go reads definitions (defs/README.md explains their form) and checks them,
// emit.go writes Go. It has no goroutines and no flags, and removes nothing: a
// generated file whose definitions are gone has to be deleted by hand, and the test of
// this package says so.
package main
