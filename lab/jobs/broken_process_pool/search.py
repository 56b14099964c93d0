"""Random search over hyper-parameters, two trials at a time."""
import ctypes
import random
from concurrent.futures import ProcessPoolExecutor, as_completed


def scratch(depth):
    """Work space for the tree, zeroed by the C library."""
    buffer = ctypes.create_string_buffer(2**depth) if depth < 10 else None
    ctypes.memset(buffer, 0, 2**depth)
    return buffer


def trial(number, depth, lr):
    scratch(depth)
    rng = random.Random(number)
    loss = 1.0
    for _ in range(2000):
        loss *= 1 - lr * rng.random() * 0.01
    return loss


def main():
    rng = random.Random(4)
    with ProcessPoolExecutor(max_workers=2) as pool:
        futures = {}
        for number in range(12):
            depth, lr = rng.randint(2, 10), 10 ** rng.uniform(-3, 0)
            futures[pool.submit(trial, number, depth, lr)] = (number, depth, lr)
        for future in as_completed(futures):
            number, depth, lr = futures[future]
            print(f"trial {number:2d} depth={depth} lr={lr:.4f} -> {future.result():.4f}", flush=True)


if __name__ == "__main__":
    main()
