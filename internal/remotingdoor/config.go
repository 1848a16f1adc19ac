package remotingdoor

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/magiconair/properties"

	"github.com/metaqio/metaq/internal/broker"
	"github.com/metaqio/metaq/internal/protocol"
)

// GET_BROKER_CONFIG (26): the settings by their RocketMQ names.
func getConfig(_ context.Context, r *request) *protocol.Command {
	settings := r.d.opts.Settings()
	var body bytes.Buffer
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&body, "%s=%s\n", k, settings[k])
	}
	a := r.json(body.Bytes())
	a.Ext.SetBytes("version", protocol.AppendJSON(nil, &protocol.DataVersion{Counter: 0, Timestamp: r.d.opts.Started.UnixMilli()}))
	return a
}

// UPDATE_BROKER_CONFIG (25): Java properties text; all settings in it or none.
func updateConfig(ctx context.Context, r *request) *protocol.Command {
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	p, err := loader.LoadBytes(r.Body)
	if err != nil {
		return r.Reply(protocol.RespSystemError, "the body is not properties text: "+err.Error())
	}
	for _, k := range p.Keys() {
		switch k {
		case "brokerConfigPath", "rocketmqHome", "configBlackList":
			return r.Reply(protocol.RespNoPermission, "Can not update config in black list: "+k)
		}
	}
	if r.d.opts.Set == nil {
		return r.Reply(protocol.RespSystemError, "settings cannot be changed at run time")
	}
	if err := r.d.opts.Set(ctx, p.Map(), r.actor()); err != nil {
		return r.fail(err)
	}
	return r.ok()
}

// GET_BROKER_RUNTIME_INFO (28): what tools show of a broker; remoting.md §12.2.
func runtimeInfo(_ context.Context, r *request) *protocol.Command {
	return r.json(protocol.AppendJSON(nil, &protocol.KVTable{Table: r.d.runtime()}))
}

func (d *Door) runtime() map[string]string {
	i := d.b.Info()
	up := time.Since(d.opts.Started)
	t := map[string]string{
		"brokerVersionDesc": "V5_5_0", "brokerVersion": itoa(protocol.ServerVersion), "brokerActive": "true",
		"bootTimestamp": itoa(d.opts.Started.UnixMilli()), "startAcceptSendRequestTimeStamp": "0",
		"runtime": fmt.Sprintf("[ %d days, %d hours, %d minutes, %d seconds ]", int(up.Hours())/24, int(up.Hours())%24, int(up.Minutes())%60, int(up.Seconds())%60),

		"putTps": rates(i.PutTPS), "getFoundTps": rates(i.FoundTPS), "getMissTps": rates(i.MissTPS),
		"getTotalTps": rates(i.TotalTPS), "getTransferredTps": rates(i.GetTPS), "getTransferedTps": rates(i.GetTPS), // as 4.x spelt it, for the exporter
		"putMessageTimesTotal": itoa(i.Puts), "putMessageSizeTotal": itoa(i.PutBytes), "putMessageFailedTimes": itoa(i.PutFailed),
		"putMessageAverageSize": fmt.Sprintf("%.1f", average(i.PutBytes, i.Puts)), "putMessageEntireTimeMax": itoa(i.PutMax.Milliseconds()),
		"putLatency99": itoa(i.Put99.Milliseconds()), "putLatency999": itoa(i.Put999.Milliseconds()), "getMessageEntireTimeMax": "0",
		"putMessageDistributeTime": distribution(i.PutTimes), "msgPutTotalTodayNow": itoa(i.Puts), "msgPutTotalTodayMorning": itoa(i.PutsMorning),
		"msgPutTotalYesterdayMorning": itoa(i.PutsYesterday), "msgGetTotalTodayNow": itoa(i.Gets), "msgGetTotalTodayMorning": itoa(i.GetsMorning),
		"msgGetTotalYesterdayMorning": itoa(i.GetsYesterday),

		"commitLogMinOffset": itoa(i.LogMin), "commitLogMaxOffset": itoa(i.LogMax), "commitLogDiskRatio": fmt.Sprintf("%.4f", i.DiskUse),
		"consumeQueueDiskRatio": fmt.Sprintf("%.4f", i.DiskUse), "earliestMessageTimeStamp": itoa(i.Earliest),
		"commitLogDirCapacity": "Total : " + gib(i.DiskTotal) + ", Free : " + gib(i.DiskFree) + ".",
		"dispatchBehindBytes":  itoa(i.FoldBehind), "dispatchMaxBuffer": "0", "pageCacheLockTimeMills": "0",
		"remainHowManyDataToCommit": "0 B", "remainHowManyDataToFlush": fmt.Sprintf("%d B", i.Unsynced), "remainTransientStoreBufferNumbs": "0",

		"timerReadBehind": "0", "timerOffsetBehind": "0", "timerCongestNum": itoa(i.Timers), "timerEnqueueTps": "0.0", "timerDequeueTps": "0.0",
	}
	t["EndTransactionQueueSize"] = "0"
	for _, pool := range []string{"send", "pull", "litePull", "query", "ack", "EndTransaction"} {
		t[pool+"ThreadPoolQueueSize"] = "0"
		t[pool+"ThreadPoolQueueCapacity"] = itoa(int64(i.PoolLimit))
		t[pool+"ThreadPoolQueueHeadWaitTimeMills"] = "0"
	}
	t["queryThreadPoolQueueSize"] = itoa(int64(i.PoolWaiting))
	t["goroutines"] = itoa(int64(runtime.NumGoroutine()))
	return t
}

// distribution is a histogram in RocketMQ's form, which the exporter parses.
func distribution(counts [len(broker.PutTimeLimits) + 1]int64) string {
	names := [len(counts)]string{
		"<=0ms", "0~10ms", "10~50ms", "50~100ms", "100~200ms", "200~500ms", "500ms~1s", "1~2s", "2~3s", "3~4s", "4~5s", "5~10s", "10s~",
	}
	var b strings.Builder
	for i, n := range counts {
		fmt.Fprintf(&b, "[%s]:%d ", names[i], n)
	}
	return b.String()
}

// rates are the averages over 10, 60 and 600 seconds.
func rates(v [3]float64) string { return fmt.Sprintf("%.4f %.4f %.4f", v[0], v[1], v[2]) }

func average(sum, n int64) float64 {
	if n == 0 {
		return 0
	}
	return float64(sum) / float64(n)
}

func gib(n int64) string {
	return strings.Replace(fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)), ",", ".", 1)
}
