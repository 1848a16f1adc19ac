package sql

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/message"
)

func props(pairs ...string) (b []byte) {
	for i := 0; i < len(pairs); i += 2 {
		b = message.AppendProperty(b, pairs[i], pairs[i+1])
	}
	return b
}

func compile(t testing.TB, text string) *Expression {
	t.Helper()
	e, err := Compile(text)
	require.NoError(t, err, text)
	return e
}

// semantics §14.3: a whole number has 64 bits, whatever the literal is.
func TestWholeNumbersHave64Bits(t *testing.T) {
	for _, c := range []struct{ expression, a, want string }{
		{"a > 10", "3000000000", "T"},
		{"a = 9223372036854775807", "9223372036854775807", "T"},
		{"a > 9223372036854775806", "9223372036854775807", "T"},
		{"a < -9223372036854775807", "-9223372036854775808", "T"},
		{"a > 0", "9223372036854775808", "X"},
		{"a < 0", "-9223372036854775809", "X"},
		{"a > 0.5", "9223372036854775808", "T"},
		{"a > 9223372036854775806", "0009223372036854775807", "T"},
	} {
		require.Equal(t, c.want, evaluated(c.expression, [][]byte{props("a", c.a)}), "%s, a = %s", c.expression, c.a)
	}
}

// C106: TRUE on the left of a property.
func TestC106ATruthValueOnTheLeft(t *testing.T) {
	for _, text := range []string{"TRUE = a", "a = TRUE"} {
		e := compile(t, text)
		require.True(t, e.Match(props("a", "true")), text)
		require.False(t, e.Match(props("a", "false")), text)
		require.False(t, e.Match(nil), text)
	}
}

// C108: names that are no identifiers are refused with the way to write them.
func TestC108NamesWithOtherCharacters(t *testing.T) {
	for _, name := range []string{"a/b/c", "a-b", "a.b"} {
		_, err := Compile(name + " = 'x'")
		require.ErrorContains(t, err, "line 1, column 2", name)
		require.ErrorContains(t, err, "written in double quotes", name)
		e := compile(t, `"`+name+`" = 'x'`)
		require.True(t, e.Match(props(name, "x")), name)
		require.False(t, e.Match(props(name, "y")), name)
	}
	require.True(t, compile(t, `"say ""hi""" IS NOT NULL AND "in" = 1`).Match(props(`say "hi"`, "x", "in", "1")))
}

// C112: a text is compared with a number as a number.
func TestC112TextIsComparedWithNumbersAsANumber(t *testing.T) {
	e := compile(t, "(color in ('red1','red2','red4') and price>3)")
	require.True(t, e.Match(props("color", "red2", "price", "10")))
	for _, price := range []string{"3", "abc", "-10", "3.5"} {
		require.False(t, e.Match(props("color", "red2", "price", price)), price)
	}
	require.False(t, e.Match(props("color", "red2")))
	require.False(t, e.Match(props("color", "red3", "price", "10")))
}

// quirk 16: a whole number makes a whole number of the text.
func TestAWholeNumberDoesNotMatchAFraction(t *testing.T) {
	require.False(t, compile(t, "d > 2").Match(props("d", "2.5")))
	require.True(t, compile(t, "d > 2.0").Match(props("d", "2.5")))
	require.False(t, compile(t, "d > 2 OR TRUE = FALSE OR NOT (d > 2)").Match(props("d", "2.5")), "nothing makes up for it")
	require.True(t, compile(t, "TRUE OR d > 2").Match(props("d", "2.5")), "but what is not looked at")
}

// semantics §14.3: properties that everything of the message has, and of two with the same name the last.
func TestPropertiesAreThoseThatAreStored(t *testing.T) {
	stored := []byte("UNIQ_KEY\x01C0\x02WAIT\x01true\x02TAGS\x01TagA\x02KEYS\x01k1 k2\x02a\x011\x02a\x012")
	require.True(t, compile(t, "TAGS = 'TagA' AND KEYS CONTAINS 'k2' AND WAIT = TRUE AND UNIQ_KEY IS NOT NULL AND a = 2").Match(stored))
	require.False(t, compile(t, "tags = 'TagA'").Match(stored), "names have cases")
}

func TestBadExpressionsSayWhere(t *testing.T) {
	long := strings.Repeat("x", MaxLength)
	for text, want := range map[string]string{
		"":                              "line 1, column 1: the expression is empty",
		" -- nothing":                   "line 1, column 12: the expression is empty",
		"a BETWEEN AND":                 "line 1, column 11: unexpected AND",
		"a >":                           "line 1, column 4: the expression ends too early, after >",
		"a = 'x":                        "line 1, column 5: the string that begins here has no end",
		`"a = 1`:                        "line 1, column 1: the name that begins here has no end",
		"a /* = 1":                      "line 1, column 3: the comment that begins here has no end",
		"a LIKE 'x%'":                   "line 1, column 3: unexpected LIKE; there is no LIKE, but CONTAINS, STARTSWITH and ENDSWITH",
		"a != 1":                        "line 1, column 3: unexpected !; not equal is written <>",
		"a == 1":                        "line 1, column 4: unexpected =; equality is written =",
		"a = 1 && b = 1":                "line 1, column 7: unexpected &; write AND",
		"a = 1 || b = 1":                "line 1, column 7: unexpected |; write OR",
		"a > 1 + 1":                     "line 1, column 7: unexpected +; there is no arithmetic",
		"a > 2 * 2":                     "line 1, column 7: unexpected *; there is no arithmetic",
		"a IN (1, 2)":                   "line 1, column 7: unexpected 1; IN takes strings, in single quotes",
		"a CONTAINS b":                  "line 1, column 12: unexpected b; CONTAINS takes a string in single quotes",
		"a = 5d":                        "line 1, column 6: unexpected d; 5d is not a number",
		"a = 007":                       "line 1, column 5: 007 has a zero in front",
		"标签 = 1":                        "line 1, column 1: unexpected '标'",
		"a = '标签' \n AND b ? 1":         "line 2, column 8: unexpected '?'",
		"a = 1\n\nAND":                  "line 3, column 4: the expression ends too early, after AND",
		"a = NULL":                      "line 1, column 5: nothing is equal to NULL; write IS NULL or IS NOT NULL",
		"NOT a > 5":                     "line 1, column 7: > compares numbers, and NOT binds tighter: write NOT (…)",
		"a > 'x'":                       "line 1, column 5: > compares numbers, and 'x' is none",
		"a between 1 and TRUE":          "line 1, column 17: BETWEEN compares numbers, and TRUE is none",
		"a BETWEEN 10 AND 1":            "line 1, column 11: nothing is between 10 and 1",
		"a = 1 AND 5":                   "line 1, column 11: 5 is not a condition",
		"5 IN ('5')":                    "line 1, column 1: IN takes a property on its left, not 5",
		"TRUE = 1":                      "line 1, column 6: TRUE cannot be compared with 1",
		"a > 9223372036854775808":       "line 1, column 5: 9223372036854775808 is more than 9223372036854775807",
		"a > 0.0":                       "line 1, column 5: 0.0 is less than 5e-324; write 0",
		"a > 1e999":                     "line 1, column 5: 1e999 is more than 1.7976931348623157e+308",
		`"" = 1`:                        "line 1, column 1: a name is empty",
		"a = '\xff'":                    "line 1, column 1: the expression is not UTF-8",
		long + "x":                      "line 1, column 1: the expression has 65537 bytes, 65536 are possible",
		strings.Repeat("(", 101) + "a":  "line 1, column 101: parentheses are nested deeper than 100",
		strings.Repeat("NOT ", 101):     "line 1, column 405: the expression ends too early, after NOT",
		strings.Repeat("- ", 101) + "a": "line 1, column 3: the expression is nested deeper than 100",
		strings.Repeat("a ", 2):         "line 1, column 3: unexpected a",
	} {
		_, err := Compile(text)
		var e *Error
		require.ErrorAs(t, err, &e, "%.40s", text)
		require.Equal(t, want, err.Error(), "%.40s", text)
	}
}

// An expression costs no more than its limits say; chains may be long.
func TestExpressionsHaveLimits(t *testing.T) {
	chain := func(n int) string { return strings.TrimPrefix(strings.Repeat(" OR a = 1", n), " OR ") }
	e := compile(t, chain(250))
	require.True(t, e.Match(props("a", "1")))
	require.Equal(t, 250, e.Weight())
	_, err := Compile(chain(251))
	require.ErrorContains(t, err, "more than 1000 operators, names and values")

	many := make([]string, 4000)
	for i := range many {
		many[i] = fmt.Sprintf("'%d'", i)
	}
	e = compile(t, "a IN ("+strings.Join(many, ", ")+") AND b NOT IN ("+strings.Join(many, ",")+")")
	require.True(t, e.Match(props("a", "3999", "b", "4000")))
	require.False(t, e.Match(props("a", "4000", "b", "4000")))
	require.False(t, e.Match(props("a", "3999", "b", "0")))
	require.Equal(t, 2, e.Weight())

	deep := strings.Repeat("NOT (", 98) + "a = 1" + strings.Repeat(")", 98)
	require.True(t, compile(t, deep).Match(props("a", "1")))
	_, err = Compile("NOT (" + deep + ")")
	require.ErrorContains(t, err, "nested deeper than 100")
}

// One expression serves all consumers of a group.
func TestAnExpressionIsUsedByMany(t *testing.T) {
	e := compile(t, ordinary)
	done := make(chan bool)
	for i := range 8 {
		go func() {
			ok := true
			for k := range 1000 {
				price := (i + k) % 20
				ok = ok && e.Match(props("color", "red", "price", fmt.Sprint(price))) == (price > 3)
			}
			done <- ok
		}()
	}
	for range 8 {
		require.True(t, <-done)
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	stored := props("UNIQ_KEY", "C0000202", "color", "red", "price", "10", "weight", "2.5", "vip", "true", "note", strings.Repeat("long ", 20))
	for _, text := range []string{
		ordinary, "weight BETWEEN 1.5 AND 3.0", "vip = TRUE", "NOT (price < 5 OR weight > 10.0) AND missing IS NULL", "note CONTAINS 'lung'",
		"note IN ('a', 'b')", "note IN ('1','2','3','4','5','6','7','8','9')", "price > note", "weight > price", "-price > 3 OR note > 3",
	} {
		e := compile(t, text)
		require.Zero(t, testing.AllocsPerRun(100, func() { e.Match(stored) }), text)
	}
}

// FuzzCompile: whatever compiles can be evaluated for every message, the same each time, and is true or is not.
func FuzzCompile(f *testing.F) {
	r := []string{
		ordinary, "a BETWEEN 1 AND 10 OR NOT (b IS NULL)", "a NOT IN ('1','2') AND b CONTAINS 'x' -- comment", "TRUE = a OR - a > .5e3",
		`"a/b" STARTSWITH 'it''s' /* * */`, "((a))", "NOT NOT a <> NULL", "a = 9223372036854775807L",
	}
	for _, text := range r {
		f.Add(text, "a", "1.5", "b", "x")
	}
	f.Fuzz(func(t *testing.T, text, n1, v1, n2, v2 string) {
		e, err := Compile(text)
		if err != nil {
			var bad *Error
			require.ErrorAs(t, err, &bad)
			require.Positive(t, bad.Line)
			require.Positive(t, bad.Column)
			return
		}
		for _, m := range [][]byte{nil, props(n1, v1), props(n1, v1, n2, v2), []byte(n1 + v1 + n2 + v2)} {
			v := e.root.eval(m)
			require.Contains(t, []kind{null, boolean, spoiled}, v.kind)
			require.Equal(t, v.is(true), e.Match(m))
		}
		if e.root.depth == MaxDepth || strings.Count(text, "(") >= MaxDepth || len(text) > MaxLength-3 {
			return
		}
		again := compile(t, "("+text+"\n)") // the line ends a comment
		require.Equal(t, e.Match(props(n1, v1)), again.Match(props(n1, v1)))
	})
}

// FuzzNumbers: texts become numbers as strconv reads them, within what Java takes.
func FuzzNumbers(f *testing.F) {
	for _, s := range []string{"1", "-0", " 1.5e3f", "0x1.8p-3D", "NaN", "+Infinity", "9223372036854775808", "1_0", ".", "1e", "inf"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := parseInteger([]byte(s)); ok {
			want, err := strconv.ParseInt(s, 10, 64)
			require.NoError(t, err, s)
			require.Equal(t, want, n, s)
		}
		if x, ok := parseFraction([]byte(s)); ok {
			require.False(t, strings.ContainsAny(s, "_"), s)
			y, again := parseFraction([]byte(fmt.Sprint(x)))
			if strings.Contains(fmt.Sprint(x), "Inf") {
				return // written in another way
			}
			require.True(t, again)
			require.Zero(t, compareNumbers(fractionValue(x), fractionValue(y)), s)
		}
	})
}

const ordinary = "price > 3 AND color IN ('red', 'blue')"

func BenchmarkMatch(b *testing.B) {
	stored := props("UNIQ_KEY", "C00002020BB04E0E2F2A93FBE0940000", "WAIT", "true", "TAGS", "TagA", "color", "red", "price", "10", "weight", "2.5")
	for _, c := range []struct{ name, text string }{
		{"ordinary", ordinary}, {"one", "price > 3"}, {"fraction", "weight > 2.0"}, {"missing", "none = 'x'"},
		{"many", "TAGS = 'TagA' AND price BETWEEN 1 AND 20 AND weight < 3.0 AND color NOT IN ('green','white') AND none IS NULL"},
	} {
		e := compile(b, c.text)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.Match(stored)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		compile(b, ordinary)
	}
}
