"""Zstandard: the module of Python 3.14 (PEP 784), or its backport for older versions."""

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import (
        CompressionParameter,
        DecompressionParameter,
        ZstdDecompressor,
        ZstdError,
        ZstdFile,
        compress,
        decompress,
        get_frame_info,
    )
else:
    from backports.zstd import (
        CompressionParameter,
        DecompressionParameter,
        ZstdDecompressor,
        ZstdError,
        ZstdFile,
        compress,
        decompress,
        get_frame_info,
    )

__all__ = [
    "CompressionParameter",
    "DecompressionParameter",
    "ZstdDecompressor",
    "ZstdError",
    "ZstdFile",
    "compress",
    "compress_far",
    "decompress",
    "get_frame_info",
]


def compress_far(data: bytes, level: int, window_log: int) -> bytes:
    """Compress data whose repetitions are far apart, with a checksum.

    Args:
        data: it.
        level: of compression.
        window_log: binary logarithm of the distance, in bytes, up to which repetitions are found.
    """
    options: dict[int, int] = {
        CompressionParameter.compression_level: level,
        CompressionParameter.window_log: window_log,
        CompressionParameter.enable_long_distance_matching: 1,
        CompressionParameter.checksum_flag: 1,
    }
    return compress(data, options=options)
