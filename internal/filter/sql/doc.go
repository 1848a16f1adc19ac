// Package sql evaluates the SQL92 expressions by which consumers choose messages by
// their properties: the language of RocketMQ, as its own parser and evaluator
// define it, and not more of SQL than that.
//
//	e, err := sql.Compile("price > 3 AND color IN ('red', 'blue')")
//	…
//	wanted := e.Match(record.Properties)
//
// Compile does everything that can be done once: lexer.go cuts the text into tokens,
// grammar.y (by goyacc, zz_generated_parser.go) finds its structure, build.go checks
// what each operator takes and makes a tree of nodes. A bad expression gives an
// [Error] that says where and why. Match walks the tree (eval.go); it allocates
// nothing and cannot fail.
//
// # Values
//
// A property is a text, or NULL when the message does not have it. It becomes a
// number or a truth value where it meets one (value.go): the whole number 3 makes a
// whole number of the text, 3.0 a fraction, TRUE a truth value. A text that is not a
// number then spoils the whole expression: the message does not match, whatever OR or
// NOT stand around it. AND, OR and NOT have three values, and a message matches only
// if the result is TRUE.
//
// # Cost
//
// An expression has a largest length, depth and number of operators; there are no
// loops and no wildcards. Each operator looks at the properties once at most, so that
// [Expression.Weight] times their length bounds the work for a message.
//
// What it does not do: know messages beyond their properties, or know subscriptions.
//
// Goroutines: none; an Expression may be used by any number. Files: none.
package sql

//go:generate go tool -modfile=../../../tools/go.mod goyacc -l -v "" -o zz_generated_parser.go grammar.y
