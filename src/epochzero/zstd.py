"""Zstandard: the module of Python 3.14 (PEP 784), or its backport for older versions."""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CompressionParameter = zstd.CompressionParameter
DecompressionParameter = zstd.DecompressionParameter
ZstdDecompressor = zstd.ZstdDecompressor
ZstdError = zstd.ZstdError
ZstdFile = zstd.ZstdFile
compress = zstd.compress
decompress = zstd.decompress
get_frame_info = zstd.get_frame_info


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
