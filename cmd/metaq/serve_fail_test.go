package main

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/metaqio/metaq/internal/protocol"
	"github.com/metaqio/metaq/internal/remoting"
)

// TestServerEndsWhenTheDiskFails: a sync that failed is fatal, whoever sent is told, and the process ends with the path.
func TestServerEndsWhenTheDiskFails(t *testing.T) {
	var bad atomic.Bool
	disk := realDisk
	defer func() { realDisk = disk }()
	realDisk = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if bad.Load() && op.Kind == errorfs.OpFileSyncData && strings.HasSuffix(op.Path, ".log") {
			return syscall.EIO
		}
		return nil
	}))
	s := settingsFor(t, t.TempDir())
	done := make(chan error, 1)
	go func() { done <- serveQuietly(t.Context(), s) }()
	ready := awaitReady(t, s.ReadyFile, done)
	broker, _ := ready["broker"].(string)
	c, err := remoting.Dial(t.Context(), broker, remoting.ClientOptions{Timeout: 20 * time.Second})
	require.NoError(t, err)
	defer c.Close()

	require.Equal(t, protocol.RespSuccess, int(send(t, c).Code))
	bad.Store(true)
	a := send(t, c)
	require.Equal(t, protocol.RespServiceNotAvailable, int(a.Code), a.Remark)
	err = <-done
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorContains(t, err, "sync "+s.Data)
	require.ErrorContains(t, err, ".log")
}

func send(t *testing.T, c *remoting.Client) *protocol.Command {
	t.Helper()
	cmd := &protocol.Command{Code: protocol.ReqSendMessage, Version: protocol.ServerVersion, Body: []byte("x")}
	h := protocol.SendMessageRequest{ProducerGroup: []byte("P"), Topic: []byte("T"), DefaultTopic: []byte("TBW102"), DefaultTopicQueueNums: 1}
	h.Encode(&cmd.Ext)
	a, err := c.Call(t.Context(), cmd)
	require.NoError(t, err)
	return a
}
