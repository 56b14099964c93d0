"""Read an MNIST-like idx.gz file and train on it."""
import gzip
import logging
import struct
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np

logging.basicConfig(level=logging.INFO, format="%(levelname)s - %(message)s")
MIRRORS = ["http://127.0.0.1:9/mnist/", "http://127.0.0.1:9/backup/mnist/"]
CACHE = Path("cache/train-images-idx3-ubyte.gz")


def fill_cache():
    """Yesterday's job left this; its download was cut off."""
    pixels = np.random.default_rng(0).integers(0, 256, size=(500, 28, 28), dtype=np.uint8)
    raw = gzip.compress(struct.pack(">IIII", 2051, 500, 28, 28) + pixels.tobytes())
    CACHE.parent.mkdir()
    CACHE.write_bytes(raw[: len(raw) * 2 // 3])


def fetch():
    for mirror in MIRRORS:
        try:
            return urllib.request.urlopen(mirror + CACHE.name, timeout=2).read()
        except urllib.error.URLError as error:
            logging.warning("download from %s failed: %s; trying the next", mirror, error)
    logging.info("all mirrors failed, using the cached copy %s", CACHE)
    return CACHE.read_bytes()


def images(raw):
    data = gzip.decompress(raw)
    _, n, height, width = struct.unpack(">IIII", data[:16])
    return np.frombuffer(data, dtype=np.uint8, offset=16).reshape(n, height * width)


fill_cache()
x = images(fetch()) / 255.0
print("mean image brightness", x.mean())
