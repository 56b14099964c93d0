import os

CACHE = os.environ.get("CACHE_ROOT", "/output/cache")


def data_root():
    return os.environ["DATA_ROOT"]
