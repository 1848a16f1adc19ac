// Command metaq is the whole product in one program: the server, the tools that administrate it, a load generator and checks.
//
// Each command has a file of its own that reads its flags, calls one package and prints what it answers; it decides nothing. main.go
// has the exit codes (0 done, 1 it failed, 2 wrong usage), root.go the list of commands, output.go what all of them share in printing:
// results go to stdout as a table or JSON (--output), everything else to stderr, colours and progress only to a terminal.
//
// topic*.go, group*.go, message*.go, offset*.go, txn*.go and cluster*.go talk to a server (remote.go has their flags, package admin what they do), bench*.go
// load one (package bench), log*.go read the disk. confirm.go asks before something is destroyed, progress.go is the line on a terminal.
//
// server.go turns the command line into settings and the process's shell (internal/daemon); serve.go puts the server together and runs it.
//
// Goroutines: those of the packages that a command uses. Files: none of its own.
package main
