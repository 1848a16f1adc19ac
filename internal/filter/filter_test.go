package filter

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/filter/sql"
	"github.com/metaqio/metaq/message"
)

// parse is Parse with a new parser.
func parse(typ, expression string) (Filter, error) {
	var p Parser
	return p.Parse([]byte(typ), []byte(expression))
}

func hash(tag string) int64 { return int64(message.TagHash([]byte(tag))) }

func TestTagExpressions(t *testing.T) {
	for _, all := range []string{"", "*", " * "} {
		f, err := parse("", all)
		require.NoError(t, err)
		require.True(t, f.All())
		require.True(t, f.MatchTag(0))
		require.True(t, f.MatchProperties(nil))
	}
	f, err := parse("TAG", " TagA || || TagB")
	require.NoError(t, err)
	require.True(t, f.MatchTag(hash("TagA")))
	require.True(t, f.MatchTag(hash("TagB")))
	require.False(t, f.MatchTag(hash("TagC")))
	require.False(t, f.MatchTag(0), "a message without a tag")
	require.True(t, f.MatchProperties([]byte("TAGS\x01TagB\x02")))
	require.False(t, f.MatchProperties([]byte("KEYS\x01TagB\x02")))
}

func TestAHashThatTwoTagsShareLetsNothingWrongThrough(t *testing.T) {
	require.Equal(t, hash("Aa"), hash("BB"))
	f, err := parse("tag", "Aa")
	require.NoError(t, err)
	require.True(t, f.MatchTag(hash("BB")))
	require.False(t, f.MatchProperties([]byte("TAGS\x01BB\x02")))
}

func TestManyTags(t *testing.T) {
	f, err := parse("", "a||b||c||d||e||f||g||h||i||j")
	require.NoError(t, err)
	require.True(t, f.MatchTag(hash("j")))
	require.False(t, f.MatchTag(hash("k")))
}

func TestBadExpressions(t *testing.T) {
	_, err := parse("XPATH", "a > 1")
	require.ErrorIs(t, err, ErrUnsupported)
	_, err = parse("TAG", "||")
	require.Error(t, err)
	long := "x"
	for range 1000 {
		long += "||x"
	}
	_, err = parse("TAG", long)
	require.Error(t, err)
}

func TestConditions(t *testing.T) {
	f, err := parse("sql92", "a > 1 AND TAGS = 'TagA'")
	require.NoError(t, err)
	require.False(t, f.All())
	require.True(t, f.MatchTag(hash("TagB")), "the hash says nothing about a condition")
	require.Equal(t, 2, f.Weight())
	require.True(t, f.MatchProperties([]byte("TAGS\x01TagA\x02a\x012\x02")))
	require.False(t, f.MatchProperties([]byte("TAGS\x01TagA\x02a\x011\x02")))
	require.False(t, f.MatchProperties(nil))
	for _, bad := range []string{"", "*", "a >", "TagA || TagB"} {
		_, err := parse("SQL92", bad)
		var e *sql.Error
		require.ErrorAs(t, err, &e, bad)
	}
}

// "Compile once": the same condition is one, for all who ask for it.
func TestAParserRemembersConditions(t *testing.T) {
	var p Parser
	sql := func(text string) (Filter, error) { return p.Parse([]byte("SQL92"), []byte(text)) }
	a, err := sql("a > 1")
	require.NoError(t, err)
	b, err := sql("a > 1")
	require.NoError(t, err)
	require.Same(t, a.condition, b.condition)
	_, first := sql("a >")
	_, second := sql("a >")
	require.Same(t, first, second, "errors too")

	for i := range maxKnown { // it forgets rather than grow
		_, err := sql(fmt.Sprint("a > ", i+2))
		require.NoError(t, err)
		require.LessOrEqual(t, len(p.known), maxKnown)
	}
	long := strings.Repeat(" ", 60_000)
	for i := range 2 * maxKnownBytes / len(long) {
		_, err := sql(fmt.Sprint("a > ", i, long))
		require.NoError(t, err)
		require.LessOrEqual(t, p.bytes, maxKnownBytes)
	}
	c, err := sql("a > 1")
	require.NoError(t, err)
	require.True(t, c.MatchProperties([]byte("a\x012\x02")))
}

func FuzzParse(f *testing.F) {
	f.Add("TAG", "TagA || TagB")
	f.Add("SQL92", "a > 1")
	f.Fuzz(func(t *testing.T, typ, expr string) {
		x, err := parse(typ, expr)
		if err != nil {
			return
		}
		for _, tag := range x.tags {
			if !x.MatchTag(hash(tag)) {
				t.Fatalf("%q does not match its own tag %q", expr, tag)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	var p Parser
	typ, text := []byte("SQL92"), []byte("price > 3 AND color IN ('red', 'blue')")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Parse(typ, text); err != nil {
			b.Fatal(err)
		}
	}
}
