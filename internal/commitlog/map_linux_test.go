package commitlog

import (
	"os"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

func TestFaultInAMapIsAnErrorOfTheRead(t *testing.T) {
	o := small(vfs.Default, false)
	o.Dir = t.TempDir()
	l, _ := open(t, o)
	all := fill(t, l, 300_000)
	_, err := l.Read(nil, all[0].pos, 100)
	require.NoError(t, err)
	s := l.segments()[0]
	require.NotNil(t, s.view.Load(), "it was mapped")
	require.NoError(t, os.Truncate(s.path, 0)) // somebody cuts the file: touching the map is a bus error now
	_, ok := s.view.Load().copyOut(nil, 0, 100)
	require.False(t, ok)
	_, err = l.FrameAt(all[0].pos)
	var damage *CorruptError
	require.ErrorAs(t, err, &damage)
}
