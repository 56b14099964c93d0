"""Rank 0 compiles its kernels with the system's compiler; rank 1 waits at the barrier."""

import pathlib
import subprocess
import tempfile
import time

import torch.distributed as dist

SOURCE = """
#include <array>
#include <tuple>
#include <utility>
template <std::size_t... I> constexpr int sum(std::index_sequence<I...>) { return (0 + ... + int(I % SEED)); }
int main() { return sum(std::make_index_sequence<3000>()) & 1; }
"""

dist.init_process_group("gloo")
rank = dist.get_rank()
print("start", flush=True)
if rank == 0:
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "kernel.cpp").write_text(SOURCE)
    end, seed = time.monotonic() + 50, 1
    while time.monotonic() < end:
        seed += 1
        command = ["g++", "-std=c++17", "-O2", "-ftemplate-depth=8000", f"-DSEED={seed}"]
        subprocess.run([*command, "-c", "kernel.cpp", "-o", "kernel.o"], cwd=folder, check=True)
dist.barrier()
print("done", flush=True)
dist.destroy_process_group()
