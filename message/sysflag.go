package message

// Bits of a record's sysFlag.
const (
	FlagCompressed          = 0x001 // set by the producer: the body is compressed, see the compression bits
	FlagMultiTags           = 0x002 // set by the broker: the topic's filter type is MULTI_TAG
	FlagTransactionPrepared = 0x004 // set by the producer of a half message
	FlagTransactionCommit   = 0x008 // a committed message; also the value of commitOrRollback
	FlagTransactionRollback = 0x00C // a rollback; also the value of commitOrRollback
	FlagBornHostV6          = 0x010 // set by the encoder only: the born host has 16 bytes
	FlagStoreHostV6         = 0x020 // set by the encoder only: the store host has 16 bytes
	FlagNeedUnwrap          = 0x040 // the body is a batch that the consumer expands
	FlagInnerBatch          = 0x080 // the record is an inner batch
	FlagCompressionLZ4      = 0x100 // LZ4 frame format
	FlagCompressionZSTD     = 0x200 // a zstd frame
	FlagCompressionZLIB     = 0x300 // an RFC 1950 stream

	// FlagTransactionMask covers the two transaction bits.
	FlagTransactionMask = 0x00C
	// FlagCompressionMask covers the compression type. Type 0 together with
	// FlagCompressed is zlib too: producers did not always name it.
	FlagCompressionMask = 0x700
)
