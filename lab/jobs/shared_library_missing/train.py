"""Sorting network with our own kernels; the extension is built by `make` into native/."""
import ctypes
import random


class Kernels:
    def __init__(self, name="libfastkernels.so"):
        self.lib = ctypes.CDLL(name)
        self.lib.fused_adam.restype = ctypes.c_int

    def step(self, weights, gradients):
        return self.lib.fused_adam(weights, gradients, len(weights))


def main():
    print("loading native kernels")
    kernels = Kernels()
    weights = [random.random() for _ in range(1024)]
    for step in range(100):
        kernels.step(weights, [0.01] * len(weights))
    print("done")


if __name__ == "__main__":
    main()
