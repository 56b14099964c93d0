"""Word counts of several processes in one block of shared memory."""
import multiprocessing
from multiprocessing import shared_memory

import numpy as np

NAME = "lab_vocabulary_cache"
TEXTS = ["a b a c", "b b c d", "d a a a"]


def count(row):
    block = shared_memory.SharedMemory(NAME)
    counts = np.ndarray((3, 4), dtype=np.int64, buffer=block.buf)
    for word in TEXTS[row].split():
        counts[row, "abcd".index(word)] += 1
    del counts
    block.close()


def main():
    print("creating the shared table", flush=True)
    block = shared_memory.SharedMemory(NAME, create=True, size=3 * 4 * 8)
    with multiprocessing.Pool(2) as pool:
        pool.map(count, range(3))
    total = np.ndarray((3, 4), dtype=np.int64, buffer=block.buf).sum(0)
    print("counts", total.tolist())
    del total
    block.close()
    block.unlink()


if __name__ == "__main__":
    main()
