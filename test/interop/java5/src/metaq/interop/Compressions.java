package metaq.interop;

import org.apache.rocketmq.common.compression.CompressionType;

/** The compressions that only 5.x clients have. */
final class Compressions {
    private Compressions() {}

    static void register(Suite suite) {
        suite.add("compression-lz4", rig -> Bodies.roundTrip(rig, rig.producer(p -> p.setCompressType(CompressionType.LZ4)), 1 << 8));
        suite.add("compression-zstd", rig -> Bodies.roundTrip(rig, rig.producer(p -> p.setCompressType(CompressionType.ZSTD)), 2 << 8));
    }
}
