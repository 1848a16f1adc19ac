package admin

import (
	"bytes"
	"compress/zlib"
	"io"
	"strings"

	"github.com/metaqio/metaq/message"
)

// maxUnpacked bounds what a compressed body may become.
const maxUnpacked = 64 << 20

// unpack gives the body of a record as its producer knew it. Compressions that clients must ask for are left as they are, and named.
func unpack(r *message.Record) (body []byte, packed string) {
	body = bytes.Clone(r.Body)
	if r.SysFlag&message.FlagCompressed == 0 {
		return body, ""
	}
	switch r.SysFlag & message.FlagCompressionMask {
	case message.FlagCompressionLZ4:
		return body, "LZ4"
	case message.FlagCompressionZSTD:
		return body, "ZSTD"
	case 0, message.FlagCompressionZLIB:
	default:
		return body, "unknown"
	}
	z, err := zlib.NewReader(bytes.NewReader(body))
	if err != nil {
		return body, "ZLIB"
	}
	plain, err := io.ReadAll(io.LimitReader(z, maxUnpacked+1))
	if err != nil || len(plain) > maxUnpacked {
		return body, "ZLIB"
	}
	return plain, ""
}

// splitIDs splits the ids of a batch.
func splitIDs(ids string) []string {
	if ids == "" {
		return nil
	}
	return strings.Split(ids, ",")
}
