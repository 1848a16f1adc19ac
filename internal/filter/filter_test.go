package filter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/message"
)

func hash(tag string) int64 { return int64(message.TagHash([]byte(tag))) }

func TestTagExpressions(t *testing.T) {
	for _, all := range []string{"", "*", " * "} {
		f, err := Parse("", all)
		require.NoError(t, err)
		require.True(t, f.All())
		require.True(t, f.MatchTag(0))
		require.True(t, f.MatchProperties(nil))
	}
	f, err := Parse("TAG", " TagA || || TagB")
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
	f, err := Parse("tag", "Aa")
	require.NoError(t, err)
	require.True(t, f.MatchTag(hash("BB")))
	require.False(t, f.MatchProperties([]byte("TAGS\x01BB\x02")))
}

func TestManyTags(t *testing.T) {
	f, err := Parse("", "a||b||c||d||e||f||g||h||i||j")
	require.NoError(t, err)
	require.True(t, f.MatchTag(hash("j")))
	require.False(t, f.MatchTag(hash("k")))
}

func TestBadExpressions(t *testing.T) {
	_, err := Parse("SQL92", "a > 1")
	require.ErrorIs(t, err, ErrUnsupported)
	_, err = Parse("TAG", "||")
	require.Error(t, err)
	long := "x"
	for range 1000 {
		long += "||x"
	}
	_, err = Parse("TAG", long)
	require.Error(t, err)
}

func FuzzParse(f *testing.F) {
	f.Add("TAG", "TagA || TagB")
	f.Fuzz(func(t *testing.T, typ, expr string) {
		x, err := Parse(typ, expr)
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
