package message

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

type recordedMessage struct {
	Queue     int32             `json:"queue"`
	Offset    int64             `json:"offset"`
	Physical  int64             `json:"physical"`
	Size      int               `json:"size"`
	CRC       uint32            `json:"crc"`
	Flag      int32             `json:"flag"`
	SysFlag   int32             `json:"sys_flag"`
	Born      int64             `json:"born"`
	BornHost  string            `json:"born_host"`
	Stored    int64             `json:"stored"`
	StoreHost string            `json:"store_host"`
	Reconsume int32             `json:"reconsume"`
	Prepared  int64             `json:"prepared"`
	Topic     string            `json:"topic"`
	Props     map[string]string `json:"props"`
	BodyHex   string            `json:"body_hex"`
}

type recorded struct {
	ID       string            `json:"id"`
	Bytes    string            `json:"bytes"`
	Messages []recordedMessage `json:"messages"`
	Batch    []struct {
		Flag    int32             `json:"flag"`
		BodyHex string            `json:"body_hex"`
		Props   map[string]string `json:"props"`
	} `json:"batch"`
}

// readRecorded gives what an unmodified broker and unmodified clients wrote.
func readRecorded(t *testing.T) (all []recorded) {
	f, err := os.Open("testdata/recorded.jsonl")
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r recorded
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		all = append(all, r)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, all)
	return all
}

func propertyMap(props []byte) map[string]string {
	m := map[string]string{}
	for name, value := range Properties(props) {
		m[string(name)] = string(value)
	}
	return m
}

func TestRecordedRecords(t *testing.T) {
	for _, c := range readRecorded(t) {
		if c.Messages == nil {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			rest := unhex(t, c.Bytes)
			for _, want := range c.Messages {
				var r Record
				n, err := r.Parse(rest)
				require.NoError(t, err)
				got := recordedMessage{
					Queue: r.QueueID, Offset: int64(r.QueueOffset), Physical: int64(r.Position), Size: n, CRC: r.BodyCRC,
					Flag: r.Flag, SysFlag: r.SysFlag, Born: r.BornTime, BornHost: r.BornHost.String(), Stored: r.StoreTime,
					StoreHost: r.StoreHost.String(), Reconsume: r.ReconsumeTimes, Prepared: r.PreparedOffset,
					Topic: string(r.Topic), Props: propertyMap(r.Properties), BodyHex: hex.EncodeToString(r.Body),
				}
				require.Equal(t, want, got)
				require.NoError(t, r.CheckBody())
				require.Equal(t, rest[:n], AppendRecord(nil, &r))
				for name, value := range want.Props {
					got, ok := Property(r.Properties, name)
					require.True(t, ok, name)
					require.Equal(t, value, string(got))
				}
				rest = rest[n:]
			}
			require.Empty(t, rest)
		})
	}
}

func TestRecordedBatches(t *testing.T) {
	for _, c := range readRecorded(t) {
		if c.Batch == nil {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			body := unhex(t, c.Bytes)
			var again []byte
			r := NewBatchReader(body)
			for _, want := range c.Batch {
				flag, data, props, ok := r.Next()
				require.True(t, ok)
				require.Equal(t, want.Flag, flag)
				require.Equal(t, want.BodyHex, hex.EncodeToString(data))
				require.Equal(t, want.Props, propertyMap(props))
				again = AppendBatchMember(again, flag, data, props)
			}
			_, _, _, ok := r.Next()
			require.False(t, ok)
			require.NoError(t, r.Err())
			require.Equal(t, len(c.Batch), r.Len())
			require.Equal(t, body, again)
		})
	}
}
