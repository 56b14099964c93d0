"""Large logs that look like those of a 64-rank training run, the same for the same seed.

Most of such a log is progress. Scattered over it are connections that were reset and came back.
Near its end one rank raises an error, ten minutes later the watchdogs of all the others notice, and
the launcher sums up. Only the one rank's exception is the first cause.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from common import SEED, scratch

__all__ = ["ROOT", "ROOT_RANK", "synthetic_log", "training_lines"]

RANKS = 64
ROOT_RANK = 37
ROOT = (
    "RuntimeError: The size of tensor a (2048) must match the size of tensor b (1984) "
    "at non-singleton dimension 1"
)
RESETS_PER_MEGABYTE = 8
STEP_SECONDS = 0.8
TIMEOUT_SECONDS = 600
_VERSION = 2
"""Part of the files' names; to be raised when what is generated changes."""
_START = datetime(2026, 3, 2, 10, 15, 0)
_WORDS = [
    "attention",
    "backward",
    "batch",
    "bucket",
    "cache",
    "checkpoint",
    "clip",
    "data",
    "decoder",
    "embedding",
    "epoch",
    "eval",
    "expert",
    "forward",
    "fused",
    "gather",
    "grad",
    "head",
    "kernel",
    "layer",
    "loader",
    "loss",
    "mask",
    "merge",
    "norm",
    "optimizer",
    "output",
    "param",
    "pipeline",
    "prefetch",
    "query",
    "reduce",
    "router",
    "sample",
    "schedule",
    "shard",
    "step",
    "stream",
    "tensor",
    "token",
    "trainer",
    "value",
    "warmup",
    "weight",
    "window",
    "worker",
]


def synthetic_log(megabytes: int, *, varied: bool = False) -> Path:
    """A log of about that size, in the scratch folder; made when it is not there yet.

    Args:
        megabytes: millions of bytes.
        varied: many kinds of lines with changing words, in place of a few kinds with numbers.
    """
    kind = "varied" if varied else "ranks"
    path = scratch() / f"{kind}-{megabytes}mb-{SEED}-{_VERSION}.log"
    if not path.exists():
        part = path.with_suffix(".part")
        with part.open("w", encoding="utf-8") as stream:
            stream.writelines(_lines(megabytes * 1_000_000, _varied if varied else _usual))
        part.rename(path)
    return path


def training_lines(draw: random.Random, size: int) -> str:
    """Lines of a small single-process run, about ``size`` characters."""
    lines: list[str] = []
    step = 0
    while size > 0:
        step += 1
        line = (
            f"epoch {step // 200} step {step} loss {6 / (1 + step / 90) + draw.random():.4f} "
            f"lr 3.0e-04 grad_norm {draw.random():.3f} samples/s {draw.uniform(900, 1100):.1f}\n"
        )
        lines.append(line)
        size -= len(line)
    return "".join(lines)


Body = Callable[[random.Random, int, int, str], str]


def _lines(size: int, body: Body) -> Iterator[str]:
    draw = random.Random(SEED)
    start = "".join(_head())
    yield start
    left = size - len(start) - len("".join(_end(0)))
    until_reset = 1e6 / RESETS_PER_MEGABYTE
    step = 0
    while left > 0:
        step += 1
        stamp = _stamp(step * STEP_SECONDS)
        for rank in range(RANKS):
            line = body(draw, rank, step, stamp)
            until_reset -= len(line)
            if until_reset < 0:
                until_reset += 1e6 / RESETS_PER_MEGABYTE
                line += _reset(draw, rank, stamp)
            left -= len(line)
            yield line
    yield from _end(step * STEP_SECONDS)


def _stamp(seconds: float) -> str:
    return (_START + timedelta(seconds=seconds)).isoformat(" ", "milliseconds")


def _head() -> Iterator[str]:
    stamp = _stamp(0)
    for rank in range(RANKS):
        host = f"10.0.{rank // 8}.12"
        yield f"[rank{rank}]: {stamp} [INFO] NCCL INFO Bootstrap : Using eth0:{host}<0>\n"
        yield f"[rank{rank}]: {stamp} [INFO] world size {RANKS}, local rank {rank % 8}\n"
    for name in ("num_layers ........ 96", "hidden_size ....... 2048", "abort_on_nan ...... False"):
        yield f"[rank0]: {stamp} [INFO]   {name}\n"


def _usual(draw: random.Random, rank: int, step: int, stamp: str) -> str:
    """The progress line of one rank."""
    prefix = f"[rank{rank}]: {stamp} [INFO]"
    if (step + rank) % 16 == 0:
        return (
            f"{prefix} data loader: shard {draw.randrange(9999):05d} prefetched in "
            f"{draw.random():.3f} s, {draw.randrange(64)} batches waiting\n"
        )
    return (
        f"{prefix} iteration {step:>8}/ 500000 | consumed samples: {step * 1024:>12} | elapsed "
        f"time per iteration (ms): {draw.uniform(780, 820):.1f} | learning rate: 3.000E-04 | "
        f"lm loss: {draw.uniform(1.9, 2.4):.6E} | loss scale: 1.0 | grad norm: "
        f"{draw.random():.3f} | number of skipped iterations: 0 | number of nan iterations: 0 |\n"
    )


def _varied(draw: random.Random, rank: int, step: int, stamp: str) -> str:
    """One of many kinds of lines that a run prints."""
    words = draw.choices(_WORDS, k=5)
    kind = draw.randrange(6)
    if kind == 0:
        return (
            f':::MLLOG {{"namespace": "", "time_ms": {draw.randrange(10**13)}, "event_type": '
            f'"POINT_IN_TIME", "key": "{words[0]}_{words[1]}", "value": {draw.random()}, '
            f'"metadata": {{"file": "/job/{words[2]}.py", "lineno": {draw.randrange(999)}}}}}\n'
        )
    if kind == 1:
        done = draw.randrange(100)
        return (
            f"{words[0]}: {done:3d}%|{'#' * (done // 10):10}| {done}/100 "
            f"[00:{done % 60:02d}<00:59, {draw.uniform(1, 9):.2f}it/s]\r\n"
        )
    if kind == 2:
        return (
            f"node{rank // 8:02d}:{4000 + rank}:{5000 + rank} [{rank % 8}] NCCL INFO Channel "
            f"{draw.randrange(24):02d}/0 : {rank}[{draw.randrange(16**5):x}] -> "
            f"{(rank + 1) % RANKS}[{draw.randrange(16**5):x}] via P2P/IPC/read\n"
        )
    if kind == 3:
        return f"+ export {words[0].upper()}_{words[1].upper()}={draw.randrange(10**6)}\n"
    if kind == 4:
        return (
            f"[{stamp}] [{words[0]}.py:{draw.randrange(999)}:{words[1]}] [Rank {rank}] step={step} "
            f"skipped=0 lr=[0.0003] {words[2]}_{words[3]}={draw.random():.4f}\n"
        )
    return (
        f"[rank{rank}]: {stamp} {words[0]}/{words[1]} {words[2]} {words[3]} {words[4]} "
        f"{draw.random():.4f} {draw.random():.4f}\n"
    )


def _reset(draw: random.Random, rank: int, stamp: str) -> str:
    return (
        f"[rank{rank}]: {stamp} [WARNING] read of shard-{draw.randrange(9999):05d}.tar: "
        f"ConnectionResetError: [Errno 104] Connection reset by peer; retrying in 1.0 s "
        f"(attempt 1 of 5)\n"
    )


def _end(seconds: float) -> Iterator[str]:
    """The failure: one rank's exception, the other ranks' watchdogs, the launcher."""
    yield from (f"[rank{ROOT_RANK}]: {line}\n" for line in _TRACEBACK)
    for rank in range(RANKS):
        if rank != ROOT_RANK:
            yield from _watchdog(rank, seconds + TIMEOUT_SECONDS + rank / 100)
    yield from _launcher(seconds + TIMEOUT_SECONDS + 5)


_TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "/job/train.py", line 412, in <module>',
    "    main()",
    '  File "/job/train.py", line 388, in main',
    "    loss = train_step(model, batch)",
    '  File "/job/train.py", line 301, in train_step',
    "    hidden = hidden + self.position(tokens)",
    ROOT,
)


def _watchdog(rank: int, seconds: float) -> Iterator[str]:
    place = f"E302 {_stamp(seconds)[11:]}{rank:06d} ProcessGroupNCCL.cpp"
    timeout = (
        f"[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=91733, "
        f"OpType=ALLREDUCE, NumelIn=16777216, NumelOut=16777216, Timeout(ms)=600000) ran for "
        f"6000{rank:02d} milliseconds before timing out."
    )
    yield f"[rank{rank}]:[{place}:629] {timeout}\n"
    yield (
        f"[rank{rank}]:[{place}:681] [Rank {rank}] Some NCCL operations have failed or timed out. "
        "Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on "
        "corrupted/incomplete data.\n"
    )
    yield (
        f"[rank{rank}]:[{place}:695] [Rank {rank}] To avoid data inconsistency, we are taking "
        "the entire process down.\n"
    )
    yield f"[rank{rank}]: terminate called after throwing an instance of 'c10::DistBackendError'\n"
    yield (
        f"[rank{rank}]:   what():  [PG 0 (default_pg) Rank {rank}] Process group watchdog thread "
        f"terminated with exception: {timeout}\n"
    )


def _launcher(seconds: float) -> Iterator[str]:
    yield "Traceback (most recent call last):\n"
    yield '  File "/opt/conda/bin/torchrun", line 8, in <module>\n'
    yield "    sys.exit(main())\n"
    yield "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    yield "=" * 60 + "\n/job/train.py FAILED\n" + "-" * 60 + "\n"
    yield "Root Cause (first observed failure):\n[0]:\n"
    yield f"  time      : {_stamp(seconds)[:19].replace(' ', '_')}\n  host      : node00\n"
    yield "  rank      : 0 (local_rank: 0)\n"
    yield "  exitcode  : -6 (pid: 4000)\n  error_file: <N/A>\n"
    yield "  traceback : Signal 6 (SIGABRT) received by PID 4000\n" + "=" * 60 + "\n"
